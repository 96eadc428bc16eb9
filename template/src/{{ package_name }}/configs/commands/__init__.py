"""Configs of the commands that choose from no group."""
