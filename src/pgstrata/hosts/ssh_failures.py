"""What ssh says when it cannot connect, as errors that a user can act on; pure."""

from __future__ import annotations

import re
from typing import Final

from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError

_ONE_SESSION: Final = "it does not open another session in the same connection"
_MORE_SESSIONS: Final = "let its ssh server allow ten sessions in one connection (MaxSessions in sshd_config)"
_BY_HAND: Final = "connect once by hand: ssh {to}; then give the same command again"

# In the order of their weight: what follows a host key that has changed is said as well. The last is the missing shell.
# The last word says whether trying again later would not help.
_KINDS: Final = (
    (r"Session open refused by peer", _ONE_SESSION, _MORE_SESSIONS, True),
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|[Hh]ost key for .* has changed",
        "its host key has changed",
        "find out why; if it is meant to be, remove the old key (ssh-keygen, see above) and then: ssh {to}",
        True,
    ),
    (r"[Hh]ost key .*(revoked|marked as)", "its host key is revoked", "ask the administrator of that host", True),
    (r"Host key verification failed|No .* host key is known", "its host key is not known", _BY_HAND, True),
    (
        r"Permission denied \(|Too many authentication failures|No supported authentication methods",
        "ssh cannot log in without asking for a password",
        "give your key to the agent (ssh-add) or name it in ssh's configuration; try: ssh -o BatchMode=yes {to}",
        True,
    ),
    (
        r"Could not resolve hostname",
        "there is no host of that name",
        "check how it is written, or name it in your ssh configuration",
        True,
    ),
    (r"no matching .* found|Unable to negotiate", "ssh and its server have no algorithm in common", _BY_HAND, True),
    (
        r"Bad (owner|configuration)|terminating, \d+ bad configuration",
        "ssh does not accept its configuration",
        "correct the file that the lines above name",
        True,
    ),
    (r"Connection refused", "it refuses the connection", "check that its ssh server runs, and the port", False),
    (
        r"timed out|No route to host|Network is unreachable|not responding",
        "it cannot be reached",
        "check that it is up and that the network between lets ssh through; then give the same command again",
        False,
    ),
    (
        r"Connection (closed|reset)|kex_exchange_identification",
        "it closes the connection",
        f"{_BY_HAND}; the log of its ssh server may say more",
        False,
    ),
    (
        r"(?m)currently not available|: not found$|^env: .*No such file or directory$",
        "there is no shell for pgstrata",
        "log in as a user who may run programs there, on a machine that has `sh` and `env`",
        True,
    ),
)


def explain(error: HostLostError, destination: str) -> PgstrataError:
    """The error to raise where a first contact was lost: what ssh meant by its last words, with a remedy.

    HostNotFitError where something has to be done about it, HostLostError where it may work later; what is not
    recognised stays as it is.
    """
    said = "\n".join(error.details)
    # Where ssh itself fails it says so; a login shell that is none tells its standard output, or nobody.
    silent = not said and "ended" in error.what
    for pattern, what, remedy, lasting in _KINDS[-1:] if silent else _KINDS:
        if silent or re.search(pattern, said):
            make = HostNotFitError if lasting else HostLostError
            return make(what, where=destination, remedy=remedy.replace("{to}", destination), details=error.details)
    return error


def session_refused(destination: str) -> HostNotFitError:
    """The error for a server that keeps to one session in a connection."""
    return HostNotFitError(_ONE_SESSION, where=destination, remedy=_MORE_SESSIONS)
