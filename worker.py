"""Runs jobs: `python worker.py`, until SIGINT or SIGTERM. As many as you like, on any machine."""

import os

if __name__ == "__main__":
    try:
        from engine.process import main
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    main()
