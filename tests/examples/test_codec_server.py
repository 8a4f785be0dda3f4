"""The codec server answers what Temporal Web asks, over HTTP."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import httpx2
import pytest
import uvicorn
from google.protobuf import json_format
from temporalio.api.common.v1 import Payloads

from engine.codec import EncryptionCodec, encrypting_converter
from examples.codec_server import codec_application

KEYS = {"2026": bytes(range(32))}
WEB = "http://localhost:8233"


@pytest.fixture
async def codec() -> AsyncIterator[httpx2.AsyncClient]:
    config = uvicorn.Config(
        codec_application(EncryptionCodec(KEYS), WEB), port=0, log_level="error"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it offers nothing to wait for
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client
    server.should_exit = True
    await serving


async def test_it_decodes_what_web_has_from_a_history(codec: httpx2.AsyncClient) -> None:
    payloads = await encrypting_converter(KEYS).encode([{"agent": "creator"}, "phase 2"])
    body = json_format.MessageToDict(Payloads(payloads=payloads))
    headers = {"origin": WEB, "x-namespace": "default"}
    answer = await codec.post("/decode", json=body, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == WEB
    decoded = answer.json()["payloads"]
    assert [json.loads(base64.b64decode(each["data"])) for each in decoded] == [
        {"agent": "creator"},
        "phase 2",
    ]
    assert base64.b64decode(decoded[0]["metadata"]["encoding"]) == b"json/plain"


async def test_what_it_encodes_is_what_workers_read(codec: httpx2.AsyncClient) -> None:
    plain = {
        "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
        "data": base64.b64encode(b'{"reason": "Enough."}').decode(),
    }
    answer = await codec.post("/encode", json={"payloads": [plain]})
    sealed = json_format.ParseDict(answer.json(), Payloads())
    assert b"Enough" not in sealed.SerializeToString()
    assert await encrypting_converter(KEYS).decode(sealed.payloads) == [{"reason": "Enough."}]


async def test_a_browser_may_ask_from_temporal_web_and_from_nowhere_else(
    codec: httpx2.AsyncClient,
) -> None:
    asks = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,x-namespace,authorization",
    }
    allowed = await codec.options("/decode", headers={"origin": WEB, **asks})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == WEB
    assert allowed.headers["access-control-allow-credentials"] == "true"
    other = await codec.options("/decode", headers={"origin": "https://other.example", **asks})
    assert "access-control-allow-origin" not in other.headers


async def test_nonsense_is_refused(codec: httpx2.AsyncClient) -> None:
    for body in (b"", b"[1]", b'{"payloads": 1}', b"\xff"):
        assert (await codec.post("/decode", content=body)).status_code == 400
