"""Starts, watches, steers and inspects jobs: `python starter.py --help`."""

from cli.app import main
from engine.process import leave

if __name__ == "__main__":
    leave(main())
