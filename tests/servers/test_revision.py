"""A commit of a git repository is built as it was committed; the repository and its work tree stay as they are."""

from pathlib import Path

import pytest

from pgstrata.errors import HostFileError, HostNotFitError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers
from pgstrata.servers.tree import BuildUser, find_source
from small_source import makefile, write_program, write_source


@pytest.fixture
def tree(tmp_path, installation, repository):
    folder = installation(tmp_path / "src" / "pg", programs=("initdb", "pg_ctl"))
    write_source(folder)
    made = repository(folder)
    made.commit("The first", Makefile=makefile("speed"), speed="100")
    made.git("tag", "REL_1")
    made.commit("The second", speed="90")
    return made


@pytest.fixture
def resolve(tmp_path):
    compiler = write_program(tmp_path / "some-cc")
    servers = Servers.make(
        ServerSite(here=LocalHost(), host=LocalHost(), cache=str(tmp_path / "cache"), note=lambda line: None),
        machine="x86_64",
        python="python3",
    )

    def make(value):
        return servers.resolve(ServerSpec(kind=ServerKind.BUILD, value=value, build=(("compiler", compiler),)))

    return make


def speed(build):
    return Path(build.prefix, "share", "speed").read_text()


def test_a_commit_is_built_whatever_the_work_tree_holds(tree, resolve):
    (tree.folder / "speed").write_text("of the work tree alone")
    (tree.folder / "config.status").write_text("configured in place")
    before = tree.state()
    old, new = resolve(f"{tree.folder}@REL_1"), resolve(f"{tree.folder}@master")
    assert (speed(old), speed(new)) == ("100", "90")
    assert (old.origin, new.origin) == (f"commit {tree.hashes[0]}", f"commit {tree.hashes[1]}")
    assert tree.state() == before


def test_a_branch_that_moved_is_another_build_and_the_same_content_the_same(tree, resolve):
    first = resolve(f"{tree.folder}@master")
    tree.commit("Nothing new")
    again = resolve(f"{tree.folder}@master")
    assert (again.prefix, again.origin) == (first.prefix, f"commit {tree.hashes[2]}")
    tree.commit("The third", speed="80")
    assert speed(resolve(f"{tree.folder}@master")) == "80"
    assert resolve(f"{tree.folder}@HEAD~1").prefix == first.prefix
    assert resolve(f"{tree.folder}@master@{{0}}").prefix != first.prefix


def test_a_folder_within_the_repository_names_all_of_it(tree, resolve):
    assert speed(resolve(f"{tree.folder}/contrib/pg_prewarm@REL_1")) == "100"


def test_a_folder_whose_name_has_an_at_is_that_folder(tree, resolve):
    other = tree.folder.with_name("pg@REL_1")
    tree.git("worktree", "add", "-q", "--detach", str(other))
    (other / "speed").write_text("70")
    assert speed(resolve(str(other))) == "70"
    assert speed(resolve(f"{other}@REL_1")) == "100"


@pytest.mark.parametrize(
    ("value", "what", "remedy"),
    [
        ("{}/pg@nowhere", "no commit 'nowhere'", "git fetch"),
        ("{}/pg@--all", "no commit '--all'", "git branch"),
        ("{}@master", "no git repository", "clone"),
        ("{}/elsewhere@master", "there is nothing at this path", "DIR@COMMIT"),
        ("{}/pg/Makefile", "neither a folder nor", "tarball"),
        ("pg@master", "must be absolute", "whole path"),
    ],
)
def test_what_names_no_source_is_refused(tree, value, what, remedy):
    with pytest.raises(UsageError, match=what) as caught:
        find_source(LocalHost(), value.format(tree.folder.parent), BuildUser(host=LocalHost()))
    assert remedy in caught.value.remedy


def test_a_commit_without_a_source_is_refused(tree, resolve):
    tree.git("mv", "configure", "away")
    tree.commit("No source")
    with pytest.raises(UsageError, match="not a source of PostgreSQL"):
        resolve(f"{tree.folder}@HEAD")


def test_a_damaged_repository_is_named(tree, resolve):
    blob = tree.git("rev-parse", "HEAD:speed")
    (tree.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(HostFileError, match="cannot read the repository") as caught:
        resolve(f"{tree.folder}@HEAD")
    assert "git fsck" in caught.value.remedy


def test_a_missing_git_is_named(tree, scripted, answer):
    host = scripted(lambda command: answer(command, 127) if command.argv[0] == "env" else None)
    with pytest.raises(HostNotFitError, match="git is missing"):
        find_source(host, f"{tree.folder}@HEAD", BuildUser(host=host))
