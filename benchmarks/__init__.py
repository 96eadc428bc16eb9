"""Side-by-side measurements, each a ratio within one run: `make bench`."""

WARMUP = 5  # steps of a training that are not measured
