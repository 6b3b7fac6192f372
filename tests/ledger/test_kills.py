"""kill -9 at every step of a change and of its undoing: afterwards `restore` finds the first state again."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from changed_files import python
from pgstrata.ledger.entries import EntryFiles, host_state
from pgstrata.ledger.undo import LedgerStep, Undoer

# Changes three files, one of them twice, and undoes all; kills itself at the N-th time that it reaches a step.
COORDINATOR = """
import os, signal, sys
from pathlib import Path
from changed_files import Files, Place
{construction}
step, count = sys.argv[1], int(sys.argv[2])
seen = 0

def at(reached):
    global seen
    if reached == step:
        seen += 1
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)

things = Files(Path({things!r}))
ledger = Place(host, {folder!r}).ledger(at)
ledger.change(things.make("one", "second"))
ledger.change(things.make("three", "made", lasting=True))
ledger.change(things.make("one", "third"))
ledger.undo_to(0)
host.close()
"""
LOCAL = "from pgstrata.hosts.local import LocalHost\nhost = LocalHost()"
SHELL = "from pgstrata.hosts.shell import ShellHost\nhost = ShellHost(name='a shell')"

# Restores; kills itself in the same way.
RESTORER = """
import os, signal, sys
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.ledger import restore
step, count = sys.argv[1], int(sys.argv[2])
seen = 0

def at(reached):
    global seen
    if reached == step:
        seen += 1
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)

restore(LocalHost(), (), {folder!r}, at=at)
"""
UNDOING = (LedgerStep.BEFORE_UNDO, LedgerStep.UNDO_BEGUN, LedgerStep.UNDONE, LedgerStep.CLOSED)


def run(source, step, count):
    return subprocess.run(**python(source, step, count), capture_output=True, text=True, timeout=120)


def coordinator(things, place, construction=LOCAL):
    return COORDINATOR.format(construction=construction, things=str(things.folder), folder=place.folder)


def is_as_before(place, things):
    assert (things.state("one"), things.state("two")) == ("first", "first")
    assert not things.path("three").exists()
    return place.entries() == [] and host_state(place.host, place.folder).entries == ()


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("step", list(LedgerStep))
def test_a_kill_at_any_step_leaves_nothing_that_cannot_be_restored(place, things, step, count):
    killed = run(coordinator(things, place), step, count)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    state = host_state(place.host, place.folder)
    assert not state.in_use
    place.restore()
    assert is_as_before(place, things)


@pytest.mark.parametrize("step", list(LedgerStep))
def test_the_same_holds_through_a_shell(place, things, step):
    killed = run(coordinator(things, place, SHELL), step, 2)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    deadline = time.monotonic() + 10
    while host_state(place.host, place.folder).in_use and time.monotonic() < deadline:
        time.sleep(0.02)  # the shell notices the end of its coordinator in its own time
    place.restore()
    assert is_as_before(place, things)


@pytest.mark.parametrize("step", UNDOING)
def test_a_kill_while_restoring_is_restored_too(place, things, step):
    assert run(coordinator(things, place), LedgerStep.COMPLETED, 3).returncode == -signal.SIGKILL
    for count in (2, 1):
        assert run(RESTORER.format(folder=place.folder), step, count).returncode == -signal.SIGKILL
    place.restore()
    assert is_as_before(place, things)


def test_what_was_half_changed_or_half_undone_when_it_was_killed_is_no_conflict(place, things):
    """The state in between is neither of the known ones, and nobody but pgstrata has made it."""

    class KilledError(BaseException):
        pass

    def die_at(step):
        def at(reached):
            if reached is step:
                things.path("one").write_text("half way\n")
                raise KilledError

        return at

    with pytest.raises(KilledError):
        place.ledger(die_at(LedgerStep.CHANGED)).change(things.make("one", "second"))
    place.forget_owner()
    assert place.restore().closed[0].note == ""
    assert things.state("one") == "first"
    place.ledger().change(things.make("one", "second"))
    place.forget_owner()
    with pytest.raises(KilledError):
        place.restore(at=die_at(LedgerStep.UNDO_BEGUN))
    assert things.state("one") == "half way"
    place.restore()
    assert is_as_before(place, things)


# Its change is a shell whose child goes on when the shell has died with pgstrata.
LATE = """
import os, signal, sys, threading
from pathlib import Path
from changed_files import Files, Place
from pgstrata.hosts.local import LocalHost
late = ': >"$1.begun"; (sleep 2; printf "second\\n" >"$1"); true'
ledger = Place(LocalHost(), {folder!r}).ledger()
ledger.change(Files(Path({things!r})).make("one", "second", do=late))
"""


@pytest.mark.parametrize(("patience", "waits"), [(30, True), (0, False)])
def test_what_still_works_on_a_thing_after_a_kill_is_waited_for(place, things, patience, waits):
    source = LATE.format(folder=place.folder, things=str(things.folder))
    process = subprocess.Popen(**python(source))
    while not things.path("one.begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    state = host_state(place.host, place.folder)
    undoer = Undoer(files=EntryFiles(host=place.host, privilege=(), folder=place.folder), patience=patience)
    undone = undoer.undo(state.dirty, boot_id=state.boot_id)
    if not waits:
        assert "is still at work on it" in undone.kept[0].failure
        place.restore()
    assert is_as_before(place, things)


def test_what_is_written_when_the_kill_comes_is_swept_and_is_no_entry(place, things):
    folder = Path(place.folder)
    folder.mkdir(parents=True)
    torn = folder / f".00000001-{os.getpid()}.new"
    torn.write_text('{"program": "pgst')
    assert host_state(place.host, place.folder).clean
    place.restore()
    assert not torn.exists()
