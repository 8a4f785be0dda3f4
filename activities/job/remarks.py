"""People's remarks in a job's instructions, where they survive rewinds and restored files."""

import re
from collections.abc import Sequence

from activities.job.snapshot import Snapshot
from activities.text.safe_text import replace_surrogates
from protocol.job_state import Remark
from protocol.short_text import one_line

AMENDED = "## Amended"


def name_remark_speakers(remarks: Sequence[Remark]) -> str:
    """Name each speaker once, such as `ada@host, a person`."""
    return ", ".join(
        dict.fromkeys(one_line(replace_surrogates(each.by), 100) or "a person" for each in remarks)
    )


def add_remarks_to_instructions(snapshot: Snapshot) -> None:
    """Make the instructions contain all remarks, even after files were restored."""
    text = snapshot.read_text("instructions.md")
    if (amended := instructions_with_remarks(text, snapshot.state.remarks)) != text:
        snapshot.write_system_file("instructions.md", amended.encode())


def instructions_with_remarks(instructions: str, remarks: Sequence[Remark]) -> str:
    lines = [f"- {remark.line}".replace("\n", "\n  ") for remark in remarks]
    # A whole entry: a remark may be the beginning of another.
    lacking = [
        line
        for line in lines
        if not re.search(rf"^{re.escape(line)}$(?!\n  )", instructions, re.MULTILINE)
    ]
    if not lacking:
        return instructions
    *before, last = instructions.split(f"\n{AMENDED}\n")
    if not before or "\n## " in last:
        instructions = f"{instructions.rstrip()}\n\n{AMENDED}\n"
    return f"{instructions.rstrip()}\n\n" + "\n".join(lacking) + "\n"
