"""Another machine, through the user's own OpenSSH: their configuration, agent, jump hosts and known hosts.

Everything goes through one connection (`ssh_link`); on the far side nothing is needed but `sh`, coreutils and
util-linux (`shell`), and `tar` for what is sent there (`tree`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.errors import HostLostError, HostNotFitError
from pgstrata.hosts import ssh_failures
from pgstrata.hosts.shell import ShellHost
from pgstrata.hosts.ssh_link import Link, Patience
from pgstrata.libpq import VARIABLES
from pgstrata.ports.host import Command
from pgstrata.system.commands import become

# What the environment over there says to libpq is meant for servers of the user's own.
_LIBPQ: Final = (*VARIABLES, "PGREQUIRESSL", "PGDATESTYLE", "PGTZ", "PGGEQO", "PGSYSCONFDIR", "PGLOCALEDIR", "PGDATA")
_SHELL: Final = ("env", *(word for name in _LIBPQ for word in ("-u", name)), "sh")


class SshHost(ShellHost):
    """A machine behind a connection (`ports.Host`), as the user that ssh logs in as, or as another one.

    Args:
        link: the connection; whoever opens the first host of a link closes the link with it.
        owner: the host that made the connection, or None for that one itself.
        become: words that start a shell as another user; empty for the one that ssh logs in as.
    """

    def __init__(self, link: Link, *, owner: SshHost | None = None, become: Sequence[str] = ()) -> None:
        self._link = link
        self._owner = owner
        self._become = tuple(become)
        self._others: list[SshHost] = []
        words = (*self._become, "sh") if self._become else _SHELL
        try:
            super().__init__(link.further(words) if owner else link.first(words), name=link.destination)
        except HostLostError as error:
            self._let_go()
            raise ssh_failures.explain(error, link.destination) from error
        except BaseException:
            self._let_go()
            raise
        if owner is None:
            try:
                link.start_pulse(self.transport_pids[0])
            except BaseException:
                self.close()
                raise

    def _let_go(self) -> None:
        if self._owner is None:
            self._link.close()

    def as_user(self, user: str) -> SshHost:
        """The same connection as another user, closed with this one; itself for its own.

        Raises:
            HostNotFitError: there is no such user, ssh does not log in as root, or setpriv is missing.
        """
        if user == self.user:
            return self
        if self.user != "root":
            remedy = f"let ssh log in as root or as {user}"
            raise HostNotFitError(f"only root can work as the user {user}", where=self.name, remedy=remedy)
        self.run(Command(argv=("setpriv", "--version")))  # says which package is missing, if it is
        found = self.run(Command(argv=("id", "-g", "--", user)), check=False)
        if found.code:
            remedy = f"create it there (adduser --system {user}), or name another user"
            raise HostNotFitError(f"there is no user {user}", where=self.name, remedy=remedy)
        group = found.text.strip()
        other = SshHost(self._link, owner=self, become=become(user, group))
        self._others.append(other)
        return other

    def session(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command of this machine that runs `words` over there as this host's user, with its pipes."""
        return self._link.further((*(self._become or _SHELL[:-1]), *words))

    def close(self) -> None:
        for other in self._others:
            other.close()
        self._others = []
        if self._owner is None:
            # Its session would keep the connection open.
            self._link.stop_pulse()
        super().close()
        self._let_go()


def open_ssh(destination: str, *, run: str, config: str | None = None, patience: Patience | None = None) -> SshHost:
    """Connect, with the user's own ssh, never asking anything; programs run as the user that it logs in as.

    Args:
        destination: as the user writes it for ssh: db1, user@db1, ssh://user@db1:2222.
        run: a folder of this machine for the control socket; nobody but this user may be able to replace it.
        config: an ssh configuration file instead of the user's own.
        patience: how long silence is borne.

    Raises:
        UsageError: that is no destination.
        HostNotFitError: something has to be done about it first: host key, permission, a missing program.
        HostLostError: it cannot be reached now.
    """
    return SshHost(Link(destination, run=run, config=config, patience=patience))
