"""What pgstrata reads from others, where a user hands it over: one function for each kind of input, which takes bytes."""

import atexit
import gzip
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from pgstrata.app.answer import load_answer
from pgstrata.app.question import parse_text, plan_experiment
from pgstrata.app.wiring import make_derive, reparse
from pgstrata.collectors.hostfacts.abilities import parse_cgroups, parse_programs
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.perf.sampler import parse_folded
from pgstrata.collectors.pgtest import parse_fsync, parse_timing
from pgstrata.collectors.serverlog import parse_log
from pgstrata.compare.one_look import ImportTerms, decide_import
from pgstrata.errors import PgstrataError
from pgstrata.experiment.defaults import complete_experiment
from pgstrata.experiment.parse import mask_text
from pgstrata.importers.assemble import ImportQuestion, assemble
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.results import Placed, ReadingTerms
from pgstrata.layers.cgroups import parse_hierarchies
from pgstrata.model.floor import FloorKey
from pgstrata.model.mounts import parse_mounts
from pgstrata.model.observation import Repeats
from pgstrata.model.plan import HostCapacity
from pgstrata.report.answer.causes import make_why_document
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.commands.decide import decision_json, render_decision
from pgstrata.report.json.answer import answer_json
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.servers.libraries import parse_missing
from pgstrata.servers.version import parse_server_version
from pgstrata.sources.table import parse_metrics, parse_table
from pgstrata.sources.tidy import render_observations
from pgstrata.store.evidence import load_evidence
from pgstrata.store.floors import FloorStore
from pgstrata.store.repository import StudyFolder
from pgstrata.store.serialise import parse_fingerprint
from pgstrata.workloads import builtin_workloads

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "captures"
KEPT = ROOT / "tests" / "kept"
CAPACITY = HostCapacity(memory=32 << 30, cpus=4, free_disk=10**15)
STUDY = "runs"
"""The kept study whose plan and catalogue are changed."""


def read_experiment(content):
    """`pgstrata plan`, as text and as JSON."""
    text = content.decode(errors="surrogateescape")
    experiment = parse_text(text, "e.toml", builtin_workloads(), CAPACITY, folder=ROOT / "examples" / "short")
    if any(host.remote for host in experiment.hosts):
        return
    complete = complete_experiment(experiment, CAPACITY, builtin_workloads())
    plan = plan_experiment(complete, builtin_workloads(), CAPACITY)
    assert render_plan(plan, "e.toml")
    assert plan_json(plan)


def read_connection(content):
    """A connection string, as a level and in a text whose passwords are masked."""
    text = content.decode(errors="replace").replace("\n", " ")
    quoted = "".join(f"\\U{ord(c):08x}" for c in text)
    toml = f'[factors]\nserver = ["16", "dsn:{quoted}"]\n[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 1\n'
    assert mask_text(f'server = "dsn:{text}"\n')
    read_experiment(toml.encode())


def read_table(content):
    """`pgstrata decide`, plain and for an ordered axis."""
    text = content.decode(errors="replace")
    table = parse_table(text, "r.csv")
    for ordered in (False, True):
        answer = decide_import(table, ImportTerms(ordered=ordered))
        assert render_decision(answer)
        assert decision_json(answer)


def read_foreign(content):
    """`pgstrata import` of one file, in every format: what comes of it is a table that `decide` reads."""
    text = content.decode(errors="replace")
    for each in FORMATS.values():
        with suppress(PgstrataError):
            contents = each.read(text, ReadingTerms(index=(), metrics=()))
            assert contents.results or contents.unusable
            placed = [
                Placed(result=one, source="f", dimensions=one.said, named=frozenset()) for one in contents.results
            ]
            if placed:
                made = assemble(placed, ImportQuestion(), contents.compared)
                tidy = render_observations(made.observations, Repeats.UNKNOWN).encode("utf-8", "replace")
                assert parse_metrics(tidy.decode(), "r.csv")


def read_evidence(content):
    """`pgstrata reparse` of a run of which a file is another: the first line names run, file and "packed" or "plain"."""
    head, _, rest = content.partition(b"\n")
    place, name, form = head.decode(errors="replace").split(" ")
    runs = kept_runs()
    derive, files = runs[int(place) % len(runs)]
    derive({**files, name: gzip.compress(rest, 1) if form == "packed" else rest})


def read_small(content):
    """What programs and the kernel print: the first line names the parser."""
    name, _, rest = content.partition(b"\n")
    list_if_any(SMALL[name.decode()](rest))


def read_plan(content):
    """plan.json."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plan.json").write_bytes(content)
        StudyFolder(Path(folder)).head()


def read_catalogue(content):
    """The catalogue after a script of SQL; a script that SQLite refuses is passed over."""
    with closing(sqlite3.connect(_fresh_catalogue())) as connection:
        try:
            connection.executescript(content.decode(errors="replace"))
        except sqlite3.Error:
            return
    _show()


def read_database(content):
    """The catalogue after its bytes were changed: each line is a place, of 1000 in the file, and bytes in hex."""
    path = _fresh_catalogue()
    data = bytearray(path.read_bytes())
    for place, _, new in (line.partition(" ") for line in content.decode().splitlines()):
        start = int(place) * len(data) // 1000
        data[start : start + len(new) // 2] = bytes.fromhex(new)
    path.write_bytes(data)
    _show()


def read_floor(content):
    """A noise floor in the state folder."""
    key = FloorKey(cell="c", metric="tps", design="runs of 10 s", conditions={"scale": "10"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "floors", f"{key.digest}-x-y.json")
        path.parent.mkdir()
        path.write_bytes(content)
        FloorStore(folder).load(key)


def read_fingerprint(content):
    """A fingerprint of a study."""
    parse_fingerprint(content, where="host.json")


READERS = {name.removeprefix("read_"): reader for name, reader in list(globals().items()) if name.startswith("read_")}
SMALL = {
    "mounts": lambda content: parse_mounts(content.decode(errors="replace")),
    "hierarchies": lambda content: parse_hierarchies(*_halves(content)),
    "cgroups": lambda content: parse_cgroups(_halves(content)[0], {}),
    "programs": lambda content: parse_programs(content.decode(errors="replace")).items(),
    "host": lambda content: parse_host_facts({"host.cpu.txt": content, "host.system.txt": content}).facts.items(),
    "folded": lambda content: [parse_folded(content)],
    "fsync": lambda content: parse_fsync(content.decode(errors="replace")).items(),
    "timing": lambda content: [parse_timing(content.decode(errors="replace"))],
    "serverlog": parse_log,
    "missing": lambda content: [parse_missing(content.decode(errors="replace"))],
    "version": lambda content: [parse_server_version(content.decode(errors="replace"))],
}


def list_if_any(found):
    """All that a parser yields."""
    return list(found)


def _halves(content):
    text = content.decode(errors="replace")
    return text[: len(text) // 2], text[len(text) // 2 :]


# ---------------------------------------------------------------------------------------------- kept studies


@cache
def kept_study(name=STUDY):
    """A kept study in a folder that lasts as long as the tests; its catalogue is made."""
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with tarfile.open(KEPT / f"{name}.tar.xz") as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


@cache
def kept_plan():
    """plan.json as it was."""
    return (kept_study() / "plan.json").read_bytes()


@cache
def kept_runs():
    """A run of each kept study: what derives it, and its files."""
    found = []
    for name in sorted(path.name.removesuffix(".tar.xz") for path in KEPT.glob("*.tar.xz")):
        study = StudyFolder(kept_study(name))
        run = study.committed()[0]
        found.append((make_derive(study.head().plan.experiment), load_evidence(study.path, run)))
    return tuple(found)


@cache
def _catalogue():
    reparse(StudyFolder(kept_study()))
    with closing(sqlite3.connect(kept_study() / "catalogue.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        return connection.serialize()


def _fresh_catalogue():
    content = _catalogue()
    for path in kept_study().glob("catalogue.sqlite*"):
        path.unlink()
    path = kept_study() / "catalogue.sqlite"
    path.write_bytes(content)
    return path


def _show():
    answer = load_answer(StudyFolder(kept_study()), series=True, shifts=True, why=True, pairs=True)
    assert emit_text(make_document(answer))
    assert emit_text(make_why_document(answer))
    assert answer_json(answer, why=True)
