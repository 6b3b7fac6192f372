"""One connection of the user's own OpenSSH, shared by every session that goes over it, and its pulse.

What goes through the sessions belongs to `ssh` and `tree`; what ssh says when it fails to `ssh_failures`.
"""

from __future__ import annotations

import os
import secrets
import select
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.experiment.hosts import is_destination
from pgstrata.hosts import ssh_failures
from pgstrata.hosts.account import UserAccount
from pgstrata.hosts.lanes import waiting
from pgstrata.hosts.local_process import start
from pgstrata.hosts.transport import quote
from pgstrata.ports.host import Command, StopSignal
from pgstrata.system.files import make_folders, remove_file

_LONGEST_SOCKET: Final = 107  # bytes in sun_path, without its NUL
_BESIDE: Final = 17  # what ssh adds to the name until the socket listens

_PULSE: Final = 'while printf .; do sleep "$1"; done'

# A link that vanishes is not noticed by the far sshd before TCP gives up, which takes it hours if it has nothing to
# send. So somebody there listens to a pulse, and ends the connection's sshd when it stays away: then every transport
# behind it reads the end of its input and tidies up. `timeout` ends with 124 when time is up, with 0 at the end of the
# input.
_WATCH: Final = """
echo watching
while heard=$(timeout "$1" head -c 1); do [ -n "$heard" ] || exit 0; done
case $(cat "/proc/$PPID/comm") in
    sshd* | dropbear*) kill -s TERM "$PPID" ;;
    *) kill -s TERM "$2" ;;
esac
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds. A connection is made within `connect`; one that gives no sign is asked every `alive`, `tries` times.

    The far side hears a pulse every `pulse` and gives up after `silence`, later than this side does.
    """

    connect: int = 15
    alive: int = 10
    tries: int = 3
    pulse: float = 10.0
    silence: float = 45.0


def parse_destination(text: str) -> str:
    """A destination as the user writes it for ssh: db1, user@db1, ssh://user@db1:2222. UsageError if it is none."""
    if not is_destination(text):
        remedy = 'write it as for ssh, such as "db1", "user@db1" or "ssh://user@db1:2222"'
        raise UsageError(f"{text!r} is not a valid destination for ssh", where="host", remedy=remedy)
    return text


class Link:
    """The connection to a destination (`Patience` says how long it may be silent).

    The first session is the connection's master and runs in the foreground: when its input ends, because the
    coordinator closed it or died, it ends too, and no process and no socket is left behind.

    Args:
        destination: as for `parse_destination`.
        run: a folder for sockets, with a short name (`Places.run`).
        config: an ssh configuration instead of the user's own.
        patience: for tests.
    """

    def __init__(
        self, destination: str, *, run: str, config: str | None = None, patience: Patience | None = None
    ) -> None:
        self.destination = parse_destination(destination)
        self._patience = patience or Patience()
        self._config = ("-F", config) if config else ()
        self._socket = _socket_path(run)
        # A path in a configuration: percent signs stand for something there, and spaces end it.
        self._control = '"' + self._socket.replace("%", "%%") + '"'
        self._pulse: list[subprocess.Popen[bytes]] = []

    def first(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command that connects and runs `words` on the far side.

        What the user's configuration says holds, host keys and jump hosts included, except for what would get in the
        way of a program: questions, terminals, forwarded ports, another connection's socket.
        """
        patience = self._patience
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(patience.connect),
            "ServerAliveInterval": str(patience.alive),
            "ServerAliveCountMax": str(patience.tries),
            "ControlMaster": "yes",
            "ControlPath": self._control,
            "ControlPersist": "no",
            "ClearAllForwardings": "yes",
            "RemoteCommand": "none",
            "LogLevel": "INFO",
        }
        return ("ssh", *self._config, "-T", "-a", "-x", *_render_options(options), *self._target(words))

    def further(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command that runs `words` on the far side through the connection that is there, and never another."""
        options = {"ControlMaster": "no", "ControlPath": self._control, "ProxyCommand": "exit 1", "BatchMode": "yes"}
        return ("ssh", "-F", "none", "-T", "-a", "-x", *_render_options(options), *self._target(words))

    def _target(self, words: Sequence[str]) -> tuple[str, ...]:
        # Every login shell knows `exec`; without it another process would stand between sshd and ours.
        return ("--", self.destination, f"exec {quote(*words)}")

    def start_pulse(self, transport_pid: int) -> None:
        """Have the far side end what it does for us when it hears nothing any more. HostNotFitError if it cannot."""
        patience = self._patience
        watch = self.further(("sh", "-c", _WATCH, "sh", f"{patience.silence:g}", str(transport_pid)))
        heart = _start(("sh", "-c", _PULSE, "sh", f"{patience.pulse:g}"), stdin=subprocess.DEVNULL)
        self._pulse.append(heart)
        assert heart.stdout is not None
        watcher = _start(watch, stdin=heart.stdout.fileno())
        self._pulse.append(watcher)
        heart.stdout.close()
        assert watcher.stdout is not None
        poller = select.poll()
        poller.register(watcher.stdout, select.POLLIN)
        with waiting():
            heard = poller.poll(patience.connect * 1000)
        said = watcher.stdout.readline() if heard else b""
        if said != b"watching\n":
            raise ssh_failures.session_refused(self.destination)

    def stop_pulse(self) -> None:
        """Let the far side's watcher leave; its session would keep the connection open."""
        for process in self._pulse:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._pulse = []

    def close(self) -> None:
        """Leave nothing behind, the socket of a killed ssh included; the first session ends the connection."""
        self.stop_pulse()
        remove_file(Path(self._socket))


def _render_options(options: dict[str, str]) -> tuple[str, ...]:
    return tuple(word for name, value in options.items() for word in ("-o", f"{name}={value}"))


def _start(argv: Sequence[str], *, stdin: int) -> subprocess.Popen[bytes]:
    return start(
        Command(argv=tuple(argv)),
        UserAccount.load(None),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        on_parent_death=StopSignal.KILL,
    )


def _socket_path(run: str) -> str:
    path = f"{_private_folder(run)}/{os.getpid()}-{secrets.token_hex(3)}"
    if len(os.fsencode(path)) + _BESIDE > _LONGEST_SOCKET:
        remedy = "choose a folder with a shorter path"
        raise HostNotFitError("the path of a socket for ssh is too long", where=path, remedy=remedy)
    return path


def _private_folder(run: str) -> str:
    """The folder for control sockets: whoever can reach one can use the connection."""
    folder = Path(run, "ssh")
    make_folders(folder, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        remedy = "remove it"
        raise HostNotFitError("this folder is open to other users, or belongs to one", where=str(folder), remedy=remedy)
    return str(folder)
