"""Whether scripts that change a host, or read what root alone may read, can be run there as root."""

from __future__ import annotations

from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Command, Host


def require_privilege(host: Host, privilege: tuple[str, ...]) -> None:
    """HostNotFitError if the words before such a script are refused, or name a program that is not installed.

    Args:
        host: a transport as the user of pgstrata there.
        privilege: none as root, ("sudo", "-n") otherwise.
    """
    said = _refusal(host, privilege) if privilege else None
    if said is not None:
        raise HostNotFitError(
            f"{host.user} may not change this host: {' '.join(privilege)} is refused",
            where=host.name,
            details=said,
            remedy="start pgstrata as root (or let ssh log in as root there), or allow this user to use sudo "
            "without a password: `pgstrata doctor` lists the commands",
        )


def _refusal(host: Host, privilege: tuple[str, ...]) -> tuple[str, ...] | None:
    """The last words of a refusal; None if there is none."""
    try:
        done = host.run(Command(argv=(*privilege, "true")), check=False)
    except HostNotFitError as error:  # it is not installed
        return (error.what,)
    return done.last_words() if done.code else None
