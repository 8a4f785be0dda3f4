"""Addresses of git repositories, as people enter them; an address with a password is refused."""

from typing import Literal

SCHEMES = ("file", "ssh", "git", "http", "https")
FORMS = "expected file://…, ssh://…, https://…, http://…, git://… or host:path"
NO_PASSWORD = (
    "expected an address without a password: git takes credentials from the worker's own "
    "credential helper or ssh agent"
)


def git_address_fault(address: str) -> Literal["", "password", "form"]:
    scheme, mark, rest = address.partition("://")
    if _has_git_password(rest if mark and _is_git_address_word(scheme, "") else address):
        return "password"
    if any(char.isspace() or char == "\0" for char in address):
        return "form"
    if not mark:
        return "" if _is_scp_address(address) else "form"
    after_user = rest.partition("/")[0].rpartition("@")[2] or rest
    is_option = rest.startswith("-") or after_user.startswith("-")
    return "" if scheme in SCHEMES and rest and not is_option else "form"


def check_git_address(address: str) -> str:
    """Return the address if its form is valid; else raise a ValueError that does not repeat it."""
    fault = git_address_fault(address)
    if fault:
        raise ValueError(NO_PASSWORD if fault == "password" else FORMS)
    return address


def git_address_without_user(address: str) -> str:
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    place, slash, path = rest.partition("/")
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"


def _has_git_password(body: str) -> bool:
    """Whether a user with a password precedes the host, even unescaped; a port does not count."""
    end = min((place for place in map(body.find, "/@[") if place >= 0), default=len(body))
    for place, char in enumerate(body[:end]):
        if char != ":":
            continue
        rest = body[place + 1 :]
        port = rest.partition("/")[0]
        if "@" in rest and not rest.startswith("//") and not port.isdecimal():
            return True
    return False


def _is_scp_address(address: str) -> bool:
    place, colon, path = address.partition(":")
    user, _, host = place.rpartition("@")
    is_path = bool(colon) and path[:1] not in ("", ":")
    return (
        is_path
        and _is_git_address_word(host, ".-")
        and (not user or _is_git_address_word(user, ".-"))
    )


def _is_git_address_word(text: str, more: str) -> bool:
    """Whether a text is letters, digits and underscores; after the first also those of `more`."""
    if not text or not (text[0].isalnum() or text[0] == "_"):
        return False
    return all(char.isalnum() or char == "_" or char in more for char in text)
