"""Levels of the factors `host` and `client`: text to machines, and what a destination of ssh may look like.

Whether there is such a machine is found out when it is connected to.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.values import Kind, kind_of
from pgstrata.model.experiment import HERE, HostKind, HostSpec, name_hosts

# The port is the user's config's to say where the destination does not; the name may be an alias of it.
_FORBIDDEN: Final = frozenset("'\"\\`$;&|<>()*?#")
_REMEDY: Final = (
    'write "local", or "ssh:" and what you would tell ssh: "ssh:db1", "ssh:user@db1", "ssh://user@db1:2222"; or "vm:" '
    "and the name of an image (`pgstrata vm list`)"
)
_IMAGE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


def parse_host(level: str) -> HostSpec:
    """A level such as local, ssh:db1, ssh:user@db1, ssh://user@db1:2222 or vm:bookworm.

    Raises:
        WrongValueError: that is no host.
    """
    text = level.strip()
    if text == HostKind.LOCAL:
        return HostSpec()
    kind, colon, rest = text.partition(":")
    if kind == HostKind.VM and colon:
        if not _IMAGE.fullmatch(rest):
            remedy = "use a-z, 0-9, dots, hyphens and underscores, at most 40 characters"
            raise WrongValueError(f"{rest!r} cannot be the name of an image", remedy)
        return HostSpec(kind=HostKind.VM, destination=rest)
    if kind != HostKind.SSH or not colon:
        near = f'did you mean "ssh:{text}"? ' if is_destination(text) and not kind.isdigit() else ""
        raise WrongValueError(f"{text!r} is not a host", f"{near}{_REMEDY}")
    destination = text if rest.startswith("//") else rest.strip()
    if not is_destination(destination):
        raise WrongValueError(f"{destination!r} is not a valid destination for ssh", _REMEDY)
    return HostSpec(kind=HostKind.SSH, destination=destination)


def parse_named_host(text: str) -> HostSpec:
    """A host as `--host` takes it: as one writes it for ssh, such as db1, or a level, such as ssh:db1.

    Raises:
        WrongValueError: that is no host.
    """
    is_level = text == HostKind.LOCAL or text.startswith((f"{HostKind.SSH}:", f"{HostKind.VM}:"))
    return parse_host(text if is_level else f"{HostKind.SSH}:{text}")


def is_destination(text: str) -> bool:
    """Whether it is a destination as one writes it for ssh: db1, user@db1, ssh://user@db1:2222.

    It becomes a word of a command, so it must not be taken for an option, nor carry anything that a shell or the
    user's ProxyCommand could understand as more than a name.
    """
    rest = text.removeprefix("ssh://")
    user, at, host = rest.rpartition("@")
    odd = any(character.isspace() or not character.isprintable() or character in _FORBIDDEN for character in text)
    return not (odd or not host or (at and not user) or "/" in rest or "-" in (text[:1], user[:1], host[:1]))


# ---------------------------------------------------------------------------------------------- clients

_SAME: Final = "same"
MOST_MACHINES: Final = 16
"""From which one load may come."""
_EXAMPLES: Final = 'write "same" (on the server\'s own machine), "local", or "ssh:" and what you would tell ssh'
_OF_SEVERAL: Final = 'let the load come from machines other than the server\'s: "ssh:load1, ssh:load2"'


@dataclass(frozen=True, slots=True)
class ClientLevel:
    """A level of `client`: the machines from which load comes, empty for the server's own machine."""

    hosts: tuple[HostSpec, ...] = ()

    @property
    def text(self) -> str:
        """The level as a user writes it under [factors]."""
        return name_hosts(self.hosts) or _SAME

    def beside(self, server: HostSpec) -> tuple[HostSpec, ...]:
        """The machines that load a server on the machine `server`."""
        return self.hosts or (server,)


USUAL_CLIENT: Final = ClientLevel(HERE)
"""The default: load comes from this machine."""


def parse_clients(level: object) -> ClientLevel:
    """A level such as same, local, ssh:load1, or several machines: "ssh:load1, ssh:load2" or a list of them.

    Raises:
        WrongValueError: the level names no machine, one of them twice, or too many.
    """
    parts = level if isinstance(level, list) else level.split(",") if isinstance(level, str) else None
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise WrongValueError(f"must be the name of a machine, or a list of names, not {kind_of(level)}", _EXAMPLES)
    if not parts:
        raise WrongValueError("the list of clients is empty", _EXAMPLES)
    return _together([part.strip() for part in parts])


def _together(words: Sequence[str]) -> ClientLevel:
    if list(words) == [_SAME]:
        return ClientLevel()
    if _SAME in words:
        raise WrongValueError('"same" cannot be combined with other machines', _OF_SEVERAL)
    if len(words) > MOST_MACHINES:
        what = f"one load can come from at most {MOST_MACHINES} machines, not from {len(words):,}"
        raise WrongValueError(what, "name fewer machines, each with more clients")
    hosts = [_parse_client(word) for word in words]
    double = next((word for number, word in enumerate(words) if hosts[number] in hosts[:number]), None)
    if double is not None:
        raise WrongValueError(f"{double!r} is listed twice", "name each machine once")
    return ClientLevel(tuple(hosts))


def _parse_client(word: str) -> HostSpec:
    try:
        return parse_host(word)
    except WrongValueError as error:
        what = error.what.replace("is not a host", "is not a machine for clients")
        raise WrongValueError(what, _EXAMPLES) from None


CLIENT: Final = Kind(
    parse_clients,
    {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
        "examples": ["same", "local", "ssh:load1", ["ssh:load1", "ssh:load2"]],
    },
)
