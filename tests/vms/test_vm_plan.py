"""A virtual machine boots two kernels through a whole plan while it and pgstrata are killed: `make soak ARGS=vm-plan`.

In the part `vm-kills`, pgstrata is killed ten times around such boots.

The machine is emulated, because /dev/kvm may open where it runs no guest: a boot takes half a minute.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import brisk
from pgstrata.app.machine import open_machine
from pgstrata.app.vms import build_image
from pgstrata.errors import HostNotFitError
from pgstrata.vms.image import find_image
from working_folder import working_folder

_TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen")
_MISSING = [tool for tool in _TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.soak("vm-plan"),
    pytest.mark.root,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(_MISSING), reason=f"missing: {', '.join(_MISSING)}"),
]
IMAGE = "pgstrata-test"
BLOCKS = 3
KERNELS = ("6.1", "6.12")
TEXT = f"""
question = "Do two kernels come up through a whole plan?"
blocks = {BLOCKS}
[common]
host = "vm:{IMAGE}"
"vm.memory" = "1GB"
settings.shared_buffers = "64MB"
[factors]
kernel = ["6.1", "6.12"]
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 20
run = "5s"
warmup = "0s"
"""
_STORED = ("STATE", "DATA", "LOCK")
KILLS = 10
LONGEST = 15
"""Seconds after the beginning of a boot within which pgstrata is killed: an emulated one takes about ten."""


@pytest.fixture(scope="module")
def image():
    with open_machine(print) as machine:
        cache = machine.places.cache
    try:
        find_image(cache, IMAGE)
    except HostNotFitError:
        build_image(IMAGE, suite="bookworm", kernels=KERNELS, note=print)
    return Path(cache)


class Plan:
    """The experiment in a folder of its own, with all that pgstrata keeps for it but the image."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache
        stored = {f"PGSTRATA_{name}": str(folder / name.lower()) for name in _STORED}
        self.environ = {**os.environ, **stored}
        (folder / "experiment.toml").write_text(TEXT)
        self.said = []

    def start(self, study="study"):
        words = [sys.executable, brisk.__file__, "run", "experiment.toml", "--study", study, "--events"]
        errors = (self.folder / "errors").open("ab")
        with errors:
            return subprocess.Popen(
                words, cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def follow(self, process, reached):
        """Read events until one of them is reached; it, or None if the experiment ended before."""
        for line in process.stdout:
            event = json.loads(line)
            self.said.append(event)
            if reached(event):
                return event
        return None

    def kill_at_a_boot(self, study, number, more):
        """Start the experiment and end it with -9 so many seconds after a boot began; whether it ended by itself."""
        with self.start(study) as process:
            if self.follow(process, nth_boot(number)) is None:
                assert process.wait(60) == 0, (self.folder / "errors").read_text()
                return True
            time.sleep(more)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        return False

    def pgstrata(self, *arguments):
        words = [sys.executable, brisk.__file__, *arguments]
        return subprocess.run(
            words, cwd=self.folder, env=self.environ, timeout=180, capture_output=True, text=True, check=False
        )

    def guests(self):
        """The process ids of QEMU with a data disk in the folder."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0].startswith(b"qemu-system") and any(bytes(self.folder) in word for word in words):
                    found.append(int(entry.name))
        return found

    def records(self, study="study"):
        """The headers of the runs that are kept, by identity."""
        paths = (self.folder / study / "evidence").glob("b*/*/*/run.json")
        return {"/".join(path.parts[-4:-1]): path.read_text() for path in paths}


@pytest.fixture(scope="module")
def plan(image):
    with working_folder("pgstrata-vm-plan-") as folder:
        made = Plan(folder, image)
        before = {path.name for path in (image / "vms").glob(".machine-*")}
        yield made
        for pid in made.guests():
            os.kill(pid, signal.SIGKILL)
        for path in (image / "vms").glob(".machine-*"):
            if path.name not in before:
                shutil.rmtree(path)


def in_measurement_of(block, number):
    """True at the measured window of the so manieth run of a block."""
    seen = []

    def reached(event):
        if event["kind"] == "step" and event["text"] == "measure" and event["run"].startswith(f"b{block:02}/"):
            seen.append(event["run"])
        return len(seen) == number

    return reached


def nth_boot(number):
    """True when the machine begins to boot for the so manieth time."""
    begun = []

    def reached(event):
        if "booting the virtual machine" in event.get("text", ""):
            begun.append(event)
        return len(begun) == number

    return reached


def require_complete(records):
    """Each block has a run with each kernel, and none has failed."""
    assert {identity.split("/")[0] for identity in records} == {f"b{block:02}" for block in range(1, BLOCKS + 1)}
    assert len(records) == BLOCKS * len(KERNELS)
    for identity, text in records.items():
        header = json.loads(text)
        assert not header["failure"], identity
        kernel = header["facts"]["host.kernel"]
        assert ("6.12" in header["environment"]) == kernel.startswith("6.12."), (identity, kernel)


def test_a_plan_whose_machine_and_coordinator_are_killed_ends_with_complete_blocks(plan):
    with plan.start() as process:
        assert plan.follow(process, in_measurement_of(1, 2)), (plan.folder / "errors").read_text()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    kept = plan.records()
    assert len(kept) == 1
    with plan.start() as process:
        assert plan.follow(process, in_measurement_of(2, 2)), (plan.folder / "errors").read_text()
        (pid,) = plan.guests()
        os.kill(pid, signal.SIGKILL)
        plan.follow(process, lambda _: False)
        assert process.wait(60) == 0, (plan.folder / "errors").read_text()
    records = plan.records()
    require_complete(records)
    assert records.items() >= kept.items()
    warnings = [event["text"] for event in plan.said if event["kind"] == "warning"]
    assert any("broke" in text for text in warnings), warnings


def require_nothing_left(plan):
    """No guest, mount, change or half-made disk of the experiment is on this host."""
    assert plan.guests() == []
    assert str(plan.folder) not in Path("/proc/mounts").read_text()
    assert not list((plan.folder / "state").rglob("ledger/*.json"))
    assert "nothing is changed" in plan.pgstrata("host", "status").stdout
    assert not list((plan.folder / "data" / "vms").glob("*.partial"))


def test_nothing_is_left_on_this_host(plan):
    require_nothing_left(plan)


def test_the_study_can_be_shown(plan):
    shown = plan.pgstrata("show", "study")
    assert shown.returncode == 0, shown.stderr


@pytest.mark.soak("vm-kills")
def test_kills_around_emulated_boots_lose_no_run_and_leave_nothing(plan):
    draw = random.Random(18)
    kills = number = 0
    while kills < KILLS:
        number += 1
        study, kept = f"killed-{number}", {}
        while kills < KILLS and not plan.kill_at_a_boot(study, draw.randint(1, 3), draw.uniform(0, LONGEST)):
            kills += 1
            now = plan.records(study)
            assert kept.items() <= now.items()
            kept = now
        with plan.start(study) as process:
            plan.follow(process, lambda _: False)
            assert process.wait(60) == 0, (plan.folder / "errors").read_text()
        records = plan.records(study)
        require_complete(records)
        assert kept.items() <= records.items()
        require_nothing_left(plan)
