"""Starts, watches, steers and inspects jobs: `python starter.py --help`."""

import os

if __name__ == "__main__":
    try:
        from cli.app import main
        from engine.process import INTERRUPTED, exit_process
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    try:
        exit_process(main())
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)
