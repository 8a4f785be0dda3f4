"""Commands in messages are those that people can type where the program runs."""

import pytest

from engine.connection import connect_client
from engine.program_names import KEEP_DEMO, name_running_program
from engine.setup_errors import SetupError

TEXT = f"start one with `{KEEP_DEMO}`, then `python starter.py list`; restart worker.py"
INSTALLED = "start one with `longhaul demo --keep`, then `longhaul list`; restart longhaul-worker"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("starter.py", TEXT),
        ("/opt/longhaul/worker.py", TEXT),
        ("/home/me/.local/bin/longhaul", INSTALLED),
        ("/home/me/.local/bin/longhaul-worker", INSTALLED),
    ],
)
def test_commands_are_named_as_people_have_them(monkeypatch, program, expected):
    monkeypatch.setattr("sys.argv", [program])
    assert name_running_program(TEXT) == expected


async def test_without_a_server_nobody_is_sent_to_a_makefile_that_is_not_there(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/longhaul-worker"])
    with pytest.raises(SetupError) as raised:
        await connect_client("localhost:1")
    assert "`longhaul demo --keep`" in name_running_program(str(raised.value))
