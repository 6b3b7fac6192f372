"""`pgstrata host status | restore`, and what a changed or busy host means for `run`."""

import json
import os
import signal
import subprocess

import pytest

from changed_files import python
from program import SMALL, pgstrata

KILLED = """
import os, signal, sys
from pathlib import Path
from changed_files import Files
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.ledger import HostLedger
from fake_clock import FakeClock
things = Files(Path({things!r}))
ledger = HostLedger(LocalHost(), (), {folder!r}, FakeClock(), "studies/killed")
ledger.change(things.make("one", "second"))
ledger.change(things.make("two", "second"))
os.kill(os.getpid(), signal.SIGKILL)
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user would need sudo without a password")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "good.toml").write_text(SMALL.format(blocks=2))
    (tmp_path / "things").mkdir()
    for name in ("one", "two"):
        (tmp_path / "things" / name).write_text("first\n")
    return tmp_path


@pytest.fixture
def dirty(place):
    source = KILLED.format(things=str(place / "things"), folder=str(place / "state" / "ledger"))
    assert subprocess.run(**python(source), timeout=60).returncode == -signal.SIGKILL
    return place


def test_a_clean_host_says_so_and_nothing_is_made(place):
    for words, said in (("status", "local: nothing is changed\n"), ("restore", "nothing to restore\n")):
        done = pgstrata(place, "host", words)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    shown = json.loads(pgstrata(place, "host", "status", "--json").stdout)
    assert (shown["clean"], shown["entries"], shown["unreadable"]) == (True, [], [])
    assert not (place / "state").exists()


def test_what_a_killed_pgstrata_left_is_shown_with_its_owner_and_its_undo(dirty):
    done = pgstrata(dirty, "host", "status")
    assert done.returncode == 4
    assert "local: 2 changed" in done.stdout
    assert "file one: was first, set to second on 2023-11-14 22:13 UTC by process" in done.stdout
    assert "for studies/killed" in done.stdout
    assert "undone by: /bin/sh -c" in done.stdout
    assert "`pgstrata host restore`" in done.stdout
    shown = pgstrata(dirty, "host", "status", "--json")
    assert shown.returncode == 4
    first, second = json.loads(shown.stdout)["entries"]
    assert (first["what"], first["before"], first["after"], first["in_use"]) == ("file one", "first", "second", False)
    assert second["number"] > first["number"]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "good.toml"),
        ("floor", "good.toml", "--blocks", "12"),
        ("try", "server=embedded", "settings.work_mem=1MB,2MB"),
    ],
)
def test_a_changed_host_is_not_measured(dirty, words):
    done = pgstrata(dirty, *words)
    assert done.returncode == 4, done.stderr
    assert "an earlier pgstrata has left this host changed" in done.stderr
    assert "file two: was first, set to second" in done.stderr
    assert "-> `pgstrata host restore` undoes it" in done.stderr
    assert not list(dirty.glob("studies/*/*"))


@pytest.mark.root
@pytest.mark.company
@needs_root
def test_restore_brings_everything_back(dirty):
    done = pgstrata(dirty, "host", "restore")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "file two: is first again\nfile one: is first again\n"
    assert (dirty / "things" / "one").read_text() == "first\n"
    assert pgstrata(dirty, "host", "status").returncode == 0


@pytest.mark.root
@pytest.mark.company
@needs_root
def test_restore_leaves_what_somebody_else_changed_until_it_is_told_to(dirty):
    (dirty / "things" / "one").write_text("theirs\n")
    done = pgstrata(dirty, "host", "restore")
    assert done.returncode == 4
    assert (
        "file one: somebody else changed it meanwhile: it was first, pgstrata made it second, it is theirs"
        in done.stderr
    )
    assert "pgstrata host restore --force" not in done.stdout
    assert (dirty / "things" / "two").read_text() == "first\n"
    assert "not undone: somebody else changed it" in pgstrata(dirty, "host", "status").stdout
    forced = pgstrata(dirty, "host", "restore", "--force")
    assert (forced.returncode, forced.stdout) == (0, "file one: somebody else had made it theirs\n")
    assert (dirty / "things" / "one").read_text() == "first\n"


def test_a_damaged_entry_is_named_by_every_command(place):
    (place / "state" / "ledger").mkdir(parents=True)
    damaged = place / "state" / "ledger" / "00000001.json"
    damaged.write_text("{")
    for words in (("host", "status"), ("host", "restore"), ("host", "restore", "--force"), ("run", "good.toml")):
        done = pgstrata(place, *words)
        assert done.returncode == 4, words
        assert str(damaged) in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert damaged.read_text() == "{"


def test_on_a_busy_host_nothing_is_measured_and_nothing_restored(dirty, tmp_path):
    from pgstrata.app.machine import SystemClock
    from pgstrata.hosts.local import LocalHost
    from pgstrata.ledger.lock import hold_host

    host, path = LocalHost(), str(tmp_path / "busy.lock")
    lock = hold_host(host, path, "studies/first", SystemClock())
    try:
        for words in (("run", "good.toml"), ("host", "restore")):
            done = pgstrata(dirty, *words, environ={"PGSTRATA_LOCK": path})
            assert done.returncode == 4
            assert f"another pgstrata is at work on this host (process {os.getpid()} of" in done.stderr
            assert "studies/first" in done.stderr
    finally:
        lock.release()
        host.close()
    assert (dirty / "things" / "one").read_text() == "second\n"


def test_a_lock_without_a_place_is_a_mistake(dirty):
    done = pgstrata(dirty, "host", "restore", environ={"PGSTRATA_LOCK": "here"})
    assert done.returncode == 2
    assert "PGSTRATA_LOCK: 'here' is not an absolute path" in done.stderr


def test_one_ledger_is_for_all_users_unless_somebody_has_a_lock_of_their_own(monkeypatch):
    from pgstrata.app.site import site_here
    from pgstrata.hosts.local import LocalHost

    monkeypatch.delenv("PGSTRATA_LOCK")
    monkeypatch.setenv("PGSTRATA_STATE", "/home/ada/state")
    assert site_here(LocalHost()).ledger == "/var/lib/pgstrata/ledger"
    monkeypatch.setenv("PGSTRATA_LOCK", "/mine/lock")
    assert site_here(LocalHost()).ledger == "/home/ada/state/ledger"
