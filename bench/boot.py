"""How soon an emulated virtual machine is of use to an experiment: until ssh, a server, and its first transaction.

A real study boots the machine for each visit. Emulation is the slowest case, and there is no other where hardware
virtualisation is missing. The image is made once, which takes some minutes and is not counted.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from far import storing_apart
from figures import Figure

from pgstrata.app.machine import open_machine
from pgstrata.app.question import load_plan
from pgstrata.app.run import run_experiment
from pgstrata.app.vms import build_image
from pgstrata.errors import HostNotFitError
from pgstrata.layers.server import ClusterControl
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.repository import StudyFolder
from pgstrata.vms.image import find_image
from pgstrata.vms.machine import VirtualMachine

IMAGE = "pgstrata-test"
KERNELS = ("6.1", "6.12")
GOAL = 60.0
TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen")
TEXT = f"""
question = "How soon is a virtual machine of use?"
blocks = 1
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


@dataclass(slots=True)
class Moments:
    """Seconds of each visit, from the boot on; implements `ports.Events`."""

    begun: float = 0.0
    reached: float = 0.0
    answered: float = 0.0
    visits: list[tuple[float, float, float]] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        if event.kind is EventKind.STEP and event.text == "measure" and self.answered > self.reached > self.begun:
            now = time.monotonic()
            self.visits.append((self.reached - self.begun, self.answered - self.begun, now - self.begun))
            self.begun = now

    def booting(self, start: Callable[..., None]) -> Callable[..., None]:
        """`VirtualMachine.start`, which ends when ssh can log in."""

        def timed(vm: VirtualMachine, *arguments: Any, **named: Any) -> None:
            self.begun = time.monotonic()
            start(vm, *arguments, **named)
            self.reached = time.monotonic()

        return timed

    def starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """`ClusterControl.start`, which ends when the server has answered."""

        def timed(control: ClusterControl, *arguments: Any, **named: Any) -> Any:
            server = start(control, *arguments, **named)
            if self.answered < self.reached:
                self.answered = time.monotonic()
            return server

        return timed


def measure_boot() -> Iterator[Figure]:
    """Medians of the visits of one study; none where tools are missing."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        print(f"    no figures: {', '.join(missing)} missing")
        return
    _have_image()
    moments = Moments()
    with ExitStack() as stack:
        folder = stack.enter_context(storing_apart())
        for owner, name, timed in (
            (VirtualMachine, "start", moments.booting), (ClusterControl, "start", moments.starting),
        ):  # fmt: skip
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        file = folder / "experiment.toml"
        file.write_text(TEXT)
        run_experiment(load_plan(file), StudyFolder(folder / "study"), moments)
    ssh, server, transaction = (statistics.median(each) for each in zip(*moments.visits, strict=True))
    note = f"{len(moments.visits)} visits, each in a boot of its own, emulated"
    yield Figure(name="boot: until ssh", value=ssh, goal=GOAL, unit="s", notes=(note,))
    yield Figure(
        name="boot: until a server answers", value=server, goal=GOAL, unit="s",
        notes=("with the data cloned and the server started in the guest",),
    )  # fmt: skip
    yield Figure(
        name="boot: until the first transaction", value=transaction, goal=GOAL, unit="s",
        notes=("of the measured load; with all that pgstrata asserts, warms and captures before",),
    )  # fmt: skip


def _have_image() -> None:
    with open_machine(print) as machine:
        cache = machine.places.cache
    try:
        find_image(cache, IMAGE)
    except HostNotFitError:
        print(f"    making the image {IMAGE}", flush=True)
        build_image(IMAGE, suite="bookworm", kernels=KERNELS, note=print)
