"""Starts, watches, steers and inspects jobs: `python starter.py --help`."""

from longhaul_agents.commands import run_command

if __name__ == "__main__":
    run_command()
