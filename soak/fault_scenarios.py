"""What is done on a file system that fails, without servers: studies, ledgers, datasets; and what must hold afterwards.

A scenario is prepared on a good file system, acts in a process of its own that may fail or be killed at any operation,
and is checked when the file system is good again.
"""

# ruff: noqa: INP001  part of a script

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

import fakes
import little_plan
import stored
from changed_files import Files, Place
from pgstrata.app.machine import SystemClock
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.datasets.control_file import CONTROL_FILE
from pgstrata.datasets.marker import MARKER, sweep_leftovers
from pgstrata.datasets.recipe import DataRecipe
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.entries import host_state
from pgstrata.ledger.lock import hold_host
from pgstrata.model.changes import Change
from pgstrata.model.plan import PlannedRun
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint
from pgstrata.plan.identity import identify
from pgstrata.ports.server import QueryResult
from pgstrata.ports.store import FinishedRun
from pgstrata.store.load import load_study
from pgstrata.store.serialise import parse_header
from pgstrata.store.study import StudyStore, reparse_study

Tell = Callable[[str], None]
DEAD: Final = 1
"""Start time of a process that has ended for sure."""


class Scenario(Protocol):
    """One thing that is done; `place` is an empty folder at first, always the same."""

    name: str

    def prepare(self, place: Path) -> None:
        """What is there before."""

    def act(self, place: Path, tell: Tell) -> None:
        """What is done; `tell` is called with what must not be lost from then on."""

    def check(self, place: Path, told: list[str]) -> list[str]:
        """Go on with it; what is wrong."""


def digests(folder: Path) -> dict[str, str]:
    """The content of every file below a folder, by its path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---------------------------------------------------------------------------------------------------- studies

_DRAFT: Final = little_plan.make_plan(blocks=2)
PLAN: Final = replace(_DRAFT, identity=identify(_DRAFT.experiment, (), _DRAFT.horizon))


def derive(files: Mapping[str, bytes]) -> RunRecord:
    """Stands for the parsers: the evidence of a run is its throughput as text."""
    return stored.make_record(parse_header(files["run.json"]), {"tps": float(files["pgbench.out"])})


def measure(store: StudyStore, run: PlannedRun) -> None:
    """Commit a run."""
    evidence = store.begin(run.identity)
    evidence.keep("pgbench.out", b"1000.0")
    evidence.keep("server/log.txt", b"LOG: fine\n" * 1000)
    evidence.keep_shared("postgresql.conf", b"fsync = on\n" * 100)
    record = stored.make_record(run, {"tps": 1000.0})
    store.commit(FinishedRun(evidence=evidence, header=stored.make_header(run, PLAN), record=record))


def open_study(place: Path) -> StudyStore:
    """The study, created if there is none."""
    return StudyStore.open_or_create(place / "s", PLAN, "0.1.0", derive=derive)


class Study:
    """A study is created or opened, and some runs are committed."""

    def __init__(self, name: str, *, before: int, runs: int, spoil: Callable[[Path], None] = lambda _: None) -> None:
        self.name, self._before, self._runs, self._spoil = name, before, runs, spoil

    def prepare(self, place: Path) -> None:
        """Some runs are there."""
        if self._before:
            with open_study(place) as store:
                for run in PLAN.runs[: self._before]:
                    measure(store, run)
            self._spoil(place / "s")

    def act(self, place: Path, tell: Tell) -> None:
        """More of them are committed."""
        with open_study(place) as store:
            store.keep_fingerprint("host", Fingerprint(facts={"kernel": "6.1"}))
            for run in PLAN.runs[self._before : self._before + self._runs]:
                measure(store, run)
                tell(run.identity)

    def check(self, place: Path, told: list[str]) -> list[str]:
        """All committed runs are whole, and the rest can be measured."""
        committed = [run.identity for run in PLAN.runs[: self._before]] + told
        folder = place / "s" / "evidence"
        before = {identity: digests(folder / identity) for identity in committed}
        wrong = [f"run {identity} is not whole" for identity, files in before.items() if len(files) != len(_WHOLE)]
        with open_study(place) as store:
            if lost := set(committed) - store.committed():
                wrong.append(f"committed runs were lost: {', '.join(sorted(lost))}")
            for run in PLAN.runs:
                if run.identity not in store.committed():
                    measure(store, run)
        changed = [identity for identity, files in before.items() if digests(folder / identity) != files]
        wrong += [f"the evidence of {identity} has changed" for identity in changed]
        if (shown := len(load_study(place / "s").runs)) != len(PLAN.runs):
            wrong.append(f"{shown} of {len(PLAN.runs)} runs are shown")
        hidden = (path for path in (place / "s").rglob("*") if path.is_file() and "/." in str(path))
        wrong += [f"{path} is left" for path in hidden]
        return wrong


_WHOLE: Final = ("pgbench.out", "server/log.txt", "postgresql.conf", "run.json")


class Reparse(Study):
    """The catalogue of a study is rebuilt."""

    def act(self, place: Path, tell: Tell) -> None:  # noqa: ARG002 - nothing is committed
        """As `pgstrata reparse`."""
        reparse_study(place / "s", derive)


def lose_catalogue(study: Path) -> None:
    """As after a kill between two steps: no catalogue, and a run in the making."""
    (study / "catalogue.sqlite").unlink()
    (study / "evidence" / ".partial" / "b09").mkdir(parents=True)
    (study / "evidence" / ".partial" / "b09" / "log.txt").write_bytes(b"half")


# ---------------------------------------------------------------------------------------------------- ledgers


# Whole or not at all, as what is written to /proc and /sys.
_DO: Final = 'printf "%s\\n" "$2" >"$1.new" && mv -- "$1.new" "$1"'
_UNDO: Final = f'rm -f -- "$1.new"; if [ -n "$2" ]; then {_DO}; else rm -f -- "$1"; fi'


def make_change(things: Files, what: str, value: str, *, lasting: bool = False) -> Change:
    """A change of a file."""
    return things.make(what, value, do=_DO, undo=_UNDO, lasting=lasting)


class Ledger:
    """Two things of a host are changed three times under its lock, and all of it is undone."""

    name = "ledger"

    def prepare(self, place: Path) -> None:
        """The things in their first state."""
        (place / "things").mkdir()
        for name in ("one", "two"):
            (place / "things" / name).write_text("first\n")

    def act(self, place: Path, tell: Tell) -> None:  # noqa: ARG002 - a change is no result
        """As a run with layers of the host."""
        things = Files(place / "things")
        with closing(LocalHost()) as host:
            lock = hold_host(host, str(place / "lock"), "study", SystemClock())
            ledger = Place(host, str(place / "ledger")).ledger()
            try:
                ledger.change(make_change(things, "one", "second"))
                ledger.change(make_change(things, "three", "made", lasting=True))
                ledger.change(make_change(things, "one", "third"))
            finally:
                ledger.undo_to(0)
                lock.release()

    def check(self, place: Path, told: list[str]) -> list[str]:  # noqa: ARG002 - nothing was told
        """As `pgstrata host restore` and `status`."""
        things = Files(place / "things")
        with closing(LocalHost()) as host:
            hold_host(host, str(place / "lock"), "study", SystemClock()).release()
            there = Place(host, str(place / "ledger"))
            if (place / "ledger").exists():
                there.restore()
            states = [things.state(name) for name in ("one", "two", "three")]
            wrong = [] if states == ["first", "first", ""] else [f"things are left {states}"]
            if left := [*there.entries(), *host_state(host, there.folder).entries]:
                wrong.append(f"entries are left: {left}")
        return wrong


class Restore(Ledger):
    """What a killed one changed is restored."""

    name = "restore"

    def prepare(self, place: Path) -> None:
        """Three changes of a process that has ended."""
        super().prepare(place)
        things = Files(place / "things")
        with closing(LocalHost()) as host:
            there = Place(host, str(place / "ledger"))
            for what, value in (("one", "second"), ("two", "second"), ("three", "made")):
                there.ledger().change(make_change(things, what, value))
            there.forget_owner()

    def act(self, place: Path, tell: Tell) -> None:  # noqa: ARG002 - nothing is measured
        """As `pgstrata host restore`."""
        with closing(LocalHost()) as host:
            Place(host, str(place / "ledger")).restore()


# --------------------------------------------------------------------------------------------------- datasets

# What initdb makes, in small: a control file of version 18 that says "shut down", and some files.
_CLUSTER: Final = {
    "PG_VERSION": b"18\n",
    "postgresql.conf": b"# defaults\n",
    CONTROL_FILE: (0).to_bytes(8, "little") + (1800).to_bytes(4, "little") + bytes(4) + (1).to_bytes(4, "little"),
    "base/1/1259": b"x" * 8192,
    "pg_wal/000000010000000000000001": b"w" * 8192,
}
_CELL: Final = little_plan.CELLS[0]


class _Answers:
    """A server to which everything is all right (`ports.Sql`)."""

    def query(self, _address: object, _statement: str) -> QueryResult:
        return QueryResult(columns=("ok",), rows=(("t",),))

    def execute(self, _address: object, _script: str) -> None:
        """Nothing happens."""


class Datasets:
    """A dataset is built and cloned, and the clone is discarded; initdb and the server are stand-ins."""

    name = "datasets"

    def __init__(self, tools: Path) -> None:
        """`tools` is a folder on a good file system."""
        self._prefix = tools / "prefix"
        for name, content in _CLUSTER.items():
            path = tools / "cluster" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (self._prefix / "bin").mkdir(parents=True)
        initdb = self._prefix / "bin" / "initdb"
        initdb.write_text(f'#!/bin/sh\nexec cp -a "{tools}/cluster" "$2"\n')
        initdb.chmod(0o755)

    def _datasets(self, host: LocalHost, place: Path) -> ClusterDatasets:
        parts: dict[str, Any] = {"sql": _Answers(), "control": fakes.FakeControl(fakes.World())}
        recipe = DataRecipe(load=lambda *_: None, verify=lambda _: "", marker="")
        return ClusterDatasets(
            host=host, tools=fakes.build(), workloads={"select-only": replace(fakes.WORKLOAD, bytes_per_scale=0)},
            recipe=recipe, clock=SystemClock(), root=str(place / "data"), study="study", **parts,
        )  # fmt: skip

    def _build(self, host: LocalHost, place: Path) -> Path:
        datasets = self._datasets(host, place)
        build = replace(fakes.build(), prefix=str(self._prefix))
        dataset = datasets.ensure(fakes.environment("a"), build, _CELL)
        datasets.discard(datasets.clone(dataset, "b01"))
        return Path(dataset.location)

    def prepare(self, place: Path) -> None:
        """Somebody else's folder lies where datasets do."""
        (place / "data" / "datasets" / "somebody's").mkdir(parents=True)
        (place / "data" / "datasets" / "somebody's" / "precious").write_text("precious")

    def act(self, place: Path, tell: Tell) -> None:
        """As a run."""
        with closing(LocalHost()) as host:
            sweep_leftovers(host, SystemClock(), str(place / "data"))
            self._build(host, place)
            tell("built")

    def check(self, place: Path, told: list[str]) -> list[str]:
        """What was left is swept, and the dataset can be used or is built again."""
        data = place / "data"
        self._end_owners(place)
        finished = [path for path in (data / "datasets").glob("*-s1-*") if path.suffix != ".partial"]
        before = [digests(path) for path in finished]
        with closing(LocalHost()) as host:
            sweep_leftovers(host, SystemClock(), str(data))
            found = self._build(host, place)
        wrong = ["the finished dataset is lost"] if told and not finished else []
        if before and digests(finished[0]) != before[0]:
            wrong.append("the finished dataset was changed")
        content = {name: hashlib.sha256(text).hexdigest() for name, text in _CLUSTER.items()}
        content.pop("postgresql.conf")
        if not content.items() <= digests(found).items():
            wrong.append("the dataset is not whole")
        # an empty folder may be one that another pgstrata has just made: it is left alone
        left = [path for kind in ("datasets/*.partial", "clones/*") for path in data.glob(kind) if digests(path)]
        wrong += [f"{path} is left" for path in left]
        if (data / "datasets" / "somebody's" / "precious").read_text() != "precious":
            wrong.append("somebody's folder was changed")
        return wrong

    def _end_owners(self, place: Path) -> None:
        """The processes that made these have ended; their ids may have been given to others since."""
        for path in place.rglob(MARKER):
            fields = json.loads(path.read_text())
            path.write_text(json.dumps({**fields, "owner": {**fields["owner"], "started": DEAD}}))


class Sweep(Datasets):
    """What a killed one left of a build and of a clone is swept."""

    name = "sweep"

    def prepare(self, place: Path) -> None:
        """A dataset, half of another one, and a clone."""
        super().prepare(place)
        with closing(LocalHost()) as host:
            built = self._build(host, place)
            datasets = self._datasets(host, place)
            partial = place / "data" / "datasets" / "pgbench-s2-pg18-0.partial"
            shutil.copytree(built.parent, partial)
            dataset = datasets.ensure(fakes.environment("a"), replace(fakes.build(), prefix=str(self._prefix)), _CELL)
            datasets.clone(dataset, "b02")
        self._end_owners(place)

    def act(self, place: Path, tell: Tell) -> None:  # noqa: ARG002 - nothing is built
        """As the next run does first."""
        with closing(LocalHost()) as host:
            sweep_leftovers(host, SystemClock(), str(place / "data"))


def make_scenarios(tools: Path) -> tuple[Scenario, ...]:
    """All of them."""
    return (
        Study("create", before=0, runs=2),
        Study("resume", before=2, runs=1),
        Study("recover", before=2, runs=1, spoil=lose_catalogue),
        Reparse("reparse", before=3, runs=0),
        Ledger(),
        Restore(),
        Datasets(tools / "built"),
        Sweep(tools / "swept"),
    )
