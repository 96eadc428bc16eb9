"""The entry of the console script and of `python -m`."""

import sys

from .engine.command_line import main

if __name__ == "__main__":
    sys.exit(main())
