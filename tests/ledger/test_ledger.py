"""A ledger changes files of a real host, writes down what it does, and undoes it."""

import fcntl
import json
import os
import subprocess
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_ledger import FakeLedger, LedgerConformance
from pgstrata.errors import HostNotFitError, LevelNotTakenError, PgstrataError
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.ledger.entries import host_state, parse_entry, render_entry
from pgstrata.ledger.ledger import restore
from pgstrata.ledger.undo import LedgerStep
from pgstrata.model.changes import Change, ChangeOwner, Entry, ShellScript
from pgstrata.system import commands


class TestHostLedger(LedgerConformance):
    pass


class TestHostLedgerThroughAShell(LedgerConformance):
    @pytest.fixture
    def host(self):
        host = ShellHost(name="a shell")
        yield host
        host.close()


def entry_files(place):
    return [Path(place.folder, name) for name in place.entries()]


def pretend(path, **fields):
    """Change fields of an entry's file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def earlier_boot(path):
    owner = json.loads(path.read_text())["owner"]
    pretend(path, owner={**owner, "boot_id": "a boot of yesterday"})


def dead_owner(path):
    owner = json.loads(path.read_text())["owner"]
    pretend(path, owner={**owner, "started": "1"})


def test_a_change_is_written_down_with_its_undo_before_it_is_made(place, things):
    seen = []

    def look(step):
        if step is LedgerStep.BEFORE_CHANGE:
            (path,) = entry_files(place)
            seen.append((json.loads(path.read_text()), things.state("one")))

    place.ledger(look).change(things.make("one", "second"))
    ((fields, state),) = seen
    assert state == "first"
    assert (fields["before"], fields["after"], fields["value"]) == ("first", None, "second")
    assert fields["undo"]["arguments"][-1] == "first"
    assert fields["undo_by_hand"].startswith("/bin/sh -c ")
    assert fields["owner"]["pid"] == os.getpid()
    assert fields["owner"]["study"] == "studies/a"
    (entry,) = host_state(place.host, place.folder).entries
    assert entry.after == "second"


def test_the_undo_by_hand_does_what_it_says(place, ledger, things):
    ledger.change(things.make("one", "second"))
    (path,) = entry_files(place)
    assert os.system(json.loads(path.read_text())["undo_by_hand"]) == 0
    assert things.state("one") == "first"
    ledger.undo_to(0)  # what is as before already is no conflict
    assert place.entries() == []


def test_an_entry_survives_being_written_and_read(place, ledger, things):
    ledger.change(things.make("two", "a\tb 'c' \udcff"))
    (entry,) = host_state(place.host, place.folder).entries
    assert parse_entry(render_entry(entry).encode()) == entry
    assert entry.after == "a\tb 'c' \udcff"


def test_what_was_not_there_is_not_there_afterwards(place, ledger, things):
    assert ledger.change(things.make("three", "made")) == "made"
    ledger.undo_to(0)
    assert not things.path("three").exists()
    assert place.entries() == []


def test_a_refused_change_says_the_last_words_and_leaves_no_entry(place, ledger, things):
    with pytest.raises(LevelNotTakenError) as caught:
        ledger.change(things.make("one", "refused"))
    assert "file one cannot be set to refused" in caught.value.what
    assert caught.value.details == ("not this",)
    assert place.entries() == []


def test_what_a_failed_change_did_half_is_undone(place, ledger, things):
    half = 'printf "%s\\n" half >"$1"; exit 1'
    with pytest.raises(LevelNotTakenError):
        ledger.change(things.make("one", "second", do=half))
    assert things.state("one") == "first"
    assert place.entries() == []


def test_a_thing_that_cannot_be_read_is_not_changed(place, ledger, things):
    change = things.make("one", "second")
    unreadable = replace(change, read=ShellScript(text="echo broken >&2; exit 1"))
    with pytest.raises(HostNotFitError) as caught:
        ledger.change(unreadable)
    assert "file one cannot be read" in caught.value.what
    assert caught.value.details == ("broken",)
    assert things.state("one") == "first"
    assert place.entries() == []


def test_a_failed_undo_is_loud_keeps_its_entry_and_the_others_are_undone(place, ledger, things):
    ledger.change(things.make("one", "second"))
    ledger.change(things.make("three", "made", undo="echo stuck >&2; exit 5"))
    ledger.change(things.make("two", "second"))
    with pytest.raises(HostNotFitError) as caught:
        ledger.undo_to(0)
    assert "1 change of this host could not be undone" in caught.value.what
    assert caught.value.details == ("file three: undoing it ended with exit code 5: stuck",)
    assert "pgstrata host restore" in caught.value.remedy
    assert (things.state("one"), things.state("two"), things.state("three")) == ("first", "first", "made")
    (kept,) = host_state(place.host, place.folder).entries
    assert (kept.what, kept.after) == ("file three", "made")
    assert "stuck" in kept.failure
    with pytest.raises(HostNotFitError):  # it is tried again, and told again
        ledger.undo_to(0)


def test_an_undo_that_says_it_went_well_and_did_not_is_found_out(place, ledger, things):
    ledger.change(things.make("one", "second", undo="true"))
    with pytest.raises(HostNotFitError) as caught:
        ledger.undo_to(0)
    assert caught.value.details == ("file one: undoing it left second, it was first",)
    assert len(place.entries()) == 1


def test_below_a_later_change_that_is_stuck_nothing_of_the_same_thing_is_undone(place, ledger, things):
    ledger.change(things.make("one", "second"))
    ledger.change(things.make("one", "third", undo="exit 1"))
    with pytest.raises(HostNotFitError) as caught:
        ledger.undo_to(0)
    assert len(caught.value.details) == 2
    assert things.state("one") == "third"
    assert len(place.entries()) == 2


def test_what_somebody_else_changed_meanwhile_is_not_overwritten_unless_forced(place, ledger, things):
    ledger.change(things.make("one", "second"))
    things.path("one").write_text("theirs\n")
    with pytest.raises(HostNotFitError) as caught:
        ledger.undo_to(0)
    (said,) = caught.value.details
    assert "it was first, pgstrata made it second, it is theirs" in said
    assert "--force" in caught.value.remedy
    assert things.state("one") == "theirs"
    (path,) = entry_files(place)
    dead_owner(path)
    with pytest.raises(HostNotFitError):
        place.restore()
    assert things.state("one") == "theirs"
    (closed,) = place.restore(force=True).closed
    assert closed.note == "somebody else had made it theirs"
    assert things.state("one") == "first"
    assert place.entries() == []


def test_a_thing_that_an_undo_left_half_way_can_be_restored_without_force(place, ledger, things):
    half = '[ -e "$1.go" ] || { printf "%s\\n" half >"$1"; exit 1; }; printf "%s\\n" "$2" >"$1"'
    ledger.change(things.make("one", "second", undo=half))
    with pytest.raises(HostNotFitError):
        ledger.undo_to(0)
    assert things.state("one") == "half"
    dead_owner(*entry_files(place))
    things.path("one.go").write_text("")
    place.restore()
    assert things.state("one") == "first"


def test_what_a_reboot_resets_is_closed_with_a_note_and_files_are_undone(place, ledger, things):
    ledger.change(things.make("one", "second"))
    ledger.change(things.make("two", "second", lasting=True))
    for path in entry_files(place):
        earlier_boot(path)
    things.path("one").write_text("of this boot\n")
    undone = place.restore()
    assert [closed.entry.what for closed in undone.closed] == ["file two", "file one"]
    assert undone.closed[1].note == ("changed before the last boot, which reset it: it was first and is of this boot")
    assert (things.state("one"), things.state("two")) == ("of this boot", "first")
    assert place.entries() == []


def test_entries_of_a_living_pgstrata_are_left_alone(place, ledger, things):
    ledger.change(things.make("one", "second"))
    state = host_state(place.host, place.folder)
    assert state.clean
    assert state.in_use == {state.entries[0].number}
    assert place.restore().closed == ()
    assert things.state("one") == "second"
    dead_owner(*entry_files(place))
    assert not host_state(place.host, place.folder).clean
    place.restore()
    assert things.state("one") == "first"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[" * 5000, b"[]", b"null", b"\xff\xfe", b'{"program": "pgstrata", "format": 1}', b"torn"]
)
def test_a_damaged_entry_is_named_and_never_removed(place, ledger, things, content):
    ledger.change(things.make("one", "second"))
    dead_owner(*entry_files(place))
    damaged = Path(place.folder, "00000007.json")
    damaged.write_bytes(content or b"")
    state = host_state(place.host, place.folder)
    assert state.unreadable == (str(damaged),)
    assert not state.clean
    for force in (False, True):
        with pytest.raises(HostNotFitError) as caught:
            place.restore(force=force)
        assert str(damaged) in caught.value.details[-1]
    assert damaged.read_bytes() == content
    assert things.state("one") == "first"
    assert place.ledger().change(things.make("one", "second")) == "second"  # its number is not used again


def test_an_entry_under_another_name_is_damage(place, ledger, things):
    ledger.change(things.make("one", "second"))
    (path,) = entry_files(place)
    Path(place.folder, "00000009.json").write_bytes(path.read_bytes())
    assert host_state(place.host, place.folder).unreadable == (f"{place.folder}/00000009.json",)


def test_who_may_read_an_entry_cannot_hold_up_what_is_done_with_it(place, ledger, things):
    """A lock needs no more than a descriptor to read with, and everybody may read an entry."""
    ledger.change(things.make("one", "second"))
    (path,) = entry_files(place)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ledger.undo_to(0)
    assert things.state("one") == "first"
    assert list(Path(place.folder).iterdir()) == []


def test_nobody_else_can_open_the_lock_beside_an_entry(place, ledger, things):
    ledger.change(things.make("one", "second"))
    (path,) = entry_files(place)
    assert path.with_suffix(".lock").stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_holds_the_lock_of_an_entry_is_named_and_not_waited_for_without_end(tmp_path):
    entry, done = tmp_path / "00000001.json", tmp_path / "done"
    entry.touch()
    script = commands.holding(str(entry), ShellScript(text=': >"$1"', arguments=(str(done),)), patience=0)
    with entry.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held = subprocess.run(script.argv, capture_output=True, text=True)
    lock = entry.with_suffix(".lock")
    assert (held.returncode, done.exists()) == (commands.STILL_AT_WORK, False)
    assert held.stderr == f"another process holds {lock}: end it (fuser {lock} names it), or wait for it\n"
    assert subprocess.run(script.argv).returncode == 0
    assert done.exists()


def test_two_ledgers_in_one_folder_number_their_entries_apart(place, things):
    first, second = place.ledger(), place.ledger()
    first.change(things.make("one", "second"))
    second.change(things.make("two", "second"))
    first.change(things.make("three", "second"))
    assert len(place.entries()) == 3
    first.undo_to(0)
    assert (things.state("one"), things.state("two"), things.state("three")) == ("first", "second", "")
    second.undo_to(0)
    assert place.entries() == []


def test_a_number_that_is_taken_in_between_is_left_out(place, things):
    other = place.ledger()
    raced = []

    def race(step):
        if step is LedgerStep.BEFORE_ENTRY and not raced:
            raced.append(other.change(things.make("two", "second")))

    place.ledger(race).change(things.make("one", "second"))
    assert len(place.entries()) == 2


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="only root works where others write")
@pytest.mark.parametrize("above", [0, 1])
def test_what_another_user_could_have_written_is_not_carried_out(open_place, things, above):
    open_place.ledger().change(things.make("one", "second"))
    folder = Path(open_place.folder, *[".."] * above).resolve()
    owner = folder.stat()
    os.chown(folder, 65534, 65534)
    try:
        with pytest.raises(HostNotFitError, match="user nobody could change"):
            restore(open_place.host, (), open_place.folder)
        assert things.state("one") == "second"
    finally:
        os.chown(folder, owner.st_uid, owner.st_gid)


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.chmod(0o664), "can be changed by other users"),
        (lambda path: path.write_bytes(path.read_bytes() + b" " * (1 << 20)), "larger than 1 MiB"),
        (as_pipe, "is a fifo"),
        pytest.param(
            lambda path: os.chown(path, 65534, -1),
            "belongs to nobody",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".note"])
def test_a_file_that_another_user_could_have_written_is_not_carried_out(place, ledger, things, spoil, said, suffix):
    ledger.change(things.make("one", "second"))
    place.forget_owner()
    (path,) = (path.with_suffix(suffix) for path in entry_files(place))
    spoil(path)
    with pytest.raises(HostNotFitError, match=said) as caught:
        restore(place.host, (), place.folder)
    assert str(path) in caught.value.where
    assert things.state("one") == "second"


def test_no_ledger_is_made_where_other_users_may_write(open_place, things):
    Path(open_place.folder).parents[1].chmod(0o777)
    with pytest.raises(HostNotFitError, match="other users may write"):
        open_place.ledger().change(things.make("one", "second"))
    assert not Path(open_place.folder).parent.exists()
    assert things.state("one") == "first"


def test_no_entry_is_written_through_a_link_that_was_put_there_before(place, ledger, things, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    Path(place.folder).mkdir(parents=True)
    Path(place.folder, f".00000001-{os.getpid()}.new").symlink_to(precious)
    ledger.change(things.make("one", "second"))
    assert precious.read_text() == "precious"


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_on_a_full_disk_nothing_is_changed_and_everything_can_be_undone(host, tmp_path, things):
    import subprocess

    from fake_clock import FakeClock
    from pgstrata.errors import DiskFullError
    from pgstrata.ledger.ledger import HostLedger

    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", small], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode()}")
    try:
        ledger = HostLedger(host, (), f"{small}/ledger", FakeClock(), "a")
        ledger.change(things.make("one", "second"))
        (small / "filling").write_bytes(b"")
        subprocess.run(["dd", "if=/dev/zero", f"of={small}/filling", "bs=4096"], capture_output=True)
        with pytest.raises(DiskFullError) as caught:
            ledger.change(things.make("two", "second"))
        assert "free space" in caught.value.remedy
        assert things.state("two") == "first"
        ledger.undo_to(0)
        assert things.state("one") == "first"
        assert list((small / "ledger").iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_who_has_no_privilege_is_told_before_anything_is_written(place, things):
    with pytest.raises(HostNotFitError) as caught:
        place.ledger(privilege=("false",)).change(things.make("one", "second"))
    assert "may not change this host: false is refused" in caught.value.what
    assert things.state("one") == "first"
    assert place.entries() == []


def test_privilege_stands_before_what_changes_and_not_before_what_reads(place, things, tmp_path):
    log = tmp_path / "log"
    script = tmp_path / "privileged"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{log}"\nexec "$@"\n')
    script.chmod(0o755)
    ledger = place.ledger(privilege=(str(script),))
    change = things.make("one", "second")
    ledger.change(change)
    ledger.undo_to(0)
    assert log.read_text().count(change.do.text) == 1
    assert change.read.text not in log.read_text()


def test_the_fake_remembers_and_runs_nothing():
    fake = FakeLedger(lambda change: f"{change.value} kB", refused=("sysctl b",))
    never = ShellScript(text="exit 1")

    def make(what):
        return Change(what=what, value="1", read=never, do=never, undo=never)

    assert fake.change(make("sysctl a")) == "1 kB"
    mark = fake.mark()
    assert fake.change(make("sysctl c")) == "1 kB"
    with pytest.raises(LevelNotTakenError):
        fake.change(make("sysctl b"))
    fake.undo_to(mark)
    assert [change.what for change in fake.open] == ["sysctl a"]
    assert [change.what for change in fake.undone] == ["sysctl c"]
    fake.undo_to(0)
    assert [change.what for change in fake.changes] == ["sysctl a", "sysctl c"]


@pytest.mark.parametrize(
    "note", [b"", b"{", b"[" * 5000, b"[]", b'{"made": "yesterday", "after": "x", "failure": ""}', None]
)
def test_without_its_note_an_entry_is_undone_all_the_same(place, ledger, things, note):
    ledger.change(things.make("one", "second"))
    (path,) = entry_files(place)
    beside = path.with_suffix(".note")
    if note is None:
        beside.unlink()
    else:
        beside.write_bytes(note)
    (entry,) = host_state(place.host, place.folder).entries
    assert entry.after is None
    dead_owner(path)
    place.restore()
    assert things.state("one") == "first"
    assert place.entries() == []


@pytest.mark.parametrize("step", list(LedgerStep))
def test_whoever_is_interrupted_at_any_step_can_still_undo(place, things, step):
    """Ctrl-C comes as an exception in the middle; what follows in `finally` brings everything back."""
    interrupted = []

    def interrupt(reached):
        if reached is step and not interrupted:
            interrupted.append(step)
            raise KeyboardInterrupt

    ledger = place.ledger(interrupt)

    def work():
        ledger.change(things.make("one", "second"))
        ledger.undo_to(0)

    with pytest.raises(KeyboardInterrupt):
        work()
    ledger.undo_to(0)
    assert things.state("one") == "first"
    assert place.entries() == []


scripts = st.builds(ShellScript, text=st.text(), arguments=st.lists(st.text()).map(tuple))
entries = st.builds(
    Entry,
    number=st.integers(1, 10**9),
    what=st.text(),
    value=st.text(),
    before=st.text(),
    after=st.none(),
    read=scripts,
    undo=scripts,
    lasting=st.booleans(),
    failure=st.just(""),
    owner=st.builds(
        ChangeOwner, boot_id=st.text(), pid=st.integers(1), started=st.text(), user=st.text(), study=st.text()
    ),
    made=st.datetimes(timezones=st.just(UTC)),
)


@given(entry=entries)
def test_any_entry_survives_being_written(entry):
    assert parse_entry(render_entry(entry).encode()) == entry


@given(entry=entries, at=st.integers(0), byte=st.binary(min_size=1, max_size=1))
def test_a_damaged_file_is_an_entry_or_none_but_never_a_defect(entry, at, byte):
    content = render_entry(entry).encode()
    cut = content[: at % len(content)]
    for damaged in (cut, cut + byte + content[len(cut) + 1 :]):
        with suppress(ValueError):
            parse_entry(damaged)


class FailingHost(LocalHost):
    """Where `failing`, no folder can be forced to disk."""

    failing = False

    def run(self, command, **options):
        if self.failing:
            command = replace(command, argv=tuple(word.replace('sync -- "$3"', "false") for word in command.argv))
        return super().run(command, **options)


def test_an_entry_that_may_not_be_on_disk_is_taken_away_again_and_those_before_it_are_undone(place, things):
    """Otherwise its number would count as taken, and it would be left for others to undo after all that came before."""
    with closing(FailingHost()) as host:
        ledger = replace(place, host=host).ledger()
        ledger.change(things.make("one", "second"))
        host.failing = True
        with pytest.raises(PgstrataError, match="the ledger of this host cannot be written"):
            ledger.change(things.make("one", "third"))
        host.failing = False
        assert len(place.entries()) == 1
        ledger.undo_to(0)
    assert things.state("one") == "first"
    assert place.entries() == []
