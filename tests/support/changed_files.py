"""Files as the things that a ledger changes, in this process or in one that is killed."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from fake_clock import FakeClock
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.ledger import HostLedger, restore
from pgstrata.ledger.undo import go_on
from pgstrata.model.changes import Change, ShellScript

READ = '[ ! -e "$1" ] || cat "$1"'
DO = 'case $2 in refused) echo "not this" >&2; exit 3 ;; esac; printf "%s\\n" "$2" >"$1"'
# a thing that was not there before is removed
UNDO = 'if [ -n "$2" ]; then printf "%s\\n" "$2" >"$1"; else rm -f "$1"; fi'


@dataclass
class Files:
    """Files as the things that are changed."""

    folder: Path

    def path(self, what):
        return self.folder / what

    def make(self, what, value, *, do=DO, undo=UNDO, lasting=False):
        path = str(self.path(what))
        return Change(
            what=f"file {what}",
            value=value,
            lasting=lasting,
            read=ShellScript(text=READ, arguments=(path,)),
            do=ShellScript(text=do, arguments=(path, value)),
            undo=ShellScript(text=undo, arguments=(path,)),
        )

    def state(self, what):
        return self.path(what).read_text().strip() if self.path(what).exists() else ""


@dataclass
class Place:
    """A ledger's folder on a host."""

    host: LocalHost
    folder: str

    def ledger(self, at=go_on, privilege=()):
        return HostLedger(self.host, privilege, self.folder, FakeClock(), "studies/a", at=at)

    def entries(self):
        """Names of entries; nothing else may be left where there are none."""
        names = sorted(path.name for path in Path(self.folder).iterdir()) if Path(self.folder).exists() else []
        return [name for name in names if name.endswith(".json")] or names

    def forget_owner(self):
        """As if the pgstrata that made the entries had ended."""
        for name in self.entries():
            path = Path(self.folder, name)
            path.write_text(path.read_text().replace('"started": "', '"started": "1'))

    def restore(self, **options):
        return restore(self.host, (), self.folder, **options)


def python(source, *words):
    """What `subprocess` needs for a process of this Python that runs the source, and may import what stands here."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return {"args": [sys.executable, "-c", source, *map(str, words)], "env": environ}
