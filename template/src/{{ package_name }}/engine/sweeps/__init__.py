"""Sweeps: what is tried, by whom, and what became of it."""
