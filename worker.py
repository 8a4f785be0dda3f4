"""Runs jobs: `python worker.py`, until SIGINT or SIGTERM. As many as you like, on any machine."""

from engine.process import main

if __name__ == "__main__":
    main()
