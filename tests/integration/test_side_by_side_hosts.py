"""Two machines that are told to share nothing, measured at the same time: real servers, clients beside them."""

import os
import signal
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

import sshd
from fake_clock import RecordingEvents
from far_place import far_machines, far_study
from pgstrata.app.targets import MachineTarget
from pgstrata.errors import InterruptedByUserError
from pgstrata.ports.events import EventKind
from pgstrata.store.repository import StudyFolder

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.company,
    pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not()),
]

TEXT = """
blocks = 2
[factors]
host = ["ssh:far1", "ssh:far2"]
[common]
client = "same"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "2s"
warmup = "0s"
"""


@contextmanager
def two_machines():
    """They are told to share nothing: namespaces of one computer have one kernel, and would be measured in turn."""
    with far_machines(2) as machines, pytest.MonkeyPatch.context() as patch:
        patch.setattr(MachineTarget, "kernel", lambda target: target.spec.destination)
        yield machines


@pytest.fixture(scope="module")
def made():
    """The study, its outcome and what was said."""
    with two_machines() as (folder, found), far_study(folder, found[0], TEXT, RecordingEvents()) as study:
        yield study


def runs_of(study, block):
    return [run for run in StudyFolder(study).load().runs if run.block == block]


def test_all_runs_are_made_and_blocks_are_complete(made):
    study, outcome, events = made
    assert outcome.done == outcome.total == 4
    assert {run.status for run in StudyFolder(study).load().runs} == {"completed"}
    assert any("2 groups of machines" in event.text for event in events.of_kind(EventKind.NOTE))


def test_the_two_machines_are_measured_at_the_same_time(made):
    study, _, _ = made
    for block in (1, 2):
        begun = [datetime.fromisoformat(run.started) for run in runs_of(study, block)]
        ended = [
            start + timedelta(seconds=run.measured_seconds)
            for start, run in zip(begun, runs_of(study, block), strict=True)
        ]
        assert max(begun) < min(ended), block


def test_the_blocks_follow_each_other(made):
    study, _, _ = made
    first, second = ([datetime.fromisoformat(run.started) for run in runs_of(study, block)] for block in (1, 2))
    assert max(first) < min(second)


class AtMeasuring(RecordingEvents):
    """Does something once, when the run of an environment is measured."""

    def __init__(self, environment, action):
        super().__init__()
        self.environment, self.action = environment, action

    def emit(self, event):
        super().emit(event)
        if event.text == "measure" and f"/{self.environment}/" in event.run and self.action is not None:
            action, self.action = self.action, None
            action()


@pytest.fixture
def machines():
    with two_machines() as found:
        yield found


@pytest.mark.soak("two-hosts")
def test_a_machine_that_is_lost_is_waited_for_and_the_other_goes_on(machines):
    folder, found = machines

    def lose():
        found[1].stop()
        found[1].start()

    events = AtMeasuring("far2", lose)
    with far_study(folder, found[0], TEXT.replace("blocks = 2", "blocks = 1"), events) as (study, outcome, _):
        assert outcome.done == outcome.total == 2
        assert {run.status for run in StudyFolder(study).load().runs} == {"completed"}
        finished = [event.run.split("/")[1] for event in events.of_kind(EventKind.RUN_FINISHED)]
        assert finished == ["far1", "far2"]
    assert any("ssh:far2" in event.text for event in events.of_kind(EventKind.WARNING))


@pytest.mark.soak("two-hosts")
def test_an_interruption_ends_both_and_the_same_command_goes_on(machines):
    folder, found = machines
    # a job in the background of a script is started so that it ignores SIGINT
    signal.signal(signal.SIGINT, signal.default_int_handler)
    events = AtMeasuring("far2", lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(InterruptedByUserError), far_study(folder, found[0], TEXT, events):
        raise AssertionError("it was not interrupted")
    kept = len(StudyFolder(folder / "study").load().runs)
    assert kept < 4
    left = [each for number in (1, 2) for each in (folder / f"there{number}" / "data").rglob("postmaster.pid")]
    assert not left
    with far_study(folder, found[0], TEXT, RecordingEvents()) as (study, outcome, _):
        assert (outcome.done, outcome.measured) == (4, 4 - kept)
        assert {run.status for run in StudyFolder(study).load().runs} == {"completed"}
