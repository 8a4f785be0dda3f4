"""The rehearsal model over HTTP."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from rehearsal import Cut, Failure, Hang, Model, Reply, Stall, rehearse
from rehearsal.server import ModelServer

MESSAGES: Any = [
    {"role": "system", "content": "s"},
    {"role": "assistant", "content": "a"},
    {"role": "user", "content": "hello"},
]


def client(base_url: str, timeout: float = 5.0) -> OpenAI:
    return OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=timeout)


def text(base_url: str, timeout: float = 5.0) -> str:
    stream = client(base_url, timeout).chat.completions.create(
        model="m", messages=MESSAGES, stream=True
    )
    return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)


def test_streams_and_whole_replies() -> None:
    with ModelServer(lambda request: Reply("It is done.")) as server:
        assert text(server.base_url) == "It is done."
        whole = client(server.base_url).chat.completions.create(model="m", messages=MESSAGES)
        assert whole.choices[0].message.content == "It is done."


def test_failures_carry_their_status_and_headers() -> None:
    failure = Failure(429, "slow down", headers={"retry-after": "3"})
    with ModelServer(lambda request: failure) as server:
        with pytest.raises(openai.RateLimitError) as caught:
            text(server.base_url)
        assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (lambda request: Cut(Reply("x" * 500)), openai.APIConnectionError),
        (lambda request: Hang(), openai.APITimeoutError),
        (lambda request: Stall(Reply("x" * 500)), openai.APITimeoutError),
    ],
)
def test_broken_bodies(model: Model, error: type[Exception]) -> None:
    with ModelServer(model) as server, pytest.raises(error):
        text(server.base_url, timeout=0.3)


def test_a_stall_that_ends() -> None:
    with ModelServer(lambda request: Stall(Reply("whole"), seconds=0.05)) as server:
        assert text(server.base_url) == "whole"


def test_a_body_that_is_no_request_is_refused() -> None:
    with ModelServer(rehearse) as server:
        url = f"{server.base_url}/chat/completions"
        assert httpx2.post(url, content=b"{").status_code == 400
        assert httpx2.post(url, content=b"[]").status_code == 400
        assert httpx2.get(f"{server.base_url}/models").json()["data"][0]["id"] == "rehearsal"


def test_the_command_serves_the_rehearsal_model() -> None:
    command = [sys.executable, "-m", "rehearsal.server", "--port", "0"]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:")
        assert "No call was refused." in text(line.removeprefix("listening on ").strip())
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()
