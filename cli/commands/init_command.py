"""The command `init`, which begins a configuration folder."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from cli.options import Json
from cli.output import OK, UserError, print_json, print_note, print_result
from config.layers import VARIABLE
from engine.program_names import name_running_program

FOLDER = Path(__file__).parents[1] / "first_folder"
TEXTS = (".md", ".py", ".yaml")


def init(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder to create; it may exist if it is empty.", metavar="FOLDER"),
    ] = Path("longhaul"),
    json: Json = False,
) -> int:
    """Write a commented folder for your own agents, guards, tools and projects; say what is next.

    LONGHAUL_CONFIG names such folders. Existing files are not overwritten.
    """
    target = folder.expanduser().absolute()
    try:
        present = sorted(path.name for path in target.iterdir()) if target.exists() else []
        if present:
            raise UserError(
                f"{target}: the folder is not empty ({', '.join(present[:5])}); nothing was "
                "written. Name another one"
            )
        written = _copy_first_folder(target)
    except OSError as error:
        where = error.filename or target
        raise UserError(f"{where}: cannot be written ({error.strerror or error})") from None
    if json:
        print_json({"folder": str(target), "files": [str(path) for path in written]})
        return OK
    for path in written:
        print_result(str(path))
    print_note(
        "next:\n"
        f"  export {VARIABLE}={shlex.quote(str(target))}\n"
        "  starter.py config check editor\n"
        "  starter.py demo --agent editor --keep\n"
        'or, with a server and a worker: starter.py start editor --instructions "…"'
    )
    return OK


def _copy_first_folder(target: Path) -> list[Path]:
    written = []
    for source in sorted(path for path in FOLDER.rglob("*") if path.suffix in TEXTS):
        place = target / source.relative_to(FOLDER)
        place.parent.mkdir(parents=True, exist_ok=True)
        # Make the copies writable: a package's files may be read-only.
        shutil.copyfile(source, place)
        place.write_text(name_running_program(place.read_text(encoding="utf-8")), encoding="utf-8")
        written.append(place)
    return written
