"""Predictions over HTTP: what `serve` starts."""
