"""The commands `longhaul` and `longhaul-worker`."""

import gc
import os
from typing import NoReturn

MAX_PROCESSES = 256


def run_starter_command() -> NoReturn:
    """As `starter.py`."""
    # Loading creates objects that stay; searching them for garbage takes a tenth of the start.
    gc.disable()
    try:
        from cli.app import main  # noqa: PLC0415 - a Ctrl-C while it loads needs its answer
        from engine.exit_codes import INTERRUPTED  # noqa: PLC0415
        from engine.worker_process import exit_worker_process  # noqa: PLC0415
    except KeyboardInterrupt:
        os._exit(130)
    gc.freeze()
    gc.enable()
    try:
        exit_worker_process(main())
    except KeyboardInterrupt:
        exit_worker_process(INTERRUPTED)


def run_worker_command() -> NoReturn:
    """As `worker.py`."""
    import argparse  # noqa: PLC0415

    options = argparse.ArgumentParser(
        description="Runs jobs until SIGINT or SIGTERM. As many workers as you like, on any "
        "machine.",
        epilog="Settings are environment variables (docs/configuration.md), TEMPORAL_ADDRESS, "
        "LONGHAUL_CONFIG, LONGHAUL_WORKSPACES, LONGHAUL_TASK_QUEUE and OPENAI_BASE_URL among them.",
    )
    options.add_argument(
        "--processes",
        type=_parse_process_count,
        default=1,
        metavar="N",
        help="worker processes under one supervisor, such as one for each core; default 1",
    )
    count = options.parse_args().processes
    # Until all code is loaded, as above.
    gc.disable()
    try:
        from engine.supervisor import run_supervisor_process  # noqa: PLC0415
        from engine.worker_process import exit_worker_process, run_worker_process  # noqa: PLC0415
    except KeyboardInterrupt:  # loading takes a moment
        os._exit(130)
    if count > 1:
        run_supervisor_process(count, exit_worker_process)
    run_worker_process()


def _parse_process_count(text: str) -> int:
    import argparse  # noqa: PLC0415

    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_PROCESSES}")
    return int(text)
