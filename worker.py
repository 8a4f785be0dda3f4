"""Runs jobs until SIGINT or SIGTERM. As many workers as you like, on any machine."""

from longhaul_agents.commands import run_worker

if __name__ == "__main__":
    run_worker()
