"""`doctor`: one line a check, with what to do."""

import json

from tests.cli.conftest import tries


def checks(ran):
    return {check["name"]: check for check in json.loads(ran.out)}


def test_without_a_server_it_says_what_to_do(offline):
    ran = offline("doctor")
    assert ran.code == 1
    assert "✗ server: no Temporal server at localhost:1" in ran.out
    assert "✓ temporal binary" in ran.out


def test_with_server_and_worker_all_is_well_but_for_jobs_with_a_bug(engine, starter):
    # A worker that has just been started need not have polled yet; whoever answers has.
    engine.status(engine.job("polled"))
    found = checks(starter("doctor", "--json"))
    for name in ("server", "namespace", "search attributes", "worker", "token vocabulary",
                 "model endpoint", "configuration", "workspaces", "store"):  # fmt: skip
        assert found[name]["ok"], found[name]
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


def test_a_store_that_is_away_is_found(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(tmp_path))
    monkeypatch.setenv("LONGHAUL_STORE_URL", "postgresql://me:secret@127.0.0.1:1/db")
    ran = offline("doctor", "--json")
    store = checks(ran)["store"]
    assert not store["ok"]
    assert "does not answer" in store["found"]
    assert "secret" not in ran.out


def test_it_makes_no_root_whatever_it_looks_at(offline, monkeypatch, workspaces):
    monkeypatch.setenv("LONGHAUL_GRAPH_URL", "bolt://127.0.0.1:1")
    assert (
        "before there is a workspaces root" in checks(offline("doctor", "--json"))["graph"]["found"]
    )
    assert not workspaces.exists()


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
    assert "secret" not in ran.out
