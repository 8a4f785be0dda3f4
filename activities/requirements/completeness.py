"""What was decided about a document as a whole: which numbers are requirements, and the sample.

The sample is of the sentences that nothing cites. It is drawn by a seed, read by the agent or a
person, and says how many requirements may be missed at most.
"""

import hashlib
import math
import random
from collections.abc import Sequence

from pydantic import Field, TypeAdapter

from activities.checkpoints import Files
from activities.requirements.requirement_files import read_workspace_list
from activities.text.safe_text import as_readable_json
from protocol.data_model import Data

PATH = "requirements/completeness.json"
MAX_SAMPLE = 150
RISKS = (0.04, 0.005)
"""Risk that the bound of a round is wrong; each further round has half the risk of the one before,
so that all rounds of a document together are wrong in at most one of twenty."""


class NumberDecision(Data):
    """Whether the entries of a numbering class are requirements, and why."""

    are_requirements: bool
    reason: str


class SampledSentence(Data):
    """A sentence of a sample, and whether it is a requirement; None if nobody has read it."""

    id: str
    page: int
    text: str
    is_requirement: bool | None = None
    reason: str = ""


class SampleRound(Data):
    """A sample of a document: how many sentences nothing touched, and those that were drawn."""

    population: int
    drawn: list[SampledSentence]

    @property
    def unread(self) -> list[SampledSentence]:
        return [each for each in self.drawn if each.is_requirement is None]

    @property
    def hits(self) -> list[SampledSentence]:
        """Those that are requirements."""
        return [each for each in self.drawn if each.is_requirement]


class DocumentDecisions(Data):
    """The decisions about one document."""

    document: str
    numbers: dict[str, NumberDecision] = Field(default_factory=dict)
    rounds: list[SampleRound] = Field(default_factory=list)

    @property
    def hits(self) -> list[SampledSentence]:
        return [each for each_round in self.rounds for each in each_round.hits]

    @property
    def bound(self) -> float:
        """Share of the untouched sentences that may be requirements at most; 1 if none was read."""
        if not self.rounds or self.rounds[-1].hits:
            return 1.0
        return self.missed / max(1, self.rounds[-1].population)

    def is_outgrown(self, untouched: Sequence[tuple[int, str]], limit: float) -> bool:
        """Whether many more sentences are left out now than when the last sample was drawn.

        One more is not, nor the share that may be missed.
        """
        if not self.rounds:
            return False
        last = self.rounds[-1]
        drawn = {(each.page, each.text) for each in last.drawn}
        return len(drawn.union(untouched)) > last.population * (1 + limit) + 1

    @property
    def missed(self) -> int:
        """How many requirements the last sample leaves possible at most."""
        last = self.rounds[-1]
        read = len(last.drawn) - len(last.unread)
        return most_missed(last.population, read, risk_of_round(len(self.rounds)))

    def next_sample(
        self,
        untouched: Sequence[tuple[int, str]],
        first: int,
        limit: float,
        found: int | None = None,
    ) -> int:
        """Draw the next sentences and return how many; 0 if the sample is large enough.

        Args:
            untouched: Page and text of each sentence that nothing cites now.
            first: Number of sentences to begin with.
            limit: Share that may be missed: of these sentences, and of all requirements.
            found: Number of requirements that are found, if that counts as well. A sample larger
                than `MAX_SAMPLE` is not drawn for its sake.
        """
        new = not self.rounds or bool(self.rounds[-1].hits) or self.is_outgrown(untouched, limit)
        if not new and self.rounds[-1].unread:
            return 0
        if new and not untouched:
            self.rounds.append(SampleRound(population=0, drawn=[]))
            return 0
        if new:
            self.rounds.append(SampleRound(population=len(untouched), drawn=[]))
        last = self.rounds[-1]
        risk = risk_of_round(len(self.rounds))
        enough = _least_sample(last.population, limit * last.population, risk)
        if found is not None and enough < MAX_SAMPLE:
            share = limit / (1 - limit)
            enough = max(
                enough, min(MAX_SAMPLE, _least_sample(last.population, share * found, risk))
            )
        missing = first if new else enough - len(last.drawn)
        if missing <= 0:
            return 0
        known = {(each.page, each.text) for each in last.drawn}
        rest = [each for each in untouched if each not in known]
        said = [str(len(self.rounds)), str(len(last.drawn)), *(text for _, text in untouched)]
        seed = hashlib.sha256("\0".join(said).encode(errors="replace")).digest()
        chosen = random.Random(seed).sample(range(len(rest)), min(missing, len(rest)))
        chosen.sort()
        count = sum(len(each.drawn) for each in self.rounds)
        last.drawn += [
            SampledSentence(id=f"S-{count + n:03d}", page=rest[place][0], text=rest[place][1])
            for n, place in enumerate(chosen, 1)
        ]
        return len(chosen)


def risk_of_round(number: int) -> float:
    return RISKS[0] if number == 1 else RISKS[1] / 2 ** (number - 2)


def most_missed(population: int, read: int, risk: float) -> int:
    """Return how many requirements the population may have at most, if none was among those read.

    More would have shown one in the sample with a probability above 1 - `risk` (hypergeometric).
    """
    low, high = 0, population - read
    while low < high:
        middle = (low + high + 1) // 2
        if _log_unseen(population, middle, read) >= math.log(risk):
            low = middle
        else:
            high = middle - 1
    return low


def _log_unseen(population: int, requirements: int, read: int) -> float:
    """Return the logarithm of the probability that a sample has none of the requirements."""
    if read > population - requirements:
        return -math.inf
    return sum(
        math.lgamma(n + 1) * sign
        for n, sign in (
            (population - requirements, 1),
            (population - requirements - read, -1),
            (population, -1),
            (population - read, 1),
        )
    )


def _least_sample(population: int, limit: float, risk: float) -> int:
    """Return how many sentences have to be read so that at most `limit` may be requirements."""
    low, high = 0, population
    while low < high:
        middle = (low + high) // 2
        if most_missed(population, middle, risk) <= limit:
            high = middle
        else:
            low = middle + 1
    return low


_FILE = TypeAdapter(list[DocumentDecisions])


def read_decisions(files: Files) -> dict[str, DocumentDecisions]:
    """Return the decisions by document. Raises InvalidWorkspaceFile if they cannot be read."""
    return {each.document: each for each in read_workspace_list(files, PATH, _FILE) or []}


def put_decisions(files: Files, decisions: dict[str, DocumentDecisions]) -> Files:
    content = [decisions[name].model_dump(exclude_defaults=True) for name in sorted(decisions)]
    return files.write(PATH, as_readable_json(content).encode())
