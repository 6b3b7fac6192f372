"""Logs in which each line has the prefix of a container, pod, journal or time; figures are made up for these tests."""

from __future__ import annotations

import pytest

from pgstrata.errors import UsageError
from pgstrata.importers import prefixes
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.prefixes import split_streams
from pgstrata.importers.results import ReadingTerms

RUN = """\
pgbench (18.1)
starting vacuum...end.
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 50
query mode: prepared
number of clients: 20
duration: 60 s
number of transactions actually processed: 60000
latency average = 5.956 ms
tps = {tps} (without initial connection time)
"""
SERVER = """\
LOG:  starting PostgreSQL 18.1
FATAL:  the database system is starting up
LOG:  checkpoint starting: time
"""


def read(text, name="pgbench"):
    return FORMATS[name].read(text, ReadingTerms())


def run(tps=100.5):
    return RUN.format(tps=tps).splitlines()


def stamp(second, minute=0):
    return f"2026-05-01T10:{minute:02}:{second:02}.123456789Z"


PREFIXES = {
    "docker compose": lambda _: "pgbench-1  | ",
    "docker compose of old": lambda _: "pgbench_1  | ",
    "docker compose with times": lambda second: f"pgbench-1  | {stamp(second)} ",
    "docker service": lambda second: f"{stamp(second)} bench_pgbench.1.x7abc@node1    | ",
    "docker with times": lambda second: f"{stamp(second)} ",
    "container runtime": lambda second: f"{stamp(second)} stdout F ",
    "kubectl": lambda _: "[pod/pgbench-x7abc/pgbench] ",
    "kubectl with times": lambda second: f"[pod/pgbench-x7abc/pgbench] {stamp(second)} ",
    "journal": lambda second: f"May 01 10:00:{second:02} db1 pgbench[4711]: ",
    "journal, short-iso": lambda second: f"2026-05-01T10:00:{second:02}+0200 db1 pgbench[4711]: ",
    "journal, short-unix": lambda second: f"1777629{second:03}.123456 db1 pgbench[4711]: ",
    "ts": lambda second: f"May 01 10:00:{second:02} ",
    "ts with a year": lambda second: f"2026-05-01 10:00:{second:02} ",
}


@pytest.mark.parametrize("kind", PREFIXES)
def test_a_run_behind_prefixes_is_the_run_without_them(kind):
    prefix = PREFIXES[kind]
    lines = [*run(), *run(101.5), *run()[:2]]
    found = read("\n".join(f"{prefix(second)}{line}" for second, line in enumerate(lines)) + "\n")
    bare = read("\n".join(lines) + "\n")
    assert len(bare.results) == 2
    assert [(each.measurements, each.said, each.line) for each in found.results] == [
        (each.measurements, each.said, each.line) for each in bare.results
    ]
    assert found.unusable == bare.unusable


@pytest.mark.parametrize(
    ("prefix", "started"),
    [
        ("2026-05-01T10:00:07Z ", "2026-05-01T09:59:07+00:00"),
        ("2026-05-01T10:00:07+0200 db1 pgbench[4711]: ", "2026-05-01T09:59:07+02:00"),
    ],
)
def test_output_that_was_written_at_the_end_began_its_duration_before(prefix, started):
    (result,) = read("".join(f"{prefix}{line}\n" for line in run())).results
    assert result.started.isoformat() == started


def test_a_run_began_with_its_first_line_where_lines_were_written_at_once():
    lines = run()
    text = "".join(f"{stamp(5, minute=0 if place < 3 else 2)} {line}\n" for place, line in enumerate(lines))
    (result,) = read(text).results
    assert (result.started.minute, result.started.second) == (0, 5)


def test_lines_of_the_server_between_those_of_pgbench_are_no_runs():
    lines = [f"pgbench-1  | {line}" for line in run()]
    for place, line in enumerate(SERVER.splitlines()):
        lines.insert(3 * place, f"db-1       | {line}")
    found = read("Attaching to db-1, pgbench-1\n" + "\n".join(lines))
    (result,) = found.results
    assert (result.measurements["tps"], result.line, found.unusable) == (100.5, 3, ())
    assert "container" not in result.said


def test_pods_whose_lines_are_mixed_are_told_apart_and_named():
    mixed = [
        f"[pod/bench-{name}/pgbench] {line}"
        for lines in zip(run(100.5), run(200.5), strict=True)
        for name, line in zip("ab", lines, strict=True)
    ]
    found = read("\n".join(mixed))
    assert [(each.measurements["tps"], each.said["pod"]) for each in found.results] == [
        (100.5, "bench-a/pgbench"), (200.5, "bench-b/pgbench")
    ]  # fmt: skip


def test_a_pod_without_a_result_is_named_beside_one_with_a_result():
    text = "".join(f"[pod/a/pgbench] {line}\n" for line in run())
    text += "[pod/b/pgbench] pgbench: error: connection to server failed: FATAL:  too many clients\n"
    found = read(text)
    assert len(found.results) == 1
    assert [line for line, _ in found.unusable] == [len(run()) + 1]
    assert "too many clients" in found.unusable[0][1]


def test_colours_of_compose_are_no_part_of_the_prefix():
    text = "".join(f"\x1b[36mpgbench-1  | \x1b[0m{line}\n" for line in run())
    assert [each.measurements["tps"] for each in read(text).results] == [100.5]


def test_runs_of_sysbench_and_hammerdb_behind_prefixes():
    text = (
        "sysbench 1.0.20\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n"
        "SQL statistics:\n    transactions:                        25000  (2500.50 per sec.)\n\nGeneral statistics:\n"
        "    total time:                          10.0164s\n\nLatency (ms):\n         sum:      160000.00\n"
    )
    (result,) = read("".join(f"{stamp(30)} {line}\n" for line in text.splitlines()), "sysbench").results
    assert (result.measurements["tps"], result.said["threads"], result.started.second) == (2500.5, "16", 20)
    log = "Vuser 1:4 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 100 NOPM from 230 PostgreSQL TPM\n"
    (result,) = read("".join(f"[pod/h/h] {stamp(30)} {line}\n" for line in log.splitlines()), "hammerdb").results
    assert (result.measurements["new_orders"], result.started.second) == (100, 30)


@pytest.mark.parametrize("text", ["", "\n\n", RUN, "[ 1s ] thds: 16 tps: 2598.27\n" * 5, "a | b\nc d\ne f\ng\n"])
def test_text_without_prefixes_is_left_alone(text):
    assert split_streams(text) is None


def test_a_log_of_very_many_programs_is_refused(monkeypatch):
    monkeypatch.setattr(prefixes, "_MOST_STREAMS", 3)
    text = "".join(f"[pod/p{number}/c] x\n" for number in range(3))
    assert len(split_streams(text).streams) == 3
    with pytest.raises(UsageError, match="more than 3 programs"):
        split_streams(f"{text}[pod/another/c] x\n")
