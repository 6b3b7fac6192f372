"""How soon an emulated virtual machine is of use to an experiment: until ssh, a server, and its first transaction.

A real study boots the machine for each visit. Emulation is the slowest case, and there is no other where hardware
virtualisation is missing. The image is made once, which takes some minutes and is not counted.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from far import storing_apart
from figures import Figure

from pgstrata.app.machine import open_machine
from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.app.vms import build_image
from pgstrata.errors import HostNotFitError
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.repository import StudyFolder
from pgstrata.vms.image import find_image
from pgstrata.vms.machine import VirtualMachine

IMAGE = "pgstrata-test"
KERNELS = ("6.1", "6.12")
GOAL = 60.0
TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen")
BLOCKS = int(os.environ.get("BLOCKS") or 1)
TEXT = f"""
question = "How soon is a virtual machine of use?"
blocks = {BLOCKS}
controls = ["reboot"]
[common]
host = "vm:{IMAGE}"
kernel = "6.12"
"vm.memory" = "1GB"
settings.shared_buffers = "64MB"
[[cells]]
workload = "simple-update"
scale = 1
clients = 1
rate = 20
run = "3s"
warmup = "0s"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Seconds since the machine was switched on for a visit."""

    ssh: float
    server: float
    transaction: float


@dataclass(slots=True)
class Moments:
    """When what came in a visit that booted the machine; implements `ports.Events`."""

    booted: float | None = None
    reached: float = 0.0
    answered: float = 0.0
    visits: list[Visit] = field(default_factory=list)
    control: Path | None = None
    """The folder of the machine's ssh configuration, which stays beside the image."""

    def emit(self, event: Event) -> None:
        if event.kind is not EventKind.STEP:
            return
        now = time.monotonic()
        if event.text.startswith("booting "):
            self.booted = now
        elif event.text == "assert":  # what follows the start of the server
            self.answered = now
        elif event.text == "measure" and self.booted is not None:
            begun, self.booted = self.booted, None
            self.visits.append(Visit(ssh=self.reached - begun, server=self.answered - begun, transaction=now - begun))

    def timed(self, start: Callable[..., None]) -> Callable[..., None]:
        """`VirtualMachine.start`, which ends when the guest's sshd answers."""

        def starting(vm: VirtualMachine, *arguments: Any, **named: Any) -> None:
            start(vm, *arguments, **named)
            self.reached = time.monotonic()
            self.control = Path(vm.ssh_config).parent

        return starting


def measure_boot() -> Iterator[Figure]:
    """Medians of the visits of one study; none where tools are missing."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        print(f"    no figures: {', '.join(missing)} missing")
        return
    _have_image()
    moments = Moments()
    with storing_apart() as folder, patch.object(VirtualMachine, "start", moments.timed(VirtualMachine.start)):
        file = folder / "experiment.toml"
        file.write_text(TEXT)
        run_experiment(load_plan(file), StudyFolder(folder / "study"), moments)
    if moments.control is not None:
        shutil.rmtree(moments.control)
    found = moments.visits
    note = f"of {len(found)} visits that booted the machine, emulated; data and installation are on its disk"
    yield Figure(
        name="boot: until ssh", value=statistics.median(each.ssh for each in found), goal=GOAL, unit="s", notes=(note,)
    )
    yield Figure(
        name="boot: until a server answers", value=statistics.median(each.server for each in found), goal=GOAL,
        unit="s", notes=("the host is locked, observed and tidied before, and the data are cloned",),
    )  # fmt: skip
    yield Figure(
        name="boot: until the first transaction", value=statistics.median(each.transaction for each in found),
        goal=GOAL, unit="s", notes=("of the load; settings are asserted, data read, counters captured before",),
    )  # fmt: skip


def _have_image() -> None:
    with open_machine(print) as machine:
        cache = machine.places.cache
    try:
        find_image(cache, IMAGE)
    except HostNotFitError:
        print(f"    making the image {IMAGE}", flush=True)
        build_image(IMAGE, suite="bookworm", kernels=KERNELS, note=print)
