"""Each guard that ships denies what it should, and not what it should not."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Files
from activities.job.conversation_calls import newest_calls
from activities.redaction.credentials import HIDDEN
from activities.redaction.secrets import RedactingFormatter, redact
from tests.activities.standing import Standing


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Standing:
    return Standing.begin(tmp_path_factory.mktemp("job"), kind="tactical")


# Assembled here, so that scanners do not take this file for a leak.
SECRETS = [
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----",
    "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
    "token: ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "github_pat_" + "11ABCDEFG0" * 6,
    "glpat-" + "x1Y2z3A4b5C6d7E8f9G0",
    "xoxb-" + "123456789012-abcdefGHIJKL",
    "https://hooks.slack.com/services/T0000" + "0000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "OPENAI_API_KEY=sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "postgres://app:" + "s3cr3tPw7x@db.example.org/app",
    "password = " + "Tr0ub4dor&3xY",
    'db_password: "' + 'x8Kq2!mZp9w"',
    '{"client_secret": "' + '9f8e7d6c5b4a3210ffee"}',
    "Authorization: Bearer " + "abc123DEF456ghi789",
    "export DB_PASSWORD='" + "kJ8#mN2$pQ5&'",
    "GITHUB_TOKEN=" + "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "SECRET_KEY = '" + "django-insecure-9f8e7d6c5b4a3928'",
    "AccountKey=" + "9f8e7d6c5b4a39281706f5e4d3c2b1a0==",
    'password="' + 'Summer2024.Rain"',
    "api_key = " + "abcD1234efGH5678.ijKL9012mnOP3456",
    "password: " + "Summer2024.",
    "api_key=" + "aB3dE5fG7hJ9kL2mN4(prod)",
    "(sk-" + "abcdefghij1234567890KLMN()",
    "whsec_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v",
]
HARMLESS = [
    "The password must have at least 12 characters.",
    "password: required",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass()",
    "api_key = settings.api_key",
    "API_KEY=$OPENAI_API_KEY",
    "api_key: ${{ secrets.API_KEY }}",
    "secret = load_secret_from_vault(name)",
    "Use sk-learn-based-classification-models for it.",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "commit 5f2c0e9b8a7d6c5e4f3a2b1c0d9e8f7a6b5c4d3e",
    "id: 550e8400-e29b-41d4-a716-446655440000",
    "https://example.org/a?b=c@d",
    "postgres://user:password@localhost/db",
    "The secret: patience and good leaves.",
    "Authorization: Bearer <token>",
    "token = tokenizer.encode(text)",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "passwd: see /etc/passwd",
    "secret = hashlib.sha256(seed1).hexdigest()",
    "secret = generate_secret_v2()",
    "secret = base64.b64decode(value)",
    "Client(api_key=settings.OPENAI_API_KEY1)",
    "access_token: response.data.access_token2,",
    "password: '${DB_PASSWORD1}'",
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN2 }}",
    "MAX_TOKEN = 128000",
]


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_a_credential_is_not_written_and_is_redacted(job: Standing, text: str) -> None:
    content = f"# Notes\n\nIt says {text} there.\n"
    assert "Refused by secrets" in job.call("write_file", path="a.md", content=content)
    assert "Refused by secrets" in job.call("append_file", path="a.md", content=content)
    assert HIDDEN in redact(content)
    assert redact(content).startswith("# Notes")


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_none_is_written_and_stays(job: Standing, text: str) -> None:
    assert job.call("write_file", path="a.md", content=text).startswith("Wrote")
    assert redact(text) == text


def test_a_credential_can_be_taken_out(job: Standing) -> None:
    job.write("leak.md", f"key {SECRETS[3]}\n")
    assert job.call("edit_file", path="leak.md", old=SECRETS[3], new="gone").startswith("Replaced")
    assert "Refused" in job.call("edit_file", path="leak.md", old="gone", new=SECRETS[3])


def test_a_credential_is_kept_out_of_what_ends_in_the_archive(job: Standing) -> None:
    assert "Refused by secrets" in job.call("todo_complete", notes=f"It is {SECRETS[3]}.")
    assert "completed" in job.call("todo_complete", notes="The key lies in the vault.").lower()


def test_what_is_logged_is_redacted_also_in_tracebacks() -> None:
    try:
        raise ValueError(SECRETS[3])
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, "f", 1, "used %s", (SECRETS[9],), __import__("sys").exc_info()
        )
    log_text = RedactingFormatter("%(message)s").format(record)
    assert "AKIA" not in log_text
    assert "sk-proj" not in log_text or HIDDEN in log_text
    assert "Traceback" in log_text


LONG, SHORT = "x\n" * 1001, "x\n" * 1000


@pytest.mark.parametrize(
    ("path", "content", "arguments", "denied"),
    [
        ("server.log", LONG, {}, True),
        ("./notes//server.log", LONG, {}, True),
        ("a/server.log.1", LONG, {}, True),
        ("logs/today", LONG, {}, True),
        ("server.log", LONG, {"limit": 5000}, True),
        ("server.log", LONG, {"offset": 1, "limit": 1001}, True),
        ("server.log", LONG, {"limit": "5000"}, True),
        ("server.log", LONG, {"offset": "1", "limit": "1001.0"}, True),
        ("server.log", LONG, {"limit": 1001.0}, True),
        ("server.log", LONG, {"limit": "1000"}, False),
        ("server.log", SHORT, {}, False),
        ("server.log", SHORT, {"limit": 5000}, False),
        ("server.log", LONG, {"offset": 400, "limit": 100}, False),
        ("catalog.md", LONG, {}, False),
        ("notes/blog.txt", LONG, {"limit": 5000}, False),
        ("changelog.md", LONG, {}, False),
    ],
)
def test_long_logs_are_not_read_whole(
    job: Standing, path: str, content: str, arguments: dict[str, Any], denied: bool
) -> None:
    job.write(path, content)
    result = job.call("read_file", path=path, **arguments)
    assert ("Refused by log-reading" in result) is denied
    assert not denied or "search_files" in result


def test_a_link_to_a_log_is_a_log(job: Standing) -> None:
    def put(files: Files) -> Files:
        return files.write("big.log", LONG.encode()).link("notes.md", "big.log")

    job.put(put)
    assert "Refused by log-reading" in job.call("read_file", path="notes.md")


def features(*pairs: tuple[str, bool], **more: Any) -> str:
    entries = [{"id": name, "title": name, "tested": tested} for name, tested in pairs]
    return json.dumps({"features": entries, **more}, indent=1)


LISTED = features(("login", False), ("logout", True))


@pytest.mark.parametrize(
    ("content", "denied"),
    [
        (features(("login", True), ("logout", True)), True),
        (features(("login", False), ("logout", False)), True),
        (features(("login", False)), True),
        (features(("login", False), ("new", True), ("logout", True)), True),
        ("{broken", True),
        (LISTED.replace('"tested": false', '"tested": false, "tested": true'), True),
        (features(("logout", True), ("login", False)), False),
        (features(("login", False), ("more", False), ("logout", True)), False),
        (LISTED.replace('"title": "login"', '"title": "Log in"'), False),
        (features(("login", False), ("logout", True), note=1), False),
    ],
    ids=range(10),
)
def test_only_the_tester_sets_tested(tmp_path: Path, content: str, denied: bool) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    job.write("feature-list.json", LISTED)
    result = job.call("write_file", path="feature-list.json", content=content)
    assert ("Refused by tested-by-the-tester" in result) is denied
    assert job.text("feature-list.json") == (LISTED if denied else content)


@pytest.mark.parametrize("first", ["true", "false"])
def test_a_field_that_stands_twice_is_set_if_one_of_its_values_is(
    tmp_path: Path, first: str
) -> None:
    job, content = Standing.begin(tmp_path, kind="tactical"), features(("login", False))
    job.write("feature-list.json", content)
    other = json.dumps(first == "false")
    twice = content.replace('"tested": false', f'"tested": {first}, "tested": {other}')
    often = content.replace('"tested": false', '"a": 1, ' * 5000 + '"tested": true')
    for written in (twice, often):
        assert "Refused" in job.call("write_file", path="feature-list.json", content=written)
    assert job.text("feature-list.json") == content


def test_no_other_tool_gets_around_it(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    job.write("feature-list.json", LISTED)
    job.write("draft.json", features(("login", True)))
    edit = {"path": "feature-list.json", "old": '"tested": false', "new": '"tested": true'}
    assert "Refused" in job.call("edit_file", **edit)
    assert "Refused" in job.call("delete_file", path="feature-list.json")
    assert "Refused" in job.call("move_file", old="feature-list.json", new="x.json")
    assert "Refused" in job.call("move_file", old="draft.json", new="app/feature-list.json")
    job.put(lambda files: files.link("door", "draft.json"))
    assert "Refused" in job.call("move_file", old="door", new="app/feature-list.json")
    assert job.text("feature-list.json") == LISTED


def test_the_example_rewrites_a_path_and_says_so(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, set={"guards": ["paths", "secrets"]})
    result = job.call("write_file", path="/workspace/notes/a.md", content="x")
    assert result.startswith("[workspace-prefix rewrote the call: path is 'notes/a.md']\nWrote 1")
    assert job.text("notes/a.md") == "x"
    [call] = newest_calls(job.open().conversation, job.step)
    assert "/workspace/notes/a.md" in call["function"]["arguments"]
    # Rewritten paths are checked by the rules, like all others.
    assert "holds .." in job.call("write_file", path="/workspace/../a", content="x")
    assert "absolute" in job.call("write_file", path="/etc/a", content="x")
    assert "Refused by secrets" in job.call("write_file", path="/workspace/a", content=SECRETS[3])
