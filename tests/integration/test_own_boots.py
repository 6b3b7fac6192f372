"""This machine boots other kernels for the visits of a study, which goes on by the same command; the boots are forged."""

import json
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from forged_boots import KERNELS, OLD, OWN
from own_machine import own_machine

pytestmark = [pytest.mark.server, pytest.mark.root]

FILE = "experiment.toml"
TEXT = f"blocks = 2\n{KERNELS}"
_STORED = ("STATE", "DATA", "LOCK")


@contextmanager
def made_machine(**more):
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-own-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "here").mkdir()
    (folder / FILE).write_text(TEXT)
    environ = {**os.environ, **{f"PGSTRATA_{name}": str(folder / "here" / name.lower()) for name in _STORED}}
    with own_machine(folder, environ, **more) as made:
        yield made
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def machine():
    with made_machine() as made:
        yield made


@pytest.fixture(scope="module")
def finished(machine):
    """What was said each time until the study was over."""
    said = []
    while not said or "done: 4 of 4 runs" not in said[-1]:
        assert len(said) < 8, "".join(said)
        code, text = machine.pgstrata("run", FILE, "--study", "study", "--reboot")
        assert code == 0, text
        said.append(text)
    return said


def kernels(machine, study):
    """The kernels with which runs were measured, by environment."""
    found = {}
    for path in (machine.folder / study).glob("evidence/**/run.json"):
        header = json.loads(path.read_text())
        found.setdefault(header["environment"], set()).add(header["facts"]["kernel"])
    return found


BOTH = {"kernel-6.12": {OWN}, "kernel-6.1": {OLD}}


def test_nothing_is_rebooted_unasked(machine):
    code, said = machine.pgstrata("run", FILE, "--study", "unasked")
    assert code == 2
    assert "--reboot" in said
    assert machine.boots.booted == [OWN]


def test_the_same_command_goes_on_after_each_boot(machine, finished):
    assert all("give the same command again when it is back" in text for text in finished[:-1])
    assert "of 4 runs are kept; this machine boots" in finished[0]


def test_each_visit_has_a_boot_of_its_own_with_the_kernel_that_it_asked_for(machine, finished):
    assert kernels(machine, "study") == BOTH
    # the one in which it was found, four for visits, and the last one home unless it was there already
    assert len(machine.boots.booted) in {5, 6}
    assert machine.boots.booted[-1] == OWN


def test_nothing_is_left_changed_for_the_next_study(machine, finished):
    code, said = machine.pgstrata("run", FILE, "--study", "next", "--reboot")
    assert code == 0, said
    assert "this machine boots" in said
    code, said = machine.pgstrata("host", "restore")
    assert code in {0, 4}
    if machine.boots.booted[-1] != OWN:
        machine.pgstrata("host", "restore")
    code, said = machine.pgstrata("host", "restore")
    assert code == 0, said
    assert "nothing is changed" in machine.pgstrata("host", "status")[1]


def test_a_kernel_that_does_not_come_up_is_named_and_nothing_is_left(machine, finished):
    machine.boots.dead.add(OLD)
    said = []
    while not said or "was told to boot" not in said[-1]:
        code, text = machine.pgstrata("run", FILE, "--study", "dead", "--reboot")
        said.append(text)
        assert len(said) < 4, "".join(said)
    machine.boots.dead.clear()
    assert code == 4
    assert f"this machine was told to boot {OLD} and came up with {OWN}" in said[-1]
    assert "nothing is changed" in machine.pgstrata("host", "status")[1]


@pytest.mark.soak("boots")
@pytest.mark.timeout(1800)
def test_kills_lose_nothing_and_the_same_command_goes_on(machine, finished):
    """In each boot the first command is killed at another moment."""
    study, ended = "killed", False
    for number in range(24):
        machine.begin("run", FILE, "--study", study, "--reboot")
        time.sleep(0.7 + 0.35 * (number % 5))
        machine.stop()
        code, said = machine.pgstrata("run", FILE, "--study", study, "--reboot")
        assert code == 0, said
        if ended := "done: 4 of 4 runs" in said:
            break
    assert ended
    assert kernels(machine, study) == BOTH


def test_an_interrupted_study_reboots_nothing_by_itself(machine, finished):
    study, said = "interrupted", ""
    while OLD not in machine.boots.booted[-1]:
        said = machine.pgstrata("run", FILE, "--study", study, "--reboot")[1]
    before = list(machine.boots.booted)
    machine.begin("run", FILE, "--study", study, "--reboot")
    machine.interrupt("up to 4 runs")
    said = machine.wait()[1]
    assert "this machine was not rebooted" in said
    assert machine.boots.booted == before
    machine.pgstrata("host", "restore")
    assert machine.boots.booted[-1] == OWN
    assert machine.pgstrata("host", "restore")[0] == 0
    assert "nothing is changed" in machine.pgstrata("host", "status")[1]


def test_systemd_goes_on_with_the_study_and_its_unit_goes_with_the_last_boot():
    if not Path("/etc/systemd/system").is_dir():
        pytest.skip("there is no folder for units of systemd")
    with made_machine(systemd=True) as machine:
        code, said = machine.pgstrata("run", FILE, "--study", "study", "--resume-after-boot")
        assert code == 0, said
        assert "it goes on by itself then" in said
        end = time.monotonic() + 240
        while machine.enabled() or not (machine.folder / "code").exists():
            assert time.monotonic() < end, machine.said()
            time.sleep(0.2)
        assert kernels(machine, "study") == BOTH
        assert machine.boots.booted[-1] == OWN
        assert not list((machine.folder / "units").iterdir())
        assert machine.pgstrata("host", "restore")[0] == 0
        assert "nothing is changed" in machine.pgstrata("host", "status")[1]


def test_without_systemd_the_remedy_is_the_other_option(machine):
    code, said = machine.pgstrata("run", FILE, "--study", "no-systemd", "--resume-after-boot")
    assert code == 4
    assert "use --reboot" in said


def test_after_a_last_visit_in_another_kernel_it_boots_its_own_one(machine, finished):
    words = ("run", FILE, "--study", "home", "--blocks", "1", "--seed", "2", "--reboot")
    said = []
    while not said or "this machine boots its own kernel now" not in said[-1]:
        assert len(said) < 4, "".join(said)
        code, text = machine.pgstrata(*words)
        assert code == 0, text
        said.append(text)
    assert "done: 2 of 2 runs" in said[-1]
    assert machine.boots.booted[-2:] == [OLD, OWN]
    # the entry of the other kernel is closed by the next command, whatever that is
    code, said = machine.pgstrata("run", FILE, "--study", "unasked")
    assert code == 2
    assert machine.pgstrata("host", "restore")[0] == 0
    assert "nothing is changed" in machine.pgstrata("host", "status")[1]
