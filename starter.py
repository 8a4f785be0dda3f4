"""Starts, watches, steers and inspects jobs: `python starter.py --help`."""

from longhaul_agents.entry_points import run_starter_command

if __name__ == "__main__":
    run_starter_command()
