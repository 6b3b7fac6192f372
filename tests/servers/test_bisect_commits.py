"""Commits of a repository are listed, exported without touching it, built once each, and searched."""

from pathlib import Path

import pytest

from compared import by_speed
from pgstrata.app.bisect import Bisect, Measured
from pgstrata.app.search_questions import ask_commits
from pgstrata.errors import ExitCode, HostFileError, HostNotFitError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.bisect import Outcome
from pgstrata.report.commands.bisect import render_bisection
from pgstrata.servers.commits import Repository
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers
from small_source import makefile, write_program, write_source

EXPERIMENT = """
question = "Which commit?"
[common]
server = "build:."
build.compiler = "{compiler}"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
"""
BROKEN = "all:\n\t@echo 'main.c:7: error: no such thing' >&2; false\n"


@pytest.fixture
def tree(tmp_path, installation, repository):
    folder = installation(tmp_path / "repo", programs=("initdb", "pg_ctl"))
    write_source(folder)
    made = repository(folder)
    made.commit("The first", Makefile=makefile("speed"), speed="100")
    return made


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("PGSTRATA_CACHE", str(folder))
    return folder


@pytest.fixture
def file(tmp_path):
    compiler = write_program(tmp_path / "some-cc")
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.format(compiler=compiler))
    return path


class BuildingMeasure:
    """Builds both commits as a study would; what is "measured" is a number that the commit installs."""

    def __init__(self, cache):
        host = LocalHost()
        self.built = []
        self.servers = Servers.make(
            ServerSite(here=host, host=host, cache=str(cache), note=self.built.append),
            machine="x86_64",
            python="python3",
        )

    def __call__(self, experiment, study):
        first, level = (
            float(Path(self.servers.resolve(one.server).prefix, "share", "speed").read_text())
            for one in experiment.environments
        )
        return Measured(comparison=by_speed(experiment, first, level))


def find(tree, file, folder, measure, text=None):
    asked = ask_commits(file, text or f"{tree.hashes[0]}..{tree.hashes[-1]}", tree.folder)
    return Bisect(question=asked, folder=folder, measure=measure, tell=lambda line: None).search()


def test_the_commit_is_found_past_one_that_cannot_be_built(tree, file, cache, tmp_path):
    tree.commit("Break it", Makefile=BROKEN)
    tree.commit("Mend it", Makefile=makefile("speed"))
    guilty = tree.commit("Make it slower", speed="90")
    tree.commit("Something else", note="")
    before = tree.state()
    measure = BuildingMeasure(cache)
    found = find(tree, file, tmp_path / "search", measure)
    assert (found.outcome, found.code) == (Outcome.FOUND, ExitCode.DONE)
    assert found.commits[found.after].hash == guilty
    text = " ".join(render_bisection(found).split())
    assert f"It was commit {guilty} of 2026-03-04, 'Make it slower'." in text
    assert tree.state() == before
    # the same again: from what is there, without a build
    again = BuildingMeasure(cache)
    assert find(tree, file, tmp_path / "search", again).after == found.after
    assert again.built == []


def test_a_broken_commit_beside_the_guilty_one_leaves_both(tree, file, cache, tmp_path):
    broken = tree.commit("Break it", Makefile=BROKEN, speed="90")
    tree.commit("Mend it", Makefile=makefile("speed"))
    found = find(tree, file, tmp_path / "search", BuildingMeasure(cache))
    assert (found.outcome, found.code, found.before, found.after) == (Outcome.RANGE, ExitCode.UNDECIDED, 0, 2)
    assert [step.level for step in found.skipped] == [broken[:12]]
    assert "make ended with exit code 2" in found.skipped[0].reason


def test_a_commit_without_a_source_is_skipped(tree, file, cache, tmp_path):
    tree.git("mv", "configure", "away")
    tree.commit("No source")
    tree.git("mv", "away", "configure")
    tree.commit("A source again", speed="90")
    found = find(tree, file, tmp_path / "search", BuildingMeasure(cache))
    assert (found.outcome, len(found.skipped)) == (Outcome.RANGE, 1)


def test_a_range_of_one_commit_needs_its_ends_alone(tree, file, cache, tmp_path):
    guilty = tree.commit("Make it slower", speed="90")
    found = find(tree, file, tmp_path / "search", BuildingMeasure(cache))
    assert (found.outcome, found.steps, found.commits[found.after].hash) == (Outcome.FOUND, (), guilty)


def test_a_repository_that_lost_an_object_ends_the_search(tree, file, cache, tmp_path):
    tree.commit("The second", speed="90")
    tree.commit("The third", note="")
    blob = tree.git("rev-parse", "HEAD~1:speed")
    (tree.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(HostFileError, match="cannot read the repository"):
        find(tree, file, tmp_path / "search", BuildingMeasure(cache))


def test_only_first_parents_are_levels(tree):
    tree.git("checkout", "-q", "-b", "side")
    side = tree.commit("On the side", aside="")
    tree.git("checkout", "-q", "master")
    tree.commit("On the main line", main="")
    tree.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    commits = Repository(here=LocalHost(), folder=str(tree.folder)).range(f"{tree.hashes[0]}..master")
    assert [commit.subject for commit in commits] == ["The first", "On the main line", "Merge"]
    assert side not in [commit.hash for commit in commits]


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("master", "not a valid range", "GOOD..BAD"),
        ("a...b", "not a valid range", "GOOD..BAD"),
        ("..master", "not a valid range", "GOOD..BAD"),
        ("nowhere..master", "no commit 'nowhere'", "git log"),
        ("--all..master", "no commit '--all'", "git log"),
        ("master..master", "no commit in", "apart"),
        ("master..old", "master is not an ancestor of old", "swap them"),
        ("side..master", "side is not an ancestor of master", "both descend from"),
    ],
)
def test_a_bad_range_is_named(tree, text, what, remedy):
    tree.git("branch", "old")
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("On the side", aside="")
    tree.git("checkout", "-q", "master")
    tree.commit("On the main line", main="")
    with pytest.raises(UsageError, match=what) as caught:
        Repository(here=LocalHost(), folder=str(tree.folder)).range(text)
    assert remedy in caught.value.remedy


def test_a_folder_that_is_no_repository_is_named(tmp_path):
    with pytest.raises(UsageError, match="no git repository"):
        Repository(here=LocalHost(), folder=str(tmp_path)).range("a..b")


def test_a_repository_is_not_mistaken_for_that_of_the_users_environment(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tree.folder / ".git"))
    with pytest.raises(UsageError, match="no git repository"):
        Repository(here=LocalHost(), folder=str(tmp_path)).range("a..b")


def test_a_missing_git_is_named(tree, scripted, answer):
    host = scripted(lambda command: answer(command, 127, stderr="env: 'git': No such file or directory"))
    with pytest.raises(HostNotFitError, match="git is missing"):
        Repository(here=host, folder=str(tree.folder)).range("a..b")


def test_a_running_server_cannot_be_built(tree, tmp_path):
    path = tmp_path / "running.toml"
    path.write_text(EXPERIMENT.format(compiler="cc").replace('"build:."', '"dsn:service=x"').replace("build.", "# "))
    tree.commit("The second")
    with pytest.raises(UsageError, match="running server"):
        ask_commits(path, f"{tree.hashes[0]}..master", tree.folder)
