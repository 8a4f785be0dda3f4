"""Runs jobs until SIGINT or SIGTERM. As many workers as you like, on any machine."""

import argparse
import os

SETTINGS = (
    "Settings are environment variables (docs/operations.md), TEMPORAL_ADDRESS, "
    "LONGHAUL_WORKSPACES, LONGHAUL_TASK_QUEUE and OPENAI_BASE_URL among them."
)

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, epilog=SETTINGS).parse_args()
    try:
        from engine.process import main
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    main()
