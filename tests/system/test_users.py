"""Acting as another user, whose ids the whole process has meanwhile."""

import os
import sys
from threading import Thread

import pytest

from pgstrata.app.watching.cost import CostReader
from pgstrata.app.watching.hook import Hook, HookState
from pgstrata.system.users import UserIds, acting_as, acting_as_itself, is_acting

CLERK = UserIds(uid=4711, gid=4711)


@pytest.fixture(autouse=True)
def _no_root(monkeypatch):
    for name in ("setgroups", "setegid", "seteuid"):
        monkeypatch.setattr(os, name, lambda _: None)


def while_acting(work):
    """Begin something in a thread while this one acts as another user; whether it was over before, and its result."""
    found = []
    thread = Thread(target=lambda: found.append(work()))
    with acting_as(CLERK):
        thread.start()
        thread.join(0.3)
        early = list(found)
    thread.join(60)
    return early, found


def test_a_thread_that_needs_the_ids_of_the_process_waits_for_them():
    def look():
        with acting_as_itself():
            return is_acting()

    assert while_acting(look) == ([], [False])


def test_two_threads_never_act_as_other_users_at_once():
    def act():
        with acting_as(CLERK):
            return is_acting()

    assert while_acting(act) == ([], [True])
    assert not is_acting()


def test_the_size_of_an_archive_is_read_by_the_recorders_own_user(tmp_path):
    (tmp_path / "archive.sqlite").write_bytes(bytes(100_000))
    early, (cost,) = while_acting(CostReader(archive=tmp_path, psql=lambda: None).read)
    assert (early, cost.archive >= 100_000) == ([], True)


def test_a_command_of_the_users_is_started_by_the_recorders_own_user(tmp_path):
    out = tmp_path / "out"
    hook = Hook((sys.executable, "-c", f"open({str(out)!r}, 'w')"), tmp_path, dict(os.environ), ())
    with acting_as(CLERK):
        hook.call(HookState.BEGIN, 1, "{}")
        hook._worker.join(0.5)
        assert not out.exists()
    hook.close(60)
    assert out.exists()
