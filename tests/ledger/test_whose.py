"""Whose state a thing is in: pgstrata's own, somebody else's, of an undo that was done already, or gone."""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from fake_clock import FakeClock
from pgstrata.errors import HostNotFitError, LevelNotTakenError
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.entries import host_state
from pgstrata.ledger.ledger import HostLedger
from pgstrata.ledger.undo import LedgerStep


@pytest.mark.parametrize(
    ("before", "value", "now", "theirs"),
    [
        ("0", "512", "511", False),  # the kernel gave fewer than it was asked for
        ("512", "0", "511", False),
        ("0", "512", "600", True),
        ("10", "20", "5", True),
        ("4096 100 200", "4096 300 400", "4096 300 200", False),
        ("4096 100 200", "4096 300 400", "4097 300 400", True),
        ("cubic", "bbr", "reno", True),
        ("max 100000", "0.5", "50000 100000", False),  # written in another way than it is asked for
        ("0-3", "0,1", "0-1", False),
    ],
)
def test_after_a_kill_in_mid_change_only_what_pgstrata_can_have_made_is_overwritten(
    place, things, before, value, now, theirs
):
    things.path("one").write_text(f"{before}\n")

    def die(step):
        if step is LedgerStep.BEFORE_CHANGE:
            raise SystemError

    with pytest.raises(SystemError):
        place.ledger(die).change(things.make("one", value))
    place.forget_owner()
    things.path("one").write_text(f"{now}\n")
    if theirs:
        with pytest.raises(HostNotFitError) as caught:
            place.restore()
        assert f"it was {before}, pgstrata was about to make it {value}, it is {now}" in caught.value.details[0]
        assert things.state("one") == now
        place.restore(force=True)
    else:
        place.restore()
    assert things.state("one") == before
    assert place.entries() == []


def test_what_has_gone_with_its_device_is_closed_with_a_note(place, ledger, things):
    ledger.change(things.make("one", "second", undo="exit 1"))
    things.path("one").unlink()
    ledger.undo_to(0)
    ledger.change(things.make("two", "second", undo="exit 1"))
    things.path("two").unlink()
    place.forget_owner()
    (closed,) = place.restore().closed
    assert closed.note == "it was first and no longer exists, so there is nothing to undo"
    assert place.entries() == []


def test_a_lasting_thing_that_has_gone_is_made_anew(place, ledger, things):
    ledger.change(things.make("one", "second", lasting=True))
    things.path("one").unlink()
    place.forget_owner()
    place.restore(force=True)
    assert things.state("one") == "first"


@pytest.mark.parametrize("step", [LedgerStep.BEFORE_UNDO, LedgerStep.UNDO_BEGUN, LedgerStep.UNDONE, LedgerStep.CLOSED])
def test_what_is_closed_already_is_not_looked_at_again_after_an_interruption(place, things, step):
    """Two changes of one thing: to the later one, which is closed, the first state would be somebody else's."""
    reached_so_far = []

    def interrupt(reached):
        if reached is step:
            reached_so_far.append(step)
            if len(reached_so_far) == 2:
                raise KeyboardInterrupt

    ledger = place.ledger(interrupt)
    ledger.change(things.make("one", "second"))
    ledger.change(things.make("one", "third"))
    with pytest.raises(KeyboardInterrupt):
        ledger.undo_to(0)
    ledger.undo_to(0)
    assert things.state("one") == "first"
    assert list(Path(place.folder).iterdir()) == []


def test_a_change_may_take_as_long_as_it_says_and_no_longer(place, ledger, things):
    slow = replace(things.make("one", "second", do='sleep 5; printf late >"$1"'), timeout=0.2)
    with pytest.raises(LevelNotTakenError) as caught:
        ledger.change(slow)
    assert "file one cannot be set to second" in caught.value.what
    assert things.state("one") == "first"
    assert place.entries() == []


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")
def test_what_one_user_changed_another_can_see(place, things):
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-test-", dir="/tmp"))
    folder.chmod(0o755)
    mine, theirs = LocalHost(), LocalHost(user="nobody")
    try:
        thing = folder / "thing"
        thing.write_text("first\n")
        ledger = HostLedger(mine, (), f"{folder}/deep/ledger", FakeClock(), "studies/a")
        ledger.change(type(things)(folder).make("thing", "second"))
        state = host_state(theirs, f"{folder}/deep/ledger")
        (entry,) = state.entries
        assert (entry.before, entry.after, state.unreadable) == ("first", "second", ())
        assert state.in_use == {1}
        type(place)(mine, f"{folder}/deep/ledger").forget_owner()
        assert not host_state(theirs, f"{folder}/deep/ledger").clean
    finally:
        mine.close()
        theirs.close()
        shutil.rmtree(folder)
