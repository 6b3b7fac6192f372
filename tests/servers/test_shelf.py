"""The place of servers in the cache, where several pgstrata may bring the same at once."""

import os

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.servers.shelf import Shelf
from pgstrata.system.locks import take_lock


def test_who_makes_the_same_is_waited_for_with_a_note_and_not_without_end(tmp_path):
    notes, filled = [], []
    shelf = Shelf(cache=str(tmp_path), note=notes.append, patience=0.2)
    lock = tmp_path / "servers" / ".a server.lock"
    lock.parent.mkdir()
    descriptor = take_lock(lock)
    with pytest.raises(HostNotFitError, match="another process has been making a server for 200 ms") as caught:
        shelf.bring("a server", lambda *_: filled.append(1))
    assert f"fuser {lock}" in caught.value.remedy
    assert notes == [f"waiting for another process that makes a server (`fuser {lock}` names it)"]
    os.close(descriptor)
    shelf.bring("a server", lambda *_: filled.append(1))
    assert (filled, len(notes)) == ([1], 1)


def test_nobody_else_can_open_the_lock_of_a_server_even_if_a_former_version_made_it(tmp_path):
    shelf = Shelf(cache=str(tmp_path), note=print)
    former = tmp_path / "servers" / ".former.lock"
    former.parent.mkdir()
    former.touch(mode=0o644)
    for name in ("former", "new"):
        shelf.bring(name, lambda *_: None)
        assert (tmp_path / "servers" / f".{name}.lock").stat().st_mode & 0o777 == 0o600
