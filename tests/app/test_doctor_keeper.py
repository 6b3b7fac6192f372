"""Root writes its trial file as the user who could put a link in its place."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from pgstrata.errors import CommandFailedError, HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.system.trust import as_keeper

pytestmark = [pytest.mark.root, pytest.mark.company, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture
def place():
    """A folder of root's below folders that are root's alone, but for /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def keeper(folder):
    with closing(LocalHost()) as host:
        return as_keeper(host, str(folder), adding=True).user


def test_where_root_alone_writes_root_does_it(place):
    assert keeper(place) == "root"


def test_below_a_folder_of_another_user_it_is_done_as_that_user(place):
    below = place / "of another" / "of root"
    below.mkdir(parents=True)
    os.chown(below.parent, 65534, 65534)
    assert keeper(below) == "nobody"


def test_where_anybody_writes_it_is_left(place):
    below = place / "of all" / "of root"
    below.mkdir(parents=True)
    below.parent.chmod(0o777)
    with pytest.raises(HostNotFitError, match="other users may write"):
        keeper(below)


def test_where_two_other_users_could_exchange_it_it_is_left(place):
    below = place / "of one" / "of the other"
    below.mkdir(parents=True)
    os.chown(below.parent, 65534, 65534)
    os.chown(below, 1, 1)
    with pytest.raises(HostNotFitError, match="nobody and daemon"):
        keeper(below)


def test_where_others_may_add_files_a_name_that_nobody_foresees_is_enough_for_some(place):
    from pgstrata.system.trust import find_keeper

    place.chmod(0o1777)
    with closing(LocalHost()) as host:
        assert find_keeper(host, str(place), adding=True) == "root"
        with pytest.raises(HostNotFitError, match="other users may write"):
            find_keeper(host, str(place), adding=False)


def test_below_a_link_of_another_user_it_is_done_as_that_user(place):
    (place / "of root").mkdir()
    link = place / "link"
    link.symlink_to("of root")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    assert keeper(link) == "nobody"
    os.chown(link, 0, 0, follow_symlinks=False)
    assert keeper(link) == "root"


def test_every_link_on_the_way_is_looked_at(place):
    """Root's own link leads through a link of another user to a folder of root's."""
    (place / "of root").mkdir()
    theirs, ours = place / "theirs", place / "ours"
    theirs.mkdir()
    (theirs / "link").symlink_to(place / "of root")
    os.chown(theirs / "link", 65534, 65534, follow_symlinks=False)
    ours.symlink_to("theirs/link")
    assert keeper(ours) == "nobody"


def test_links_without_end_are_refused(place):
    (place / "round").symlink_to(place / "round")
    with pytest.raises(CommandFailedError):
        keeper(place / "round" / "data")


@pytest.mark.parametrize("owner", ["nobody", "root"])
def test_the_trial_file_lies_where_nobody_else_can_put_a_link(owner, place):
    """Everybody sees the file's name among the program's arguments; its folder can be entered by one user alone."""
    from pgstrata.collectors.pgtest import run_fsync

    place.chmod(0o755)
    data = place / "data"
    data.mkdir()
    shutil.chown(data, owner)
    program = place / "bin" / "pg_test_fsync"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nstat -c "%U %a" "${4%/*}"; echo "${4%/*}"; touch "$4"\n')
    program.chmod(0o755)
    with closing(LocalHost()) as host:
        keeper = as_keeper(host, str(data), adding=True)
        worker = keeper if owner == "nobody" else host.as_user("nobody")
        said = run_fsync(keeper, worker, str(place), str(data / "trial-XXXXXXXXXX"))
    seen, folder = said.splitlines()
    assert seen == "nobody 700"
    assert folder.startswith(str(data / "trial-"))
    assert "XXX" not in folder
    assert list(data.iterdir()) == []
