from pathlib import Path

import pytest

from pgstrata.collectors.sessions.parse import known_names, unify_names

CAPTURES = Path(__file__).parents[2] / "captures" / "sessions"


def events(version):
    rows = (CAPTURES / version / "wait_events.tsv").read_text().splitlines()
    return {tuple(row.split("\t")) for row in rows}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("LWLockNamed", "WALWriteLock"), ("LWLock", "WALWrite")),
        (("LWLockNamed", "CLogControlLock"), ("LWLock", "XactSLRU")),
        (("LWLockTranche", "buffer_content"), ("LWLock", "BufferContent")),
        (("LWLockTranche", "buffer_io"), ("IPC", "BufferIo")),
        (("LWLock", "ProcArrayLock"), ("LWLock", "ProcArray")),
        (("LWLock", "lock_manager"), ("LWLock", "LockManager")),
        (("LWLock", "BufferIO"), ("IPC", "BufferIo")),
        (("IPC", "BufferIO"), ("IPC", "BufferIo")),
        (("IO", "WALSync"), ("IO", "WalSync")),
        (("IO", "WALWrite"), ("IO", "WalWrite")),
        (("LWLock", "WALWrite"), ("LWLock", "WALWrite")),
        (("IPC", "Hash/Build/HashingInner"), ("IPC", "HashBuildHashInner")),
        (("Lock", "speculative token"), ("Lock", "spectoken")),
        (("", ""), ("", "")),
        (("Extension", "MyOwnLock"), ("Extension", "MyOwnLock")),
        (("Brandnew", "Event"), ("Brandnew", "Event")),
    ],
)
def test_names_of_all_versions_are_those_of_the_newest(old, new):
    assert unify_names(*old) == new


def test_every_name_on_the_right_is_one_that_18_prints():
    printed = events("18")
    assert {new for new in known_names().values() if new[1] != "*"} <= printed


def test_no_name_on_the_left_is_one_that_18_prints():
    assert not known_names().keys() & events("18")


@pytest.mark.parametrize("version", ["17", "18"])
def test_names_of_the_newest_versions_stay_as_they_are(version):
    assert all(unify_names(*event) == event for event in events(version))
