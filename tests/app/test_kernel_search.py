"""A search along commits of Linux builds, boots and skips kernels; repository and boots are forged."""

import json
import subprocess
from pathlib import Path

import pytest

from compared import by_speed
from fake_clock import FakeClock, RecordingEvents
from forged_kernels import BROKEN, CONFIG, MAKEFILE, ForgedQemu, Greeted, KernelTree
from pgstrata.app.bisect import SKIPPED_FILE, Bisect, Measured, StudyMeasure
from pgstrata.app.kernel_search import BUILDS_FILE, CommitKernels, blame_level
from pgstrata.app.search_questions import ask_kernels, search_folder
from pgstrata.errors import BootFailedError, HostNotFitError, PgstrataError
from pgstrata.model.bisect import Outcome
from pgstrata.model.boot import boot_of
from pgstrata.report.commands.bisect import bisection_json, render_bisection
from pgstrata.servers.places import Places
from pgstrata.servers.shelf import ServerSite
from pgstrata.store.repository import StudyFolders
from pgstrata.vms.kernel_builds import KernelBuilder
from pgstrata.vms.machine import VirtualMachine

EXPERIMENT = """
question = "Which commit of Linux?"
threshold = "3 %"
[common]
host = "vm:deb12"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A cache of its own, with an image, and the experiment."""
    cache = tmp_path / "cache"
    (cache / "vms" / "deb12" / "kernels").mkdir(parents=True)
    (cache / "vms" / "deb12" / "image.json").write_text(
        json.dumps({"suite": "bookworm", "kernels": ["6.1.0-1"], "oldest": [3, 2, 0]})
    )
    (cache / "vms" / "deb12" / "host.pub").write_text("ssh-ed25519 AAAA pgstrata")
    for name in ("CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    (tmp_path / "busybox").write_bytes(b"busybox")
    monkeypatch.setattr("pgstrata.vms.kernel_builds.BUSYBOX", str(tmp_path / "busybox"))
    monkeypatch.setattr("pgstrata.vms.machine.Greeting", Greeted)
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "which.toml").write_text(EXPERIMENT)
    return tmp_path


class BootingMeasure:
    """Builds and boots both kernels as a study does; what is "measured" is the number that a kernel consists of."""

    def __init__(self, place, question, folder):
        self.told, self.asked, self.ends_after = [], [], None
        self.qemu = ForgedQemu()
        site = ServerSite(here=self.qemu, host=self.qemu, cache=str(place / "cache"), note=self.told.append)
        source = question.kernels
        builder = KernelBuilder(site=site, repository=source.repository, recipe=source.recipe)
        self.kernels = CommitKernels(build=builder.build, folder=folder, clock=FakeClock())
        places = Places(cache=str(place / "cache"), state=str(place), data=str(place), storage="", run="", memory="")
        self.vm = VirtualMachine(
            "deb12", places=places, here=self.qemu, host=self.qemu, clock=FakeClock(), data=str(place / "disk.img"),
            tell=self.told.append,
        )  # fmt: skip

    def __call__(self, experiment, name):
        if self.ends_after is not None and len(self.asked) == self.ends_after:
            raise KeyboardInterrupt
        self.asked.append(name)
        ready = self.kernels.ready(experiment)
        first, level = (self._boot(ready, each) for each in ready.environments)
        return Measured(comparison=by_speed(ready, first, level))

    def _boot(self, experiment, environment):
        try:
            self.vm.start(boot_of(environment))
        except BootFailedError as error:
            raise blame_level(error, experiment) or error from error
        return float(self.qemu.booted[-1])

    @property
    def built(self):
        return [text for text in self.told if text.startswith("building the kernel")]


def make_tree(folder):
    """Twelve commits after the first: the eighth makes it slower, the sixth does not build, the seventh panics."""
    tree = KernelTree(folder)
    tree.commit("Linux 6.1", behaviour="100")
    for number in range(1, 13):
        change = {
            6: {"makefile": BROKEN},
            7: {"makefile": MAKEFILE.format(minor=2), "behaviour": "panic"},
            8: {"behaviour": "90"},
        }.get(number, {})
        tree.commit(f"Change {number}", **change)
    return tree


def ask(place, tree, text="", build="make bzImage modules", config="config"):
    text = text or f"{tree.hashes[0]}..{tree.hashes[-1]}"
    return ask_kernels(place / "which.toml", text, tree.folder, build=build, config=place / config)


def find(place, question, **more):
    folder = place / "search"
    measure = BootingMeasure(place, question, folder)
    for name, value in more.items():
        setattr(measure, name, value)
    found = Bisect(question=question, folder=folder, measure=measure, tell=measure.told.append).search()
    return found, measure


def test_the_commit_is_found_past_one_that_does_not_build_and_one_that_panics(place):
    tree = make_tree(place / "linux")
    before = tree.git("status", "--porcelain"), tree.git("worktree", "list"), (tree.folder / "behaviour").read_text()
    found, measure = find(place, ask(place, tree))
    # the commits between the last good one and the first bad one could not be measured
    assert (found.outcome, found.before, found.after) == (Outcome.RANGE, 5, 8)
    skipped = {step.level: step.reason for step in found.skipped}
    assert skipped.keys() == {tree.hashes[6][:12], tree.hashes[7][:12]}
    assert "cannot be built: make bzImage modules ended with exit code 2" in skipped[tree.hashes[6][:12]]
    assert "kernel/fork.c:7:2: error: no such thing" in skipped[tree.hashes[6][:12]]
    assert "Kernel panic - not syncing: VFS: Unable to mount root fs" in skipped[tree.hashes[7][:12]]
    assert f"6.2.0-g{tree.hashes[7][:12]}." in skipped[tree.hashes[7][:12]]
    assert len(measure.asked) <= 7
    text = " ".join(render_bisection(found).split())
    assert f"changed between {tree.hashes[5][:12]} and {tree.hashes[8][:12]}" in text
    assert "Not measured:" in text
    assert json.loads(bisection_json(found))["between"]["after"]["subject"] == "Change 8"
    assert before == (
        tree.git("status", "--porcelain"),
        tree.git("worktree", "list"),
        (tree.folder / "behaviour").read_text(),
    )


def test_the_same_command_goes_on_after_a_kill_and_builds_nothing_twice(place):
    tree = make_tree(place / "linux")
    with pytest.raises(KeyboardInterrupt):
        find(place, ask(place, tree), ends_after=3)
    known = sorted(path.name for path in (place / "cache" / "kernels").iterdir() if path.is_dir())
    found, measure = find(place, ask(place, tree))
    assert (found.before, found.after) == (5, 8)
    after = sorted(path.name for path in (place / "cache" / "kernels").iterdir() if path.is_dir())
    assert len(known) == 3
    assert set(known) < set(after)
    # the one that cannot be built is tried at most once
    assert len(measure.built) == len(after) - len(known) + (tree.hashes[6][:12] in "".join(measure.built))
    third, again = find(place, ask(place, tree))
    assert third.after == found.after
    assert again.built == []
    assert set(json.loads((place / "search" / SKIPPED_FILE).read_text())) == {
        f"commit-{tree.hashes[6][:12]}",
        f"commit-{tree.hashes[7][:12]}",
    }
    assert set(json.loads((place / "search" / BUILDS_FILE).read_text())) <= set(tree.hashes)


def test_a_kernel_that_the_last_commit_does_not_give_ends_the_search(place):
    tree = KernelTree(place / "linux")
    tree.commit("Linux 6.1", behaviour="100")
    tree.commit("Between")
    tree.commit("Break it", makefile=BROKEN)
    with pytest.raises(PgstrataError, match="the kernel cannot be built"):
        find(place, ask(place, tree))


def test_a_first_commit_that_does_not_boot_is_not_blamed_on_another(place):
    tree = KernelTree(place / "linux")
    tree.commit("Linux 6.1", behaviour="panic")
    tree.commit("Between", behaviour="100")
    tree.commit("After")
    with pytest.raises(BootFailedError, match="Kernel panic"):
        find(place, ask(place, tree))


def test_a_commit_may_be_skipped_by_hand(place):
    tree = KernelTree(place / "linux")
    for number, behaviour in enumerate(("100", "", "90")):
        tree.commit(f"Change {number}", behaviour=behaviour)
    (place / "search").mkdir()
    (place / "search" / SKIPPED_FILE).write_text(json.dumps({f"commit-{tree.hashes[1][:12]}": "it corrupts files"}))
    found, _ = find(place, ask(place, tree))
    assert (found.outcome, found.before, found.after) == (Outcome.RANGE, 0, 2)
    assert "it corrupts files" in render_bisection(found)


def test_searches_differ_by_range_command_and_configuration(place):
    tree = make_tree(place / "linux")
    (place / "other").write_text("CONFIG_SMP=n\n")
    asked = [
        ask(place, tree),
        ask(place, tree, f"{tree.hashes[1]}..{tree.hashes[-1]}"),
        ask(place, tree, build="make bzImage"),
        ask(place, tree, config="other"),
    ]
    folders = {search_folder(Path("which.toml"), each) for each in asked}
    assert len(folders) == 4
    assert search_folder(Path("which.toml"), ask(place, tree)) in folders


def test_builds_count_for_the_budget_and_nothing_is_built_when_it_is_spent(place):
    def build(commit):
        raise AssertionError(commit)

    tree = KernelTree(place / "linux")
    tree.commit("Linux 6.1", behaviour="100")
    tree.commit("After")
    folder = place / "search"
    folder.mkdir()
    (folder / BUILDS_FILE).write_text(json.dumps({tree.hashes[0]: 60.0}))
    kernels = CommitKernels(build=build, folder=folder, clock=FakeClock())
    measure = StudyMeasure(studies=StudyFolders(folder), events=RecordingEvents(), budget=60.0, kernels=kernels)
    question = ask(place, tree)
    found = Bisect(question=question, folder=folder, measure=measure, tell=lambda _: None).search()
    assert (found.outcome, found.reason) == (Outcome.UNDECIDED, "the budget is spent")


def test_an_image_that_is_missing_is_told_before_anything_is_built(place):
    tree = KernelTree(place / "linux")
    tree.commit("Linux 6.1", behaviour="100")
    tree.commit("After")
    (place / "which.toml").write_text(EXPERIMENT.replace("deb12", "other"))
    with pytest.raises(HostNotFitError, match="there is no image other"):
        ask(place, tree)


def test_a_merge_is_named_with_the_search_of_what_it_brought(place):
    tree = KernelTree(place / "linux")
    first = tree.commit("Linux 6.1", behaviour="100")
    tree.git("checkout", "--quiet", "-b", "topic")
    tree.commit("Slower", behaviour="90")
    tree.git("checkout", "--quiet", "master")
    tree.commit("Beside", makefile=MAKEFILE.format(minor=2))
    tree.git("merge", "--quiet", "--no-ff", "-m", "Merge topic", "topic")
    merge = tree.git("rev-parse", "HEAD")
    question = ask(place, tree, f"{first}..HEAD")
    assert [commit.subject for commit in question.commits] == ["Linux 6.1", "Beside", "Merge topic"]
    found, _ = find(place, question)
    name = merge[:12]
    assert found.outcome is Outcome.FOUND
    assert f"--git $(git merge-base {name}^1 {name}^2)..{name}^2" in " ".join(render_bisection(found).split())


def test_thousands_of_commits_take_a_dozen_steps_and_no_environment_before_it_is_needed(place):
    tree = KernelTree(place / "linux")
    stream = []
    for number in range(5_001):
        parent = f"from :{number}\n" if number else ""
        text = f"Commit {number}"
        stream.append(
            f"commit refs/heads/long\nmark :{number + 1}\ncommitter A <a@example.org> {1_700_000_000 + number} +0000\n"
            f"data {len(text)}\n{text}\n{parent}\n"
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tree.folder, input="".join(stream), text=True, check=True)
    question = ask(place, tree, "long~5000..long")
    assert len(question.levels) == 5_001
    slow, asked = 3_579, []

    def measure(experiment, name):
        first, level = (each.layers["kernel"] for each in experiment.environments)
        place_of = places[level]
        asked.append(place_of)
        return Measured(comparison=by_speed(experiment, 1.0, 0.9 if place_of >= slow else 1.0))

    places = {commit.hash: place for place, commit in enumerate(question.commits)}
    found = Bisect(question=question, folder=place / "search", measure=measure, tell=lambda _: None).search()
    assert (found.outcome, found.after) == (Outcome.FOUND, slow)
    assert len(asked) <= 14
    assert not hasattr(question.levels, "__dict__")
