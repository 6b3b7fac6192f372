"""A search on real servers ends at the step, along a factor and along commits, and goes on where it was."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from small_source import write_source

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(900)]

FACTOR = """
question = "Since when does it cost more?"
blocks = 20
interleave = "runs"
[factors]
"options.extra_work" = [0, 1, 50000, 50001]
[common]
server = "embedded"
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""
COMMITS = """
question = "Which commit costs more?"
blocks = 20
interleave = "runs"
reset = "none"
[common]
server = "build:."
settings.shared_buffers = "32MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
warmup = "0s"
"""
# It installs a server that is built already, with the defaults of this commit; as in a true build, its binary knows
# the prefix, so that no two commits share their data.
MAKEFILE = """include src/Makefile.global
all:
\t@echo nothing to compile
install:
\tmkdir -p $(DESTDIR)$(prefix)
\tcp -rL READY/. $(DESTDIR)$(prefix)
\techo $(prefix) >> $(DESTDIR)$(prefix)/bin/postgres
\tcat defaults >> `find $(DESTDIR)$(prefix)/share -name postgresql.conf.sample`
"""
# A scan of the whole table for each row: on a busy machine too nobody overlooks it.
SLOWER = "enable_indexscan = off\nenable_indexonlyscan = off\nenable_bitmapscan = off\n"


@pytest.mark.soak("bisect-factor")
def test_a_search_along_a_factor_ends_at_the_step_and_is_not_made_twice(sandbox):
    file = sandbox.file(FACTOR, "bisect-factor.toml")
    folder = sandbox.root / "study-bisect"
    done = sandbox.pgstrata("bisect", file, "--study", folder, "--json", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["outcome"] == "found"
    assert (found["found"]["before"]["level"], found["found"]["after"]["level"]) == ("1", "50000")
    assert found["ends"]["verdict"] == "worse"
    assert [(step["level"], step["like"]) for step in found["steps"]] == [("1", "first"), ("50000", "last")]
    for step in (found["ends"], *found["steps"]):
        assert sandbox.pgstrata("show", step["study"]).returncode == 0
    runs = sorted(folder.glob("*/evidence/b*/*/*/run.json"))
    again = sandbox.pgstrata("bisect", file, "--study", folder, timeout=600)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "changed between 1 and 50000" in again.stdout
    assert sorted(folder.glob("*/evidence/b*/*/*/run.json")) == runs


@pytest.fixture
def ready():
    """The prefix of a server that is built already."""
    from pgstrata.app.machine import open_machine
    from pgstrata.model.experiment import ServerKind, ServerSpec

    with open_machine(print) as machine:
        return machine.servers.resolve(ServerSpec(kind=ServerKind.CATALOGUE, value="18")).prefix


@pytest.fixture
def cache(sandbox):
    """A cache of its own, in which what was fetched already is found."""
    from pgstrata.app.places import find_machine_places

    there, folder = Path(find_machine_places().cache), sandbox.root / "cache"
    (folder / "servers").mkdir(parents=True)
    folder.chmod(0o755)
    for path in (*there.iterdir(), *(there / "servers").iterdir()):
        beside = folder / path.relative_to(there)
        if path.name != "servers" and not path.name.startswith((".", "build-")):
            beside.symlink_to(path)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def repository(tmp_path, ready):
    folder = tmp_path / "repository"
    write_source(folder)
    good = MAKEFILE.replace("READY", ready)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")

    def git(*arguments):
        return subprocess.run(
            ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    for subject, makefile, defaults in (
        ("The first", good, "\n"),
        ("Break the build", "all:\n\t@false\n", "\n"),
        ("Mend the build", good, "\n"),
        ("Use no index", good, SLOWER),
    ):
        (folder / "Makefile").write_text(makefile)
        (folder / "defaults").write_text(defaults)
        git("add", "-A")
        git("commit", "-q", "-m", subject)
    return folder


@pytest.mark.soak("bisect-commits")
def test_a_search_along_commits_ends_at_the_one_that_changed_a_default(sandbox, cache, repository):
    file = sandbox.file(COMMITS, "bisect-commits.toml")
    done = sandbox.pgstrata(
        "bisect",
        file,
        "--git",
        "HEAD~3..HEAD",
        "--repo",
        repository,
        "--study",
        sandbox.root / "study-commits",
        "--json",
        timeout=800,
        environ={"PGSTRATA_CACHE": str(cache)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["outcome"], found["found"]["after"]["subject"]) == ("found", "Use no index")
    assert found["found"]["before"]["subject"] == "Mend the build"
    assert [step["like"] for step in found["steps"]] == ["skipped", "first"]
    assert "cannot be built" in found["skipped"][0]["reason"]
    assert found["ends"]["verdict"] == "worse"
