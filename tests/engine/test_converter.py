"""Anything a person sends becomes a value; typed payloads stay strict."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.common import RawValue
from temporalio.testing import ActivityEnvironment

from engine.converter import DATA_CONVERTER, MAX_DEPTH
from protocol.payload_reading import UNDECODABLE

CONVERTER = DATA_CONVERTER.payload_converter


def payload(data: bytes, encoding: bytes | None = b"json/plain", **metadata: bytes) -> Payload:
    encoding_field = {"encoding": encoding} if encoding is not None else {}
    return Payload(metadata=encoding_field | metadata, data=data)


def read(*payloads: Payload, hints: Any = None) -> list[Any]:
    return CONVERTER.from_payloads(payloads, hints)


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    step: int
    note: str = ""


def test_json_is_read_as_it_is():
    assert read(payload(b'{"issue": "x"}'), payload(b"[1]")) == [{"issue": "x"}, [1]]
    assert read(payload(b"", b"binary/null")) == [None]


@pytest.mark.parametrize(
    "strange",
    [
        payload(b"x", b"weird/\xff"),
        payload(b"{nope"),
        payload(b""),
        payload(b"\xff\xfe"),
        payload(b"x", None),
        payload(b"\x00\x01", b"binary/plain"),
        payload(b"{}", b"json/protobuf", messageType=b"no.such.Message"),
        payload(b"\x00", b"binary/protobuf"),
        payload(b"x", b"binary/encrypted"),
        payload(b"[" * 150 + b"]" * 150),
        payload(b"[" * 100_000),
        payload(b"1" * 5000),
    ],
)
@pytest.mark.parametrize("hints", [None, [Any], [object]])
def test_what_cannot_be_read_says_so(strange, hints):
    [value] = read(strange, hints=hints)
    assert list(value) == [UNDECODABLE]
    assert ": " in value[UNDECODABLE]
    assert len(value[UNDECODABLE]) < 300


def test_the_other_payloads_of_a_signal_are_read():
    assert read(payload(b"1"), payload(b"?", b"odd"))[0] == 1


def test_with_a_type_a_bad_payload_is_an_error_as_usual():
    assert read(payload(b'{"step": 1}'), hints=[Request]) == [Request(step=1)]
    for bad in (payload(b'{"step": "x"}'), payload(b'{"step": 1, "odd": 2}'), payload(b"{nope")):
        with pytest.raises(ValueError, match="Request"):
            read(bad, hints=[Request])
    with pytest.raises(KeyError):
        read(payload(b"1", b"odd"), hints=[Request])
    assert read(payload(b"1", b"odd"), hints=[RawValue])[0].payload.data == b"1"


def test_unset_fields_are_not_sent():
    assert CONVERTER.to_payload(Request(step=1)).data == b'{"step":1}'
    assert CONVERTER.to_payload(Request(step=1, note="")).data == b'{"step":1,"note":""}'


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"json/plain", b"binary/plain", b"", b"x"]))
def test_no_bytes_raise_and_all_values_can_be_sent_on(data, encoding):
    [value] = read(payload(data, encoding))
    assert read(CONVERTER.to_payload({"inbox": [value]}))


def test_a_value_at_the_depth_limit_can_be_wrapped_sent_and_read():
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    [value] = read(payload(deep))
    sent = CONVERTER.to_payload({"a": {"b": [{"c": value}]}})
    assert read(sent, hints=[dict[str, Any]])[0]["a"]["b"][0]["c"] == json.loads(deep)


async def test_failures_of_activities_are_told_without_credentials_causes_too() -> None:
    def fail() -> None:
        raise RuntimeError("outer") from ValueError("password = " + "Tr0ub4dor&3xY")

    def converted() -> Failure:
        failure = Failure()
        try:
            fail()
        except RuntimeError as error:
            DATA_CONVERTER.failure_converter.to_failure(error, CONVERTER, failure)
        return failure

    failure = ActivityEnvironment().run(converted)
    assert failure.cause.message == "password = [redacted]"
