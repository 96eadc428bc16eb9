"""The configuration, composed by Hydra; a package, so that a wheel carries it."""
