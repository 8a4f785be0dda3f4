"""Starts, watches, steers and inspects jobs: `python starter.py --help`."""

import os

if __name__ == "__main__":
    try:
        from cli.app import main
        from engine.process import INTERRUPTED, leave
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    try:
        leave(main())
    except KeyboardInterrupt:
        leave(INTERRUPTED)
