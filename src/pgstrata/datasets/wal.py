"""The WAL of a clone on other storage than its data: moved there, with a link in its place, as by `initdb --waldir`."""

from __future__ import annotations

from typing import Final

from pgstrata.model.changes import ShellScript
from pgstrata.ports.host import Command, Host

# pg_xlog before 10. The pristine segments are copied and not left out: a server that recycles some starts faster than
# one that must make them all.
_MOVE: Final = """
for name in pg_wal pg_xlog; do
    [ -d "$1/$name" ] || continue
    [ ! -L "$1/$name" ] || { echo "$1/$name is a link already" >&2; exit 1; }
    cp -a -- "$1/$name" "$2/$name" && rm -rf -- "$1/$name" && ln -s -- "$2/$name" "$1/$name" || exit
    exit 0
done
echo "there is no WAL in $1" >&2
exit 1
"""


def move_wal(host: Host, data: str, folder: str, *, timeout: float) -> None:
    """Move the WAL of a stopped cluster into an existing folder; CommandFailedError, DiskFullError."""
    host.run(Command(argv=ShellScript(text=_MOVE, arguments=(data, folder)).argv), timeout=timeout)
