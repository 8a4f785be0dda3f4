"""Runs pytest or unittest on a product and reports every test by name.

The system starts this file by the sandbox's own Python with `-I -B`, so that neither variables nor
modules of the product are read before the runner. It imports nothing of this project.

A parent process holds the key of the report; its child runs the tests and sends each result through
a pipe. The parent writes the report when the child has ended, so that the tests find no report that
they could rewrite.

    python3 -I -B python_runner.py <folder with order.json> [coverage]
"""

import ctypes
import hashlib
import hmac
import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Hook = TypeVar("Hook", bound=Callable[..., Any])

MOST_ERROR = 1000
NO_RUNNER = 127
"""Exit code that says that the runner is not installed."""


class Report:
    """The child's end of the pipe."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.pid = descriptor, os.getpid()
        self.running: list[int] = []

    def send(self, **event: Any) -> None:
        # A test that forks has a copy of the runner, whose results are nobody's.
        if os.getpid() == self.pid:
            data = (json.dumps(event) + "\n").encode()
            while data:
                data = data[os.write(self.descriptor, data) :]


def run_unittest(report: Report, arguments: list[str]) -> int:
    """Run unittest as its command line would."""
    unittest = importlib.import_module("unittest")

    class Runner(unittest.TextTestRunner):  # type: ignore[name-defined,misc]
        resultclass = _reporting_results(unittest, report)

        def run(self, test: Any) -> Any:
            report.send(planned=test.countTestCases())
            return super().run(test)

    program = unittest.main(
        module=None, argv=["python3 -m unittest", *arguments], testRunner=Runner, exit=False
    )
    return 0 if program.result.wasSuccessful() else 1


def _reporting_results(unittest: Any, report: Report) -> type[Any]:
    """Return the results of a run that report each test as it ends."""

    class Result(unittest.TextTestResult):  # type: ignore[misc]
        outcome = error = ""

        def startTest(self, test: Any) -> None:
            super().startTest(test)
            self.outcome, self.error = "passed", ""
            report.running.append(1)

        def stopTest(self, test: Any) -> None:
            super().stopTest(test)
            report.running.clear()
            # It stands in the place of the tests of a module that cannot be imported.
            group = type(test).__name__ == "_FailedTest"
            report.send(test=test.id(), outcome=self.outcome, group=group, error=self.error)

        def addError(self, test: Any, err: Any) -> None:
            super().addError(test, err)
            self.mark(test, "failed", err)

        def addFailure(self, test: Any, err: Any) -> None:
            super().addFailure(test, err)
            self.mark(test, "failed")

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
            super().addSubTest(test, subtest, err)
            if err is not None:
                self.mark(test, "failed", err)

        def addSkip(self, test: Any, reason: str) -> None:
            super().addSkip(test, reason)
            if self.outcome != "failed":
                self.mark(test, "skipped")

        def addExpectedFailure(self, test: Any, err: Any) -> None:
            super().addExpectedFailure(test, err)
            self.mark(test, "expected")

        def addUnexpectedSuccess(self, test: Any) -> None:
            super().addUnexpectedSuccess(test)
            self.mark(test, "failed")

        def mark(self, test: Any, outcome: str, err: Any = None) -> None:
            self.outcome = outcome
            self.error = f"{err[0].__name__}: {err[1]}" if err else self.error
            if not isinstance(test, unittest.TestCase):
                # The set-up of a class or a module, whose tests are not run.
                report.send(test=test.id(), outcome=outcome, group=True)

    return Result


def run_pytest(report: Report, arguments: list[str]) -> int:
    """Run pytest with a plugin that reports each test."""
    pytest = importlib.import_module("pytest")

    def hook(**options: Any) -> Callable[[Hook], Hook]:
        return lambda function: pytest.hookimpl(function, **options)

    class Recorder:
        outcomes: dict[str, str] = {}  # noqa: RUF012
        errors: dict[str, str] = {}  # noqa: RUF012

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> Any:
            before = [item.nodeid for item in items]
            yield
            node_ids = {item.nodeid for item in items}
            for name in before:
                if name not in node_ids:
                    send(test=name, outcome="deselected")

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self) -> Any:
            running.append(1)
            yield
            running.clear()

        @hook(trylast=True)
        def pytest_collection_finish(self, session: Any) -> None:
            report.send(planned=len(session.items))

        @hook(trylast=True)
        def pytest_collectreport(self, report: Any) -> None:
            if report.outcome == "failed":
                error = str(report.longrepr)
                send(test=report.nodeid, outcome="failed", group=True, error=error[-MOST_ERROR:])

        @hook(trylast=True)
        def pytest_runtest_logreport(self, report: Any) -> None:
            name, expected = report.nodeid, hasattr(report, "wasxfail")
            if report.outcome == "failed":
                self.outcomes[name] = "failed"
                crash = getattr(report.longrepr, "reprcrash", None)
                self.errors[name] = str(getattr(crash, "message", ""))[:MOST_ERROR]
            elif report.outcome == "skipped" and self.outcomes.get(name) != "failed":
                self.outcomes[name] = "expected" if expected else "skipped"
            elif report.when == "call":
                self.outcomes.setdefault(name, "passed")
            if report.when == "teardown":
                error = self.errors.pop(name, "")
                send(test=name, outcome=self.outcomes.pop(name, "passed"), error=error)

    send, running = report.send, report.running
    return int(pytest.main(arguments, plugins=[Recorder()]))


def run_child(report: Report, order: dict[str, Any]) -> int:
    """Import the runner before the product can be found, then run it."""
    runner = order["runner"]
    try:
        importlib.import_module(runner)
    except ImportError as missing:
        if missing.name != runner:
            raise
        sys.stderr.write(f"No module named {runner}\n")
        return NO_RUNNER
    sys.path[:0] = order["path"]
    if order["mutation"]:
        # Changed functions look here whether a test is running: they change nothing at import.
        setattr(importlib.import_module("builtins"), order["mutation"], report.running)
    sys.argv = [runner, *order["arguments"]]
    run = run_pytest if runner == "pytest" else run_unittest
    code = run(report, order["arguments"])
    report.send(end=code)
    return code


def read_events(source: int, data: bytearray) -> None:
    """Collect what the child sends."""
    while piece := os.read(source, 65536):
        data += piece


def main(place: Path) -> int:
    """Run the tests in a child and sign what it reports."""
    source, sink = os.pipe()
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        os.close(go)
        with os.fdopen(ready, "rb") as orders:
            order = json.loads(orders.read())
        code = 1
        try:
            code = run_child(Report(sink), order)
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1 if ending.code else 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return code
    os.close(sink)
    os.close(ready)
    # No process of the tests may look into this one.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    path = place / "order.json"
    order = json.loads(path.read_text())
    path.unlink()
    key = bytes.fromhex(order.pop("key"))
    with os.fdopen(go, "wb") as orders:
        orders.write(json.dumps(order).encode())
    data = bytearray()
    reader = threading.Thread(target=read_events, args=(source, data), daemon=True)
    reader.start()
    _, status = os.waitpid(child, 0)
    for _ in range(600):
        reader.join(0.05)
        # A process that the tests left behind may hold the pipe open.
        if not reader.is_alive() or data.rpartition(b'{"end"')[1]:
            break
    sign = hmac.new(key, bytes(data), hashlib.sha256).hexdigest().encode()
    (place / "report.jsonl").write_bytes(sign + b"\n" + bytes(data))
    # Coverage of the child is in its own file, which this process would overwrite at its end.
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
