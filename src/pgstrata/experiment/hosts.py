"""Levels of the factor `host`: text to `HostSpec`, and what a destination of ssh may look like.

Whether there is such a machine is found out when it is connected to.
"""

import re
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.model.experiment import HostKind, HostSpec

# The port is the user's config's to say where the destination does not; the name may be an alias of it.
_FORBIDDEN: Final = frozenset("'\"\\`$;&|<>()*?#")
_REMEDY: Final = (
    'write "local", or "ssh:" and what you would tell ssh: "ssh:db1", "ssh:user@db1", "ssh://user@db1:2222"; or "vm:" '
    "and the name of a root image (`pgstrata vm list`)"
)
_IMAGE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


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
            raise WrongValueError(f"{rest!r} cannot be the name of a root image", "use a-z, 0-9, dots and hyphens")
        return HostSpec(kind=HostKind.VM, destination=rest)
    if kind != HostKind.SSH or not colon:
        near = f'did you mean "ssh:{text}"? ' if is_destination(text) and not kind.isdigit() else ""
        raise WrongValueError(f"{text!r} is not a host", f"{near}{_REMEDY}")
    destination = text if rest.startswith("//") else rest.strip()
    if not is_destination(destination):
        raise WrongValueError(f"{destination!r} is not a valid destination for ssh", _REMEDY)
    return HostSpec(kind=HostKind.SSH, destination=destination)


def is_destination(text: str) -> bool:
    """Whether it is a destination as one writes it for ssh: db1, user@db1, ssh://user@db1:2222.

    It becomes a word of a command, so it must not be taken for an option, nor carry anything that a shell or the
    user's ProxyCommand could understand as more than a name.
    """
    rest = text.removeprefix("ssh://")
    user, at, host = rest.rpartition("@")
    odd = any(character.isspace() or not character.isprintable() or character in _FORBIDDEN for character in text)
    return not (odd or not host or (at and not user) or "/" in rest or "-" in (text[:1], user[:1], host[:1]))
