"""The form of chaos on two hosts: a host that only ssh reaches is changed, and its coordinator here is killed.

The host is a network namespace with an sshd of its own (the rig of the tests): a real connection, and the kernel, files
and processes of this machine, so that the same list can be compared. The coordinator changes it by the layers of the
experiment's environments, one after the other, through the ledger over there, and undoes them; no server is started.
"""

# ruff: noqa: INP001  a part of a script

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from chaos import HOOK, Chaos

sys.path.append(str(Path(__file__).parents[1] / "tests" / "hosts"))

# In place of `pgstrata run`: the layers without servers. As many steps as were seen is what it prints at its end.
ENTRY: Final = """
if sys.argv[1] != "change":
    from pgstrata.cli.main import entry
    entry()
    sys.exit()

from pathlib import Path
from pgstrata.app.machine import SystemClock
from pgstrata.app.site import open_site
from pgstrata.experiment import parse_experiment
from pgstrata.layers.cpu import CpuLayer
from pgstrata.layers.memory import MemoryLayer
from pgstrata.layers.storage import StorageLayer
from pgstrata.layers.sysctl import SysctlLayer
from pgstrata.model.launch import Needs
from pgstrata.workloads import builtin_workloads

experiment = parse_experiment(
    Path("chaos.toml").read_text(), "chaos.toml", read_file=str, workloads=builtin_workloads())
needs = Needs(shared_memory=64 << 20, data=160 << 20, version=180000)
with open_site(sys.argv[2]) as site, host.at_work(site, SystemClock(), "chaos"):
    user = site.server_user()
    door = site.door.as_user(user) if user else site.door
    layers = (SysctlLayer(door), StorageLayer(door, "chaos", site.places.data), MemoryLayer(door),
              CpuLayer(door, "chaos", environments=experiment.environments))
    ledger = host.make_ledger(site, SystemClock(), "chaos")
    for environment in experiment.environments * 2:  # twice, so that whoever is late is still killed in between
        mark = ledger.mark()
        for layer in layers:
            if layer.concerns(environment):
                layer.prepare(environment, needs, ledger)
        ledger.undo_to(mark)
print(seen)
"""


class FarChaos(Chaos):
    """Rounds of kills while a host behind ssh is changed."""

    restoring = ("host", "restore", "--host", "far1")
    entry = ENTRY

    def __init__(self, folder: Path, seed: int) -> None:
        import sshd  # noqa: PLC0415 - the rig of the tests

        super().__init__(folder, seed)
        self._stack = ExitStack()
        (folder / "data").mkdir(mode=0o755)
        # over there these variables hold, not the ones of this side
        names = {name: self.environ.pop(name) for name in ("PGSTRATA_STATE", "PGSTRATA_DATA", "PGSTRATA_LOCK")}
        over_there = " ".join(f"{name}={path}" for name, path in names.items())
        far = self._stack.enter_context(sshd.far_hosts(folder / "rig", 1, (f"SetEnv {over_there}",)))[0]
        self.environ["PATH"] = str(far.path())

    @property
    def working(self) -> tuple[str, ...]:
        """The words of the command that changes the host."""
        return ("change", "far1")

    def prepare(self) -> None:
        """Change and undo everything, to know how many steps that has and how long it takes."""
        argv = [sys.executable, "-c", HOOK + self.entry, "0", str(self.told), *self.working]
        begun = time.monotonic()
        done = subprocess.run(argv, cwd=self.folder, env=self.environ, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.steps = int(done.stdout.split()[-1]) // 2
        self.latest = max((time.monotonic() - begun) / 2, 1.0)

    def close(self) -> None:
        """Take the host away."""
        self._stack.close()
