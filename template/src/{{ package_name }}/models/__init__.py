"""Yours: LightningModules and networks. An update of the template never touches this folder."""
