"""Runs jobs until SIGINT or SIGTERM. As many workers as you like, on any machine."""

from longhaul_agents.entry_points import run_worker_command

if __name__ == "__main__":
    run_worker_command()
