"""The graph as a ladybug database in a folder, for the workers of one host.

Ladybug is a native library that runs queries written by a model: deeply nested brackets crash it,
and some functions ignore its time limit or buffer pool size (both were observed). So every read or
write runs in its own process, which takes the lock, has limits, and can be killed.
"""

import json
from pathlib import Path

from activities.requirements.graph import cypher
from activities.requirements.graph.interface import (
    GraphCapabilities,
    GraphLimits,
    GraphQuery,
    GraphQueryError,
    GraphRows,
    GraphTable,
    GraphUnavailableError,
)
from activities.runtime.child_process import ChildResult, run_child
from config.schema.graph import GraphSchema

_CHILD = Path(__file__).resolve().with_name("embedded_child.py")
_GRACE_SECONDS = 3
DATABASE = "graph.lbug"


class EmbeddedGraph:
    """The database in `folder`, created on first use."""

    capabilities = GraphCapabilities(enforces_schema=True, refuses_writes=True, limits_memory=True)

    def __init__(
        self, folder: Path, schema: GraphSchema, limits: GraphLimits | None = None
    ) -> None:
        self._folder = folder
        self._schema = schema
        self._limits = limits or GraphLimits()

    def read(self, *queries: GraphQuery) -> list[GraphRows]:
        return self._run_queries(queries, write=False)[0]

    def write(self, *queries: GraphQuery) -> list[GraphRows]:
        return self._run_queries(queries, write=True)[0]

    def schema(self) -> list[GraphTable]:
        return self._run_queries((), write=False)[1]

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _run_queries(
        self, queries: tuple[GraphQuery, ...], *, write: bool
    ) -> tuple[list[GraphRows], list[GraphTable]]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GraphUnavailableError(
                f"The graph's folder {self._folder} cannot be made: {error}."
            ) from None
        limits = self._limits
        request = {
            "path": str(self._folder / DATABASE),
            "lock": str(self._folder / "lock"),
            "tables": cypher.table_cypher(self._schema),
            "wanted": self._required_tables(),
            "queries": [(query.cypher, query.parameters) for query in queries],
            "write": write,
            "wait_seconds": limits.wait_seconds,
            "seconds": limits.seconds,
            "rows": limits.rows,
            "bytes": limits.bytes,
            "memory_mb": limits.memory_mb,
        }
        seconds = limits.wait_seconds + limits.seconds + _GRACE_SECONDS
        child = run_child(_CHILD, [], json.dumps(request).encode(), seconds)
        answer = self._parse_answer(child, write=write)
        return (
            [GraphRows.model_validate(rows) for rows in answer["rows"]],
            [GraphTable.model_validate(table) for table in answer["tables"]],
        )

    def _required_tables(self) -> list[dict[str, object]]:
        required: list[dict[str, object]] = []
        for name, node in self._schema.nodes.items():
            required.append({"name": name, "properties": list(node.properties), "ends": []})
        for name, relation in self._schema.relations.items():
            members = {"properties": list(relation.properties), "ends": relation.ends}
            required.append({"name": name, **members})
        return required

    def _parse_answer(self, child: ChildResult, *, write: bool) -> dict[str, list[object]]:
        limits = self._limits
        if child.was_too_slow:
            problem = f"It took more than {limits.seconds:g} s and was stopped."
        elif child.was_too_big:
            problem = f"It needs more than {limits.memory_mb} MB of memory and was stopped."
        elif child.crash_signal:
            problem = f"It crashed the database engine ({child.crash_signal})."
        elif child.status != 0:
            raise RuntimeError(
                f"the graph process failed with status {child.status}: {child.last_line}"
            )
        else:
            answer: dict[str, list[object]] = json.loads(child.stdout)
            if "rows" in answer:
                return answer
            if "away" in answer:
                raise GraphUnavailableError(
                    f"The graph in {self._folder} cannot be used: {answer['away']}. See that it is "
                    "readable and writable, or put it back from a backup."
                )
            reason = str(answer.get("refused", "std::bad_alloc"))
            problem = next(
                (
                    description
                    for sign, description in _RESOURCE_PROBLEMS.items()
                    if reason.startswith(sign)
                ),
                "",
            )
            if not problem:
                raise GraphQueryError(reason)
        if write:
            # Writes are our own few statements: the machine is at fault, and a retry may succeed.
            raise GraphUnavailableError(
                f"The graph in {self._folder} did not take a write: {problem}"
            )
        raise GraphQueryError(problem)


_RESOURCE_PROBLEMS = {
    "Interrupted": "It took too long and was stopped.",
    "std::bad_alloc": "It needs too much memory and was stopped.",
    "Buffer manager exception": "It needs too much memory and was stopped.",
}


def embedded_graph_folder(root: Path) -> Path:
    """Return the folder of the embedded graph within a workspaces root."""
    return root / ".longhaul" / "graph"
