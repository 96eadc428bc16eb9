"""Side-by-side measurements, each a ratio within one run: `make bench`."""
