"""Child process of `embedded.py`: a JSON request on standard input, the answer on standard output.

It takes the lock, opens the database, runs the queries, closes it and ends. An engine crash, a
query that ignores its time limit or one that eats memory ends only this process and releases its
lock. It is run by path with empty parent packages, whose `__init__` would load the whole worker.
"""

import contextlib
import json
import math
import resource
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

_STORE_MB = 4096
"""Size limit of the database; the engine reserves that much address space."""
_POOL_MB = 256
_GRACE_SECONDS = 2


def _limit_embedded_child(memory_mb: int) -> None:
    memory = (_STORE_MB + memory_mb) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has this limit but refuses to set it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _register_embedded_package(name: str, folder: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


class _OpenDatabase:
    """An open database, closed at the end of the block."""

    def __init__(self, path: str, seconds: float, *, read_only: bool) -> None:
        import ladybug  # noqa: PLC0415 - only after the memory limit is set

        opened = partial(
            ladybug.Database,
            path,
            buffer_pool_size=_POOL_MB * 1024 * 1024,
            # One thread, so that rows come in the same order each time.
            max_num_threads=1,
            max_db_size=_STORE_MB * 1024 * 1024,
        )
        try:
            self._database = opened(read_only=read_only)
        except RuntimeError:
            # A killed writer may leave an unfinished checkpoint, or half a record at the end of the
            # log, which readers refuse to open. That record was never confirmed, so a writer may
            # drop it. Keep a copy of the log, since it might be damaged elsewhere.
            log = Path(f"{path}.wal")
            if log.exists():
                shutil.copyfile(log, f"{log}.torn")
            opened(throw_on_wal_replay_failure=False).close()
            self._database = opened(read_only=read_only)
        self._connection = ladybug.Connection(self._database)
        self._connection.set_query_timeout(int(seconds * 1000))

    def __enter__(self) -> "_OpenDatabase":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._database.close()

    def run(self, cypher: str, parameters: dict[str, Any] | None = None) -> Any:
        results = self._connection.execute(cypher, parameters or {})
        return results[-1] if isinstance(results, list) else results

    def list_tables(self) -> list[dict[str, Any]]:
        tables = []
        for row in self.run("CALL show_tables() RETURN name, type ORDER BY name").get_all():
            name, node = row[0], row[1] == "NODE"
            info = self.run(f"CALL table_info('{name}') RETURN name, type").get_all()
            ends = [] if node else self.run(f"CALL show_connection('{name}') RETURN *").get_all()
            tables.append(
                {
                    "name": name,
                    "node": node,
                    "properties": dict(info),
                    "ends": sorted([end[0], end[1]] for end in ends),
                }
            )
        return tables


def _lacks_required_tables(tables: list[dict[str, Any]], required: list[dict[str, Any]]) -> bool:
    existing = {table["name"]: table for table in tables}
    return any(
        table["name"] not in existing
        or not set(table["properties"]) <= set(existing[table["name"]]["properties"])
        or any(pair not in existing[table["name"]]["ends"] for pair in table["ends"])
        for table in required
    )


def _answer_graph_request(request: dict[str, Any]) -> dict[str, Any]:
    path, seconds, writes = request["path"], request["seconds"], request["write"]
    for _ in range(2):
        if Path(path).exists():
            with _OpenDatabase(path, seconds, read_only=not writes) as database:
                tables = database.list_tables()
                if not _lacks_required_tables(tables, request["wanted"]):
                    return _run_graph_queries(database, request) | {"tables": tables}
        with _OpenDatabase(path, seconds, read_only=False) as database:
            # One transaction is atomic and much faster than single statements.
            database.run("BEGIN TRANSACTION")
            for statement in request["tables"]:
                database.run(statement)
            database.run("COMMIT")
    return {"away": "its tables do not take what the schema declares"}


def _run_graph_queries(database: _OpenDatabase, request: dict[str, Any]) -> dict[str, Any]:
    results = []
    try:
        if request["write"]:
            database.run("BEGIN TRANSACTION")
        for cypher, parameters in request["queries"]:
            result = database.run(cypher, parameters)
            results.append(_read_rows_in_graph_child(result, request["rows"], request["bytes"]))
            result.close()
        if request["write"]:
            database.run("COMMIT")
    except MemoryError:
        return {"memory": True}
    # The only exception type of the engine.
    except RuntimeError as error:
        return {"refused": str(error)}
    return {"rows": results}


def _read_rows_in_graph_child(result: Any, most: int, most_bytes: int) -> dict[str, Any]:
    rows: list[list[object]] = []
    size, more = 0, False
    while result.has_next():
        row = [_plain_embedded_value(value) for value in result.get_next()]
        size += len(json.dumps(row))
        if len(rows) == most or size > most_bytes:
            more = True
            break
        rows.append(row)
    return {"columns": result.get_column_names(), "rows": rows, "more": more}


def _plain_embedded_value(value: object) -> object:
    """Return the value as JSON types, without the engine's internal ids."""
    if isinstance(value, dict):
        properties = {k: v for k, v in value.items() if k not in ("_ID", "_SRC", "_DST", "_LABEL")}
        if "_LABEL" in value:
            values = {
                key: _plain_embedded_value(properties[key])
                for key in sorted(properties)
                if properties[key] is not None
            }
            return {"_label": value["_LABEL"], **values}
        return {str(key): _plain_embedded_value(inner) for key, inner in properties.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_embedded_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _run_embedded_child() -> None:
    request = json.load(sys.stdin)
    _limit_embedded_child(request["memory_mb"])
    folder = Path(__file__).resolve().parent
    activities = folder.parents[1]
    _register_embedded_package("activities", activities)
    _register_embedded_package("activities.checkpoints", activities / "checkpoints")
    from activities.checkpoints.locks import file_lock  # noqa: PLC0415

    try:
        with file_lock(Path(request["lock"]), seconds=request["wait_seconds"]):
            # If the parent is gone or frozen, this process must still release the lock.
            signal.alarm(math.ceil(request["seconds"]) + _GRACE_SECONDS)
            answer = _answer_graph_request(request)
    except TimeoutError:
        answer = {"away": f"others have been using it for {request['wait_seconds']:g} s"}
    except MemoryError:
        answer = {"memory": True}
    except (OSError, RuntimeError) as error:
        answer = {"away": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _run_embedded_child()
