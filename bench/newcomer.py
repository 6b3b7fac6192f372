"""Seconds that a newcomer needs from a clone to the report of README's quick start, opened in a browser.

In a fresh clone of the last commit, it runs the first block of commands in README.md. Home, caches and datasets are new
empty folders, so everything is downloaded as on a new machine. The user's own folders are not touched.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo import RIGHT
from figures import Figure
from support import load_support

from pgstrata.compare import compare_study
from pgstrata.store.load import load_study

ROOT = Path(__file__).parents[1]
GOAL = 300.0
# Seconds for one command: several times the budget of the demo.
PATIENCE = 1800.0
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REPORT = re.compile(r"`([\w/.-]+\.html)`")
# Beginnings of variables that name the user's own folders or Python, or come from the make that started this.
_THEIRS = ("XDG_", "PGSTRATA_", "PIP_CACHE_DIR", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MAKE", "MFLAGS", "ARGS")
# The lock is the host's: two experiments at once would disturb each other.
_KEPT = frozenset({"PGSTRATA_LOCK"})


class WrongTurnError(Exception):
    """A command failed, or the answer is not the one that README names."""


def read_quick_start(text: str) -> tuple[Sequence[str], str]:
    """The commands in the first block of a README, and the report that the text below them names.

    Raises:
        WrongTurnError: one of them is missing.
    """
    block = _BLOCK.search(text)
    report = _REPORT.search(text, block.end()) if block else None
    if block is None or report is None:
        raise WrongTurnError("README has no block of commands, or names no report below it")
    return [line.removeprefix("$ ") for line in block[1].splitlines() if line.startswith("$ ")], report[1]


def own_environment(environ: Mapping[str, str], place: Path) -> dict[str, str]:
    """Environment variables with which everything that is downloaded or kept is below `place`."""
    own = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith(_THEIRS)}
    ours = str(Path(sys.prefix) / "bin")
    found = [folder for folder in own.get("PATH", os.defpath).split(os.pathsep) if folder != ours]
    stored = {f"PGSTRATA_{name}": str(place / name.lower()) for name in ("CACHE", "STATE", "DATA")}
    return own | stored | {"HOME": str(place / "home"), "PATH": os.pathsep.join(found)}


@dataclass(slots=True, kw_only=True)
class Newcomer:
    """A user with an empty folder, `place`; `took` has each step with its seconds."""

    place: Path
    took: list[tuple[str, float]] = field(default_factory=list)

    def walk(self) -> None:
        """From the clone to the report.

        Raises:
            WrongTurnError: a command failed, or the answer is not the one that README names.
        """
        # the user of the servers must be able to enter it
        self.place.chmod(0o755)
        (self.place / "home").mkdir()
        checkout = self.place / "pgstrata"
        self._type("git clone", ("git", "clone", "--quiet", str(ROOT), str(checkout)), self.place)
        commands, report = read_quick_start((checkout / "README.md").read_text(encoding="utf-8"))
        for command in commands:
            self._type(command, ("sh", "-euc", command), checkout)
        page = checkout / report
        judge(page.parent)
        self._open(page, report)

    def _type(self, what: str, argv: Sequence[str], folder: Path) -> None:
        print(f"    {what}", flush=True)
        begun = time.monotonic()
        try:
            done = subprocess.run(
                argv, check=False, cwd=folder, env=own_environment(os.environ, self.place), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise WrongTurnError(f"`{what}` has not ended after {PATIENCE:.0f} s") from None
        self.took.append((what, time.monotonic() - begun))
        if done.returncode:
            last = " / ".join(done.stdout.strip().splitlines()[-5:])
            raise WrongTurnError(f"`{what}` ended with {done.returncode}: {last}")

    def _open(self, page: Path, name: str) -> None:
        """Open the report in headless Chromium, if it is installed."""
        if not page.exists():
            raise WrongTurnError(f"{name} was not written")
        chromium = load_support("chromium")
        if chromium.PROGRAM is None:
            return
        begun = time.monotonic()
        with chromium.opened(self.place / "profile") as tab:
            tab.show(page)
            text = str(tab.run("document.body.innerText"))
        self.took.append((f"{name} in Chromium", time.monotonic() - begun))
        if "slower" not in text:
            raise WrongTurnError(f"{name} has no answer: {text[:200]}")


def judge(study: Path) -> None:
    """Raises WrongTurnError unless all comparisons of the demo have their verdicts."""
    loaded = load_study(study, series=True)
    found = compare_study(loaded.plan, loaded.runs)
    verdicts = {each.environment: each.verdict for each in found if each.metric == "tps" and not each.exploratory}
    wrong = [f"{name}: {verdicts.get(name, 'no verdict')}" for name in RIGHT if verdicts.get(name) is not RIGHT[name]]
    if wrong:
        raise WrongTurnError(", ".join(wrong))


def measure_newcomer() -> Iterable[Figure]:
    """Seconds until the report was opened; infinity if a step failed."""
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        newcomer, wrong = Newcomer(place=Path(name)), ""
        try:
            newcomer.walk()
        except WrongTurnError as error:
            wrong = str(error)
    notes = [f"{what}: {seconds:.1f} s" for what, seconds in newcomer.took]
    value = math.inf if wrong else sum(seconds for _, seconds in newcomer.took)
    yield Figure(
        name="newcomer: clone to decided answer", value=value, goal=GOAL, unit="s",
        notes=[*notes, *([wrong] if wrong else [])],
    )  # fmt: skip
