"""The state of a job: the content of a checkpoint's `state.json` and the basis of the workflow.

Workflow and activities change it by the same methods. So the copy in workflow memory and the one
in the checkpoint are equal after every step, except for fields that only checkpoints keep. Money
and tokens are not here, because a rewind does not return them (see `protocol.job_record`).
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.evidence import CLAIM_CHARACTERS, HELD, Evidence, EvidenceKind, SeenWork
from protocol.phase import Phase
from protocol.scope_ledger import (
    MAX_ITEMS,
    MAX_SCOPE_BYTES,
    SHORT_REASON,
    TEXT_CHARACTERS,
    ScopeItem,
    is_empty_reason,
    listed_item,
    named_item_ids,
    scope_bytes,
)
from protocol.short_text import first_few, one_line
from protocol.todo_list import Todo


class Remark(Data):
    """A person's remark to the working agent; it applies until the job ends."""

    text: str
    by: str = ""
    phase: int = 0
    unit: str = ""
    """The unit of a project whose jobs hear it; empty for all."""

    @property
    def line(self) -> str:
        where = f" in phase {self.phase}" if self.phase else ""
        return f"From {self.by or 'a person'}{where}: {self.text.strip()}"


class DeferredWrite(Data):
    """A write to be repeated once a shared store answers again."""

    kind: str
    """Selects the code that performs the write (`activities.stores.outbox`)."""
    key: str
    at: int
    """Time at which its call was scheduled, epoch milliseconds."""
    about: str = ""
    """Subject of the write: the name of a requirement."""
    data: dict[str, Any] = Field(default_factory=dict)


class UsedSkill(Data):
    name: str
    todo: int
    message: int
    """Number of the message with the body."""


class ShownImage(Data):
    """An image shown by a result; a message after the reply's results contains it."""

    pointer: str
    """Description in words; after a compaction only this remains."""
    blob: str
    """Hex id of the blob in the checkpoint's `images/`."""
    mime: str
    tokens: int


class JobState(Data):
    step: int = 0
    """Model calls so far; never goes down."""
    rewinds: int = 0
    phase: Phase
    scope: list[ScopeItem] = Field(default_factory=list)
    remarks: list[Remark] = Field(default_factory=list)
    """Remarks of people, oldest first. A rewind does not remove them."""

    # Stored in checkpoints and not in workflow memory (`without_notes`), from here on.
    seen: SeenWork = Field(default_factory=SeenWork)
    phase_seen: SeenWork = Field(default_factory=SeenWork)
    found_tools: list[str] = Field(default_factory=list)
    """Deferred tools that searches returned in this phase, in that order."""
    used_skills: list[UsedSkill] = Field(default_factory=list)
    images: list[ShownImage] = Field(default_factory=list)
    """Images of the newest reply, until all its calls have results."""
    unused_tools: list[str] = Field(default_factory=list)
    """Tools that this phase does not offer because the job cannot use them."""
    issue: str = ""
    """Problem of the last attempt, until a phase of work is completed."""
    judged: str = ""
    """Fingerprint of the work that the verdicts of the statements hold for; empty before a review.
    """
    token_ratio: float = 1.0
    """Tokens of a request by the endpoint's count for one by ours, which it corrects."""
    deferred_writes: list[DeferredWrite] = Field(default_factory=list)
    last_requirement: int = 0
    """Highest number of a requirement so far. It never goes down, so that no id is given twice."""

    def complete_todo(
        self,
        todo_id: int,
        notes: str = "",
        *,
        commit: str = "",
        held: str = "",
        done: bool = True,
        holds: Callable[[ScopeItem], bool] = lambda _: True,
    ) -> bool:
        """Complete a todo, and the items that it covers if work was seen for it; return whether
        there was any, or a look that the notes claim.

        Args:
            held: The condition of `done_when` that the system has just seen to hold.
            done: Whether the file that it updates has changed; else it is passed over.
            holds: Whether what an item names, such as a file, is there.
        """
        todo = next((each for each in self.phase.todos if each.id == todo_id), None)
        if todo is None:
            return False
        covered = self.covered_by(todo)
        self.phase.complete(todo_id, notes, done=done)
        if evidence := self._todo_evidence(todo, commit, held):
            self._complete_items(covered, evidence, holds)
        self.seen = SeenWork()
        return evidence is not None

    def _todo_evidence(self, todo: Todo, commit: str, held: str) -> Evidence | None:
        """What was seen for the current todo; None if that covers no item."""
        seen, phase = self.seen, self.phase.number
        # Before any work a condition holds by what was there at the beginning.
        has_worked = self.phase_seen.calls or any(
            i.evidence and i.evidence.calls for i in self.scope
        )
        if seen.calls or (held and has_worked):
            kind: EvidenceKind = "work" if seen.calls else "check"
            evidence = Evidence.of(kind, phase, seen, commit)
            evidence.checks = [*evidence.checks, *([f"{held}{HELD}"] if held else [])]
        else:
            if held:
                seen.add_look(held)
            return self._look_evidence(seen, [todo], commit)
        evidence.todo = todo.id
        return evidence

    def _look_evidence(self, seen: SeenWork, todos: Sequence[Todo], commit: str) -> Evidence | None:
        """What the agent claims of a look: by a todo's notes that name what it read or say what
        came of a program, or by what it wrote down in `notes/`; None if it claims nothing.
        """
        saying = [
            todo
            for todo in todos
            if any(_names_look(todo.notes, name) for name in seen.looked)
            or (seen.runs and re.search(r"\w", todo.notes))
        ]
        if not (saying or seen.kept):
            return None
        evidence = Evidence.of("look", self.phase.number, seen, commit)
        said = " ".join(todo.notes for todo in saying or todos if todo.notes)
        kept = f"wrote down {first_few(seen.kept, 3)}" if seen.kept else ""
        evidence.claim = one_line("; ".join(filter(None, [said, kept])), CLAIM_CHARACTERS)
        evidence.todo = (saying or todos)[-1].id
        return evidence

    def covered_by(self, todo: Todo) -> list[str]:
        """The items that a todo covers: those it names, else the next open one of its phase.

        If an open todo names the next item, that item stays open until then: no later item is
        completed in its place.
        """
        if todo.items or self.phase.purpose != "work":
            return todo.items
        due = set(self.phase.covers) - set(self.phase.shared)
        following = (item.id for item in self.open_scope if item.id in due)
        return list(following)[:1]

    def complete_list(
        self, commit: str = "", *, holds: Callable[[ScopeItem], bool] = lambda _: True
    ) -> None:
        """Complete the steps of a phase of work whose list is done, and what its todos named.

        For the items placed there the work is noted, if any was seen: they are complete once no
        other open phase stands for them (`complete_worked_items`). A list in which the agent only
        looked completes the steps of its phase, and its items if it says what it looked at. An
        item that names no file and whose own todo shows no work is claimed only.
        """
        phase, seen = self.phase, self.phase_seen
        if phase.purpose != "work" or seen.is_idle:
            return
        evidence = Evidence.of("list", phase.number, seen, commit)
        claimed = evidence.model_copy(update={"claim": WITH_ITS_LIST})
        done = [todo for todo in phase.todos if todo.done]
        claim = None if seen.calls or not done else self._look_evidence(seen, done, commit)
        named = {name for todo in done for name in todo.items}
        due = [item for item in self.open_items if item.id in named or item.id in phase.covers]
        amiss = {item.id for item in due if not (item.is_step or holds(item))}
        for item in due:
            if item.is_step and named_item_ids(item.text, amiss):
                # The box says itself that it stands for what is not there.
                continue
            if item.is_step:
                item.evidence = evidence
            elif seen.calls:
                names_file = any(each.paths for each in item.statements)
                is_seen = item.evidence or item.id not in named or names_file
                item.evidence = evidence if is_seen else claimed
            elif claim and not item.evidence:
                item.evidence = claim
            if item.evidence and (item.id in named or item.is_step):
                self._complete_items([item.id], item.evidence, holds)

    def note_given_up_list(self, commit: str = "") -> None:
        """Note a given-up list's work with its items, which a later list may only check."""
        phase, seen = self.phase, self.phase_seen
        if phase.purpose == "work" and seen.calls:
            evidence = Evidence.of("list", phase.number, seen, commit)
            for item in self.open_scope:
                item.evidence = evidence if item.id in phase.covers else item.evidence

    def complete_worked_items(
        self, waiting: Collection[str], *, holds: Callable[[ScopeItem], bool] = lambda _: True
    ) -> None:
        """Complete the items whose work is done, except those `waiting` for a phase of the plan."""
        for item in self.open_scope:
            if item.evidence and item.id not in waiting:
                self._complete_items([item.id], item.evidence, holds)

    def complete_on_the_spot(
        self, commit: str, *, holds: Callable[[ScopeItem], bool] = lambda _: True
    ) -> None:
        """Complete what is open at the end of the job, by work of its last strategic phase."""
        evidence = Evidence.of("on the spot", self.phase.number, self.phase_seen, commit)
        self._complete_items([item.id for item in self.open_items], evidence, holds)

    def _complete_items(
        self, ids: Sequence[str], evidence: Evidence, holds: Callable[[ScopeItem], bool]
    ) -> None:
        pending = {item for todo in self.phase.open_todos for item in todo.items}
        for item in self.scope:
            if item.id in ids and item.status == "open":
                item.evidence = evidence.of_step if item.is_step else evidence
                if item.id not in pending and holds(item):
                    item.status = "completed"

    @property
    def open_items(self) -> list[ScopeItem]:
        return [item for item in self.scope if item.status == "open"]

    @property
    def open_scope(self) -> list[ScopeItem]:
        return [item for item in self.open_items if not item.is_step]

    def add_item(self, text: str, source: Literal["told", "added"] = "added") -> ScopeItem:
        """Add an item that a person told or the agent found; ValueError if the ledger is full."""
        if len(self.scope) >= MAX_ITEMS:
            raise ValueError(f"The scope has {MAX_ITEMS:,} items, more cannot be added.")
        if self._scope_is_large:
            raise ValueError(
                f"The items of the scope have {MAX_SCOPE_BYTES:,} bytes, more cannot be added."
            )
        number = 1 + sum(item.source in ("told", "added") for item in self.scope)
        item = listed_item(f"A{number}", one_line(text, TEXT_CHARACTERS), source)
        self.scope = [*self.scope, item]
        return item

    def drop_items(self, ids: Sequence[str], reason: str) -> list[ScopeItem]:
        """Drop items and steps with a reason: open ones, and those that the review found unmet.

        Raises ValueError.
        """
        droppable = [item for item in self.scope if item.status == "open" or item.is_unmet]
        open_ids = [item.id for item in droppable]
        named = [name for text in ids for name in named_item_ids(text, open_ids) or [text]]
        if unknown := [name for name in named if name not in open_ids]:
            raise ValueError(
                f"These are not open: {first_few(unknown, 10)}. Open are: "
                f"{first_few(open_ids, 30) or 'none'}."
            )
        dropped = [item for item in droppable if item.id in named]
        if any(is_empty_reason(reason, item.text) for item in dropped):
            raise ValueError(
                f"The reason {one_line(reason, 60)!r} says nothing: say what about the job makes "
                "this needless or impossible."
            )
        most = SHORT_REASON if self._scope_is_large else TEXT_CHARACTERS
        for item in dropped:
            item.status, item.reason = "dropped", one_line(reason, most)
        return dropped

    def reopen_items(self, ids: Sequence[str]) -> list[ScopeItem]:
        reopened = [item for item in self.scope if item.id in ids and item.status == "dropped"]
        for item in reopened:
            item.status, item.reason = "open", ""
        return [item.slim for item in reopened]

    @property
    def _scope_is_large(self) -> bool:
        return scope_bytes(self.scope) >= MAX_SCOPE_BYTES

    def take_items(self, changed: Sequence[ScopeItem]) -> None:
        news = {item.id: item for item in changed}
        existing = [news.pop(item.id, item) for item in self.scope]
        self.scope = [*existing, *news.values()]

    def items_changed_since(self, before: Sequence[ScopeItem]) -> list[ScopeItem]:
        """The items that differ from an earlier ledger, as workflow memory has them."""
        earlier = {item.id: item for item in before}
        return [item.slim for item in self.scope if earlier.get(item.id) != item]

    def deep_copy(self) -> "JobState":
        """An independent copy. Via JSON it takes a fifth of the time of `copy.deepcopy`."""
        return JobState.model_validate_json(self.model_dump_json(exclude_defaults=True))

    def without_commits(self) -> "JobState":
        """A copy without ids of commits, which differ between two runs of the same steps."""
        alike = self.deep_copy()
        for item in alike.scope:
            if item.evidence:
                item.evidence.commit = ""
        return alike

    def without_notes(self) -> "JobState":
        """A copy for workflow memory, without the fields that only checkpoints store."""
        slim = self.model_copy(deep=True)
        slim.scope = [item.slim for item in slim.scope]
        for todo in slim.phase.todos:
            todo.notes = ""
            todo.done_when = None
        for name in CHECKPOINT_ONLY:
            setattr(slim, name, JobState.model_fields[name].get_default(call_default_factory=True))
        return slim


WITH_ITS_LIST = "it is done with the rest of its list"
"""Claim of an item whose own todo shows no work, and of which no named file speaks."""
CHECKPOINT_ONLY = list(JobState.model_fields)[list(JobState.model_fields).index("seen") :]
"""Fields that only checkpoints store."""


def _names_look(notes: str, name: str) -> bool:
    """Return whether notes name a look: its path or the end of it, or a word of its command."""
    words = [word for word in name.split() if len(word) > 2 and not word.startswith("-")]
    shown = {name, *words, *(word.rpartition("/")[2] for word in words)} - {""}
    return any(
        re.search(rf"(?<!\w){re.escape(each)}(?!\w)", notes, re.IGNORECASE) for each in shown
    )
