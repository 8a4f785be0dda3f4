"""The payload codec: what is encrypted, which keys decrypt, and what bad keys cause."""

import base64
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from engine.codec import data_converter, encrypting_converter, keys_from_environment
from engine.converter import DATA_CONVERTER
from engine.setup_errors import SetupError
from protocol.payload_reading import (
    ENCRYPTED,
    UNDECODABLE,
    EncryptedPayloadError,
    InvalidPayload,
    read_job_start_payload,
    read_signal_payload,
)

OLD, NEW = bytes(range(32)), bytes(range(100, 132))
SECRET = {"instructions": "Read the secret law."}


async def sent(converter: DataConverter, value: Any = SECRET) -> Payload:
    [payload] = await converter.encode([value])
    return payload


async def test_nothing_of_a_payload_can_be_read_and_no_two_are_alike() -> None:
    converter = encrypting_converter({"new": NEW})
    first, second = await sent(converter), await sent(converter)
    assert b"secret" not in first.SerializeToString()
    assert b"json/plain" not in first.SerializeToString()
    assert first.metadata["encoding"] == ENCRYPTED.encode()
    assert first.data != second.data
    assert await converter.decode([first, second]) == [SECRET, SECRET]


async def test_the_first_key_encrypts_and_old_ones_decrypt() -> None:
    before = await sent(encrypting_converter({"old": OLD}))
    both = encrypting_converter({"new": NEW, "old": OLD})
    assert await both.decode([before]) == [SECRET]
    assert (await sent(both)).metadata["encryption-key-id"] == b"new"


async def test_plain_json_of_a_person_is_read() -> None:
    assert await encrypting_converter({"new": NEW}).decode([await sent(DATA_CONVERTER)]) == [SECRET]


@pytest.mark.parametrize(
    ("converter", "complaint"),
    [
        (DATA_CONVERTER, "LONGHAUL_CODEC_KEYS is not set here"),
        (encrypting_converter({"new": NEW}), "LONGHAUL_CODEC_KEYS here holds no key 'old'"),
        (
            encrypting_converter({"old": NEW}),
            "key 'old' in LONGHAUL_CODEC_KEYS here is not the one",
        ),
    ],
)
async def test_without_the_key_one_line_says_which(
    converter: DataConverter, complaint: str
) -> None:
    payload = await sent(encrypting_converter({"old": OLD}))
    with pytest.raises(EncryptedPayloadError, match=complaint):
        await converter.decode([payload], [dict])
    # When any value is accepted: a start is left to a worker with the key, a signal is refused.
    [value] = await converter.decode([payload])
    assert list(value) == [UNDECODABLE]
    with pytest.raises(EncryptedPayloadError, match=complaint):
        read_job_start_payload((value,))
    with pytest.raises(InvalidPayload, match=complaint):
        read_signal_payload("pause", (value,))


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 12, b"x" * 100])
async def test_a_payload_that_was_made_up_is_a_value_that_says_so(data: bytes) -> None:
    metadata = {"encoding": ENCRYPTED.encode(), "encryption-key-id": b"new"}
    [value] = await encrypting_converter({"new": NEW}).decode(
        [Payload(metadata=metadata, data=data)]
    )
    assert list(value) == [UNDECODABLE]


async def test_failure_messages_are_encrypted() -> None:
    converter = encrypting_converter({"new": NEW})
    failure = Failure()
    await converter.encode_failure(ApplicationError("the secret", "detail", type="Kind"), failure)
    assert b"secret" not in failure.SerializeToString()
    assert b"detail" not in failure.SerializeToString()
    back = await converter.decode_failure(failure)
    assert isinstance(back, ApplicationError)
    assert (back.message, back.type) == ("the secret", "Kind")


@pytest.mark.parametrize(
    "key",
    [base64.b64encode(NEW).decode(), base64.urlsafe_b64encode(NEW).decode(), NEW.hex()],
)
def test_keys_are_base64_or_hexadecimal_in_a_variable_or_a_file(key: str, tmp_path: Path) -> None:
    assert keys_from_environment({"LONGHAUL_CODEC_KEYS": f"a:{key}"}) == {"a": NEW}
    file = tmp_path / "keys"
    file.write_text(f"a:{key}\nb:{OLD.hex()}\n")
    keys = keys_from_environment({"LONGHAUL_CODEC_KEYS_FILE": str(file)})
    assert list(keys.items()) == [("a", NEW), ("b", OLD)]


def test_without_keys_nothing_is_encrypted() -> None:
    assert data_converter({}) is DATA_CONVERTER


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (NEW.hex(), "entry 1 has no id"),
        (f"a:{NEW.hex()},{OLD.hex()}", "entry 2 has no id"),
        ("a:abcd", "has 3 bytes; expected 32"),
        ("a:" + "!" * 44, "neither base64 nor hexadecimal"),
        (f"a:{NEW.hex()},a:{OLD.hex()}", "twice"),
    ],
)
def test_bad_keys_are_told_without_the_key(value: str, complaint: str) -> None:
    with pytest.raises(SetupError) as raised:
        keys_from_environment({"LONGHAUL_CODEC_KEYS": value})
    assert complaint in str(raised.value)
    assert NEW.hex() not in str(raised.value)


def test_a_key_file_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "empty"):
        (tmp_path / "empty").write_text("\n")
        with pytest.raises(SetupError, match=path.name):
            keys_from_environment({"LONGHAUL_CODEC_KEYS_FILE": str(path)})
