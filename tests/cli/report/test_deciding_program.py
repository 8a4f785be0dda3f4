"""Whether the exit code of a command line is that of the program under test."""

import pytest

from cli.report.checkpoint_facts import deciding_program


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python3 -m unittest", "python3"),
        ("cd repo && PYTHONPATH=. /usr/bin/python3 -m unittest 2>&1", "python3"),
        ("make test && echo fine", "make"),
        ("(cd repo; ./run-tests)", "run-tests"),
        ("ls -R repo", ""),
        ("echo python3 -m unittest", ""),
        ("python3 -m unittest | tail -5", ""),
        ("python3 -m unittest || true", ""),
        ("python3 -m unittest; echo $?", ""),
        ("(python3 -m unittest); true", ""),
        ("python3 -m unittest\ntrue", ""),
        ("cat 'unclosed", ""),
    ],
)
def test_the_program_that_decides_is_found(command: str, program: str) -> None:
    assert deciding_program(command) == program
