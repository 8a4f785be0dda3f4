"""What came of a phase: news, by which stuck detection knows phases that only plan, and output."""

import json
import re

from activities.checkpoints import Files
from activities.job.conversation_calls import newest_calls
from activities.job.snapshot import Snapshot
from activities.text.fingerprints import text_fingerprint
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.path_ownership import is_work_path, work_fingerprint
from protocol.short_text import one_line, shorten_to_end

FEWEST_NEW_WORDS = 20
"""Words that no note had before, from which on notes have substance. A plan repeated in other
words has few of them."""
MOST_NOTES_CHARACTERS = 1_000_000
_WORD = re.compile(r"[^\W\d_]{3,}")


def phase_mark(snapshot: Snapshot) -> str:
    """Return a fingerprint of running list, scope, plan and files, which no new phase has."""
    state = snapshot.state
    todos = [todo.content for todo in state.phase.todos]
    scope = [[item.id, item.status] for item in state.scope]
    made = sorted(entry.path for entry in snapshot.changes.walk() if is_work_path(entry.path))
    return text_fingerprint(json.dumps([todos, scope, snapshot.read_text("plan.md"), made]))


def work_mark(snapshot: Snapshot) -> str:
    """Return a fingerprint of the work's content and of the phase's commands; empty if the phase
    neither changed the work nor ran a command that does more than look.
    """
    seen = snapshot.state.phase_seen
    if not seen.calls:
        return ""
    return text_fingerprint(json.dumps([work_fingerprint(snapshot), sorted(seen.commands)]))


def phase_brings_news(snapshot: Snapshot, began: str | None) -> bool:
    """Whether the phase completed an item that people asked for, or took notes of substance."""
    state = snapshot.state
    for item in state.scope:
        evidence = item.evidence if item.status == "completed" and item.is_of_people else None
        if evidence and evidence.phase == state.phase.number:
            return True
    if not (began and state.phase_seen.kept):
        return False
    before = Snapshot.load(snapshot.checkpoints, began).files
    news = _words_of_notes(snapshot.files) - _words_of_notes(before)
    return len(news) >= FEWEST_NEW_WORDS


def _words_of_notes(files: Files) -> set[str]:
    """Return the words of notes, plan and workspace.md, without case and numbers."""
    words, room = set[str](), MOST_NOTES_CHARACTERS
    for entry in files.walk():
        is_note = entry.path.startswith("notes/") or entry.path in ("plan.md", "workspace.md")
        if entry.kind != "file" or not is_note or room <= 0:
            continue
        text = files.read(entry.path)[:room].decode(errors="replace")
        room -= len(text)
        words |= set(_WORD.findall(text.casefold()))
    return words


OUTPUT_CHARACTERS = 1500
"""Characters shown of the end of one output; test runners summarise there."""
MAX_OUTPUTS = 4
HEADING = "# What the last calls of the phase before gave, which no reply has read"


def unread_phase_output(snapshot: Snapshot) -> str:
    """Return the end of what commands and tools gave that cannot be read again; else empty."""
    tools = agent_tools_by_name(snapshot.config)
    outputs: list[str] = []
    try:
        calls = newest_calls(snapshot.conversation, snapshot.state.step)
    except LookupError:
        return ""
    results: dict[str, str] = {}
    for number in reversed(range(len(snapshot.conversation))):
        message = snapshot.conversation.message(number)
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            results[message["tool_call_id"]] = str(message["content"])
    for call in calls:
        function = call["function"]
        entry = tools.get(function["name"])
        if (
            entry
            and (entry.group == "shell" or entry.effect == "outside")
            and call["id"] in results
        ):
            named = one_line(f"{function['name']} {function['arguments']}", 200)
            outputs.append(f"{named}\n{shorten_to_end(results[call['id']], OUTPUT_CHARACTERS)}")
    return "\n\n".join([HEADING, *outputs[-MAX_OUTPUTS:]]) if outputs else ""
