"""Input of every kind that is read, damaged at random: values or a message, within ten seconds and 500 MB."""

import json
import os
import random
import tomllib
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuzz_inputs as inputs
from fuzzing import ODD, bounded, documents, texts, to_toml

CORPUS = Path(__file__).with_name("corpus")
CASES = {
    "experiment": 25_000,
    "connection": 10_000,
    "table": 20_000,
    "foreign": 8000,
    "evidence": 12_000,
    "small": 20_000,
    "plan": 5000,
    "catalogue": 1000,
    "database": 1000,
    "floor": 8000,
    "fingerprint": 3000,
}
"""How many in the soak: 113,000 together."""
FEW = 30


def check(kind, content):
    with bounded():
        inputs.READERS[kind](content)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_went_wrong_once_is_a_message_or_an_answer(path):
    check(path.parent.name, path.read_bytes())


def test_every_file_of_the_corpus_has_its_purpose_in_the_readme():
    said = (CORPUS / "README.md").read_text()
    assert [path.name for path in CORPUS.glob("*/*") if f"`{path.parent.name}/{path.name}`" not in said] == []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("share", [0, pytest.param(1, marks=pytest.mark.soak("fuzz"))], ids=["few", "all"])
def test_damaged_input_is_a_message_or_an_answer(kind, share):
    cases = CASES[kind] * int(os.environ.get("PGSTRATA_FUZZ", "100")) // 100 if share else FEW

    @settings(
        max_examples=cases, derandomize=not share, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(content=STRATEGIES[kind]())
    def damage(content):
        check(kind, content)

    damage()


# ------------------------------------------------------------------------------------------------ strategies


@cache
def corpus(kind):
    return [path.read_bytes() for path in sorted((CORPUS / kind).glob("*"))]


def experiments():
    samples = [path.read_bytes() for path in sorted((inputs.ROOT / "examples").rglob("*.toml"))]
    loaded = [tomllib.loads(text.decode()) for text in samples]
    edited = st.builds(lambda document: to_toml(document).encode("utf-8", "surrogatepass"), documents(loaded))
    return st.one_of(edited, edited, texts(samples + corpus("experiment")))


def connections():
    parts = ["postgresql://", "postgres://", "host=", "password=", "user", ":", "@", "/", "?", "&", "=", "%", "%2", "%zz",
             "[", "]", "[::1]", "'", '"', "\\", " ", ",", "#", "5432", "99999", "sslmode=", "a", "\0", "\u202e", "\n"]  # fmt: skip
    made = st.lists(st.one_of(st.sampled_from(parts), st.text(max_size=4)), max_size=12).map("".join)
    return st.one_of(made.map(lambda text: text.encode("utf-8", "replace")), texts([b"host=h", *corpus("connection")]))


def tables():
    source = random.Random(1)
    rows = [(b, e, c, f"{source.random() + 10:.4f}") for b in range(12) for e in "abc" for c in ("r", "w")]
    text = "block,environment,cell,value\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    samples = [
        text.encode(),
        text.replace(",", ";").encode(),
        (inputs.ROOT / "examples/gate-in-ci/results.csv").read_bytes(),
    ]
    return texts(samples + corpus("table"))


def evidence():
    """A file of a run: damaged, or of another run; packed ones inside or outside."""
    names = sorted({name for _, files in inputs.kept_runs() for name in files})

    def strategy(name):
        found = [files[name] for _, files in inputs.kept_runs() if name in files]
        if name == "run.json":
            return documents([json.loads(one) for one in found]).map(
                lambda one: (name, "plain", json.dumps(one).encode())
            )
        outside = texts(found).map(lambda content: (name, "plain", content))
        if not name.endswith(".gz"):
            return outside
        inside = texts([inputs.gzip.decompress(one) for one in found]).map(lambda content: (name, "packed", content))
        return st.one_of(inside, inside, outside)

    one = st.sampled_from(names).flatmap(strategy)
    return st.builds(lambda place, case: f"{place} {case[0]} {case[1]}\n".encode() + case[2], st.integers(0, 9), one)


def small():
    found = {
        "mounts": [Path("/proc/self/mountinfo").read_bytes()],
        "host": captures("hostfacts/*/host.*.txt"),
        "folded": captures("perf/*/*/perf.samples"),
        "fsync": captures("pg_test_fsync/*/*/output.txt"),
        "timing": captures("pg_test_timing/*/*/output.txt"),
        "serverlog": captures("serverlog/1[0-9]/*/*.log"),
        "missing": captures("ldd/*/output.txt"),
        "version": captures("pg_version/*/output.txt"),
    }
    found |= dict.fromkeys(("hierarchies", "cgroups"), found["mounts"])
    found |= {"programs": [b"fio=/usr/bin/fio\nperf=\n"]}
    assert found.keys() == inputs.SMALL.keys()
    return st.sampled_from(sorted(found)).flatmap(
        lambda name: texts(found[name] or [b""]).map(lambda content: name.encode() + b"\n" + content)
    )


def captures(pattern):
    return [path.read_bytes() for path in sorted(inputs.CAPTURES.glob(pattern))]


def jsons(*samples):
    loaded = [json.loads(sample) for sample in samples]
    edited = documents(loaded).map(lambda one: json.dumps(one).encode())
    return st.one_of(edited, edited, edited, texts(list(samples)))


def floors():
    return jsons(
        json.dumps(
            {
                "format": 2, "cell": "c", "metric": "tps", "design": "runs of 10 s", "conditions": {"scale": "10"},
                "host": {"kernel": "6.1"}, "measured": "2026-03-01T12:00:00+01:00", "study": "s", "source": "s",
                "version": "0", "differences": [0.1, -0.2, 0.0],
            }
        ).encode()
    )  # fmt: skip


def catalogues():
    values = [repr(odd) for odd in ODD if isinstance(odd, int | float) and abs(odd) < 2**63]
    values += ["'" + odd.replace("'", "''").replace("\0", "") + "'" for odd in ODD if isinstance(odd, str)]
    values += [
        "NULL",
        "x'00'",
        "x'00000000'",
        "9e999",
        "-9e999",
        "zeroblob(1000)",
        "'[]'",
        "'{}'",
        "'[[1, 2]]'",
        "'[[\"a\"]]'",
    ]
    with inputs.closing(inputs.sqlite3.connect(inputs._fresh_catalogue())) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = [(t, row[1]) for t in tables for row in connection.execute(f"PRAGMA table_info({t})")]
    update = st.builds(
        lambda column, value, where: f'UPDATE OR IGNORE {column[0]} SET "{column[1]}" = {value}{where};',
        st.sampled_from(columns),
        st.sampled_from(values),
        st.sampled_from(["", " WHERE random() % 2 = 0", " WHERE random() % 20 = 0"]),
    )
    delete = st.builds(
        lambda table, n: f"DELETE FROM {table} WHERE random() % {n} = 0;", st.sampled_from(tables), st.integers(1, 9)
    )
    drop = st.sampled_from(tables).map(lambda table: f"DROP TABLE {table};")
    statement = st.one_of(update, update, update, update, delete, drop)
    return st.lists(statement, min_size=1, max_size=3).map(lambda lines: "\n".join(lines).encode())


def databases():
    line = st.builds(lambda place, new: f"{place} {new.hex()}", st.integers(0, 999), st.binary(min_size=1, max_size=8))
    return st.lists(line, min_size=1, max_size=20).map(lambda lines: "\n".join(lines).encode())


def foreign():
    folder = inputs.ROOT / "tests/captures"
    samples = [
        (folder / "foreign/serverscamp/aws/bench100/run1.txt").read_bytes() * 2,
        (folder / "foreign/otava/sample.csv").read_bytes(),
        (folder / "foreign/postgresbench/neon/results/neon_4cpu_16gb_6849.json").read_bytes(),
        b'[{"commit": "a", "tps": 1}, {"commit": "b", "tps": 2}]',
        *(file.read_bytes() for file in sorted(folder.glob("sysbench/*/point-select*/output.txt"))[:1]),
        b"".join(
            b"[pod/%d/c] 2026-05-01T10:00:07Z %s\n" % (number % 2, line)
            for number, line in enumerate((folder / "foreign/pgbench/9.4.14.txt").read_bytes().splitlines() * 2)
        ),
        b"Hammerdb Log @ Fri Jul 05 09:55:26 BST 2019\nVuser 1:Executing Query 14 (1 of 22)\n"
        b"Vuser 1:query 14 completed in 7.868 seconds\nVuser 1:Completed 1 query set(s) in 86 seconds\n"
        b'Vuser 1:Geometric mean of query times returning rows (22) is "1.92246"\nVuser 1:FINISHED SUCCESS\n' * 2,
    ]
    return texts(samples + corpus("foreign"))


STRATEGIES = {
    "experiment": experiments,
    "connection": connections,
    "table": tables,
    "foreign": foreign,
    "evidence": evidence,
    "small": small,
    "plan": lambda: jsons(inputs.kept_plan()),
    "catalogue": catalogues,
    "database": databases,
    "floor": floors,
    "fingerprint": lambda: jsons(b'{"kernel": "6.1", "cpu": "x"}'),
}
