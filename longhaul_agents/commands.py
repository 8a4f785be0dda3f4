"""The commands `longhaul` and `longhaul-worker`."""

import os
from typing import NoReturn


def run_command() -> NoReturn:
    """As `starter.py`."""
    try:
        from cli.app import main  # noqa: PLC0415 - a Ctrl-C while it loads needs its answer
        from engine.process import INTERRUPTED, exit_process  # noqa: PLC0415
    except KeyboardInterrupt:
        os._exit(130)
    try:
        exit_process(main())
    except KeyboardInterrupt:
        exit_process(INTERRUPTED)


def run_worker() -> NoReturn:
    """As `worker.py`."""
    import argparse  # noqa: PLC0415

    argparse.ArgumentParser(
        description="Runs jobs until SIGINT or SIGTERM. As many workers as you like, on any "
        "machine.",
        epilog="Settings are environment variables (docs/operations.md), TEMPORAL_ADDRESS, "
        "LONGHAUL_CONFIG, LONGHAUL_WORKSPACES, LONGHAUL_TASK_QUEUE and OPENAI_BASE_URL among them.",
    ).parse_args()
    try:
        from engine.process import main  # noqa: PLC0415
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    main()
