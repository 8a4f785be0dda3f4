"""Messages of checkpoints that begin or add something; they are read again to find these."""

_FORKED = "forked from "
_BEGINS = " begins: "
_REPLY = "reply: "


def fork_message(job: str, place: str) -> str:
    return f"{_FORKED}{job} at {place} · "


def phase_message(number: int, name: str) -> str:
    return f"phase {number}{_BEGINS}{name}"


def new_reply_message(what: str) -> str:
    return f"{_REPLY}{what}"


def begins_fork(message: str) -> bool:
    return message.startswith(_FORKED)


def begins_phase(message: str) -> bool:
    return _BEGINS in message


def adds_reply(message: str) -> bool:
    return _REPLY in message
