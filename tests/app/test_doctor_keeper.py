"""Root writes its trial file as the user who could put a link in its place."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from pgstrata.app.doctor import become_keeper
from pgstrata.errors import CommandFailedError, HostNotFitError
from pgstrata.hosts.local import LocalHost

pytestmark = [pytest.mark.root, pytest.mark.company, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture
def place():
    """A folder of root's below folders that are root's alone, but for /tmp."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def words(folder):
    with closing(LocalHost()) as host:
        return become_keeper(host, str(folder))


def test_where_root_alone_writes_root_does_it(place):
    assert words(place) == ()


def test_below_a_folder_of_another_user_it_is_done_as_that_user(place):
    below = place / "of another" / "of root"
    below.mkdir(parents=True)
    os.chown(below.parent, 65534, 65534)
    assert words(below)[:2] == ("setpriv", "--reuid=nobody")


def test_where_anybody_writes_it_is_left(place):
    below = place / "of all" / "of root"
    below.mkdir(parents=True)
    below.parent.chmod(0o777)
    with pytest.raises(HostNotFitError, match="other users may write"):
        words(below)


def test_where_two_other_users_could_exchange_it_it_is_left(place):
    below = place / "of one" / "of the other"
    below.mkdir(parents=True)
    os.chown(below.parent, 65534, 65534)
    os.chown(below, 1, 1)
    with pytest.raises(HostNotFitError, match="nobody and daemon"):
        words(below)


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
    assert words(link)[:2] == ("setpriv", "--reuid=nobody")
    os.chown(link, 0, 0, follow_symlinks=False)
    assert words(link) == ()


def test_every_link_on_the_way_is_looked_at(place):
    """Root's own link leads through a link of another user to a folder of root's."""
    (place / "of root").mkdir()
    theirs, ours = place / "theirs", place / "ours"
    theirs.mkdir()
    (theirs / "link").symlink_to(place / "of root")
    os.chown(theirs / "link", 65534, 65534, follow_symlinks=False)
    ours.symlink_to("theirs/link")
    assert words(ours)[:2] == ("setpriv", "--reuid=nobody")


def test_links_without_end_are_refused(place):
    (place / "round").symlink_to(place / "round")
    with pytest.raises(CommandFailedError):
        words(place / "round" / "data")


def test_a_link_that_was_put_there_is_not_followed(place):
    """The servers' user guesses the name; what root has is neither written nor removed."""
    from pgstrata.collectors.pgtest.sampler import run_fsync

    precious, data = place / "precious", place / "data"
    precious.write_text("precious")
    precious.chmod(0o600)
    place.chmod(0o755)
    data.mkdir()
    os.chown(data, 65534, 65534)
    (data / "trial").symlink_to(precious)
    program = place / "bin" / "pg_test_fsync"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho gone >"$4"\n')
    program.chmod(0o755)
    with closing(LocalHost()) as host, pytest.raises(Exception, match="pg_test_fsync failed"):
        run_fsync(host, str(place), str(data / "trial"), become_keeper(host, str(data)))
    assert precious.read_text() == "precious"
