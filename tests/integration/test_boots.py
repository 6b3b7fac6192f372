"""A machine that ssh reaches is booted into other kernels for the visits of a study; the boots are forged."""

import json
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

import sshd
from far_place import FILE, FarPlace
from forged_boots import KERNELS, OLD, OWN, forged_boots

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())]

TEXT = 'blocks = 1\ncontrols = ["same"]\n' + KERNELS.replace("[common]\n", '[common]\nhost = "ssh:far1"\n')


class Place(FarPlace):
    """The far host has boots of its own."""

    def __init__(self, folder, far, boots):
        super().__init__(folder, far, TEXT)
        self.boots = boots

    def kill_after(self, study, events, more):
        """Start the experiment and end it with -9 after so many events and seconds; whether it ended by itself."""
        process = self.start(study)
        for count, _ in enumerate(process.stdout, start=1):
            if count >= events:
                break
        else:
            process.communicate(timeout=60)
            return process.returncode == 0
        time.sleep(more)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        return False

    def records(self, study):
        """The runs of a study, by identity, with the text of their headers."""
        found = (self.folder / study).glob("evidence/**/run.json")
        return {str(path.parent): path.read_text() for path in found}


@pytest.fixture(scope="module")
def place():
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-boots-", dir="/tmp"))
    folder.chmod(0o755)
    there = folder / "there"
    there.mkdir()
    with (
        sshd.far_hosts(folder / "net", 1, [sshd.own_folders(there)]) as (far,),
        forged_boots(far, folder / "boots") as boots,
    ):
        yield Place(folder, far, boots)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def killed(place):
    """What was said after a kill at the second kernel, and by the same command again."""
    place.kill_at("study", lambda event: f"booting ssh:far1: {OLD}" in event.get("text", ""))
    return place.pgstrata("run", FILE, "--study", "study")


def test_the_same_command_brings_the_machine_home_and_goes_on(place, killed):
    assert killed.returncode == 0, killed.stdout + killed.stderr
    assert place.boots.booted[-1] == OWN


def test_each_run_was_measured_with_the_kernel_that_was_asked_for(place, killed):
    kernels = {}
    for path in (place.folder / "study").glob("evidence/**/run.json"):
        header = json.loads(path.read_text())
        kernels[header["environment"]] = header["facts"]["kernel"]
    assert kernels == {"kernel-6.12": OWN, "kernel-6.12-control": OWN, "kernel-6.1": OLD}


def test_nothing_is_left_in_the_ledger(place, killed):
    assert "nothing is changed" in place.pgstrata("host", "status", "--host", "far1").stdout


def test_a_kernel_that_does_not_come_up_is_named_with_the_one_that_runs(place, killed):
    place.boots.dead.add(OLD)
    done = place.pgstrata("run", FILE, "--study", "other")
    assert done.returncode == 4
    assert f"ssh:far1 was told to boot {OLD} and came up with {OWN}" in done.stderr + done.stdout
    assert "nothing is changed" in place.pgstrata("host", "status", "--host", "far1").stdout


KILLS = 40


@pytest.mark.soak("boots")
@pytest.mark.timeout(3600)
def test_kills_around_boots_lose_no_run_and_the_machine_is_given_back(place):
    draw = random.Random(18)
    (place.folder / FILE).write_text(TEXT.replace("blocks = 1", "blocks = 2"))
    kills = number = 0
    while kills < KILLS:
        number += 1
        study, kept = f"killed-{number}", {}
        while kills < KILLS and not place.kill_after(study, draw.randrange(1, 45), draw.random()):
            kills += 1
            now = place.records(study)
            assert kept.items() <= now.items()
            kept = now
        done = place.pgstrata("run", FILE, "--study", study)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(place.records(study)) == 6
        assert place.boots.booted[-1] == OWN
        assert "nothing is changed" in place.pgstrata("host", "status", "--host", "far1").stdout
    (place.folder / FILE).write_text(TEXT)
