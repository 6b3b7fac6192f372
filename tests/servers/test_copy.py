"""Installations that the servers' user cannot enter are copied, and nothing of anybody else's with them."""

import os
import pwd
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.servers.copy import copy_installation
from pgstrata.servers.shelf import ServerSite

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root copies for another user")


@pytest.fixture
def prefix(open_folder):
    folder = open_folder / "pg"
    for name in ("bin", "lib", "share"):
        (folder / name).mkdir(parents=True)
    (folder / "bin" / "postgres").write_text("program")
    (folder / "bin" / "postgres").chmod(0o700)
    (folder / "share" / "postgres.bki").write_text("bki")
    folder.chmod(0o700)
    return folder


@pytest.fixture
def copier(open_folder):
    site = ServerSite(here=None, host=None, cache=str(open_folder / "cache"), note=lambda line: None)
    return SimpleNamespace(copy=partial(copy_installation, site))


def give_away(folder, user="nobody"):
    entry = pwd.getpwnam(user)
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, entry.pw_uid, entry.pw_gid)


def test_a_copy_is_made_once_and_anew_when_it_changes(copier, prefix, open_folder):
    first = copier.copy(str(prefix))
    assert copier.copy(str(prefix)) == first
    (prefix / "bin" / "postgres").write_text("another")
    assert copier.copy(str(prefix)) != first
    assert Path(first, "bin", "postgres").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("owner", ["root", "nobody"])
def test_what_a_link_leads_to_is_never_shown(owner, copier, prefix, open_folder):
    secret = open_folder / "secret"
    secret.write_text("root's alone")
    secret.chmod(0o600)
    (prefix / "share" / "link").symlink_to(secret)
    give_away(prefix, owner)
    copied = copier.copy(str(prefix))
    assert Path(copied, "share", "link").readlink() == secret
    assert all(b"root's alone" not in path.read_bytes() for path in (open_folder / "cache").rglob("*") if path.is_file()
               and not path.is_symlink())  # fmt: skip


def test_of_another_users_installation_root_reads_what_that_user_may_read(copier, prefix):
    give_away(prefix)
    hidden = prefix / "share" / "hidden"
    hidden.write_text("root's alone")
    hidden.chmod(0o600)
    with pytest.raises(HostNotFitError, match="Permission denied") as caught:
        copier.copy(str(prefix))
    assert caught.value.where == str(hidden)


def test_a_copy_of_another_users_installation_is_no_copy_of_roots(copier, prefix):
    mine = copier.copy(str(prefix))
    give_away(prefix)
    assert copier.copy(str(prefix)) != mine


def test_an_installation_that_everybody_could_replace_is_refused(copier, prefix, open_folder):
    (open_folder / "all").mkdir()
    (open_folder / "all").chmod(0o777)
    there = prefix.rename(open_folder / "all" / "pg")
    with pytest.raises(HostNotFitError, match="other users may write"):
        copier.copy(str(there))
