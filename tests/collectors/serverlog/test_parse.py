"""Events of the server's log in the seconds of a run. The lines are real servers', shortened."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.procfs.seconds import SecondsSampler
from pgstrata.collectors.serverlog import make_events, parse_log
from pgstrata.model.courses import EVENTS
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "serverlog"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
BEGIN = datetime(2026, 11, 21, 18, 44, 45, tzinfo=UTC).timestamp()
LOG = """\
2026-11-21 18:44:39.933 GMT [14216] LOG:  database system is ready to accept connections
2026-11-21 18:44:44.900 GMT [14220] LOG:  checkpoint starting: immediate force wait
2026-11-21 18:44:45.185 GMT [14220] LOG:  checkpoint complete: wrote 8 buffers (0.0%), wrote 3 SLRU buffers; sync files=4
2026-11-21 18:44:47.2 UTC [14220] LOG:  checkpoint starting: wal
2026-11-21 18:44:48.001 GMT [14301] LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp14301.0", size 14000000
2026-11-21 18:44:48.901 GMT [14301] LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp14301.1", size 14000000
2026-11-21 18:44:49.100 GMT [14301] bench@bench ERROR:  deadlock detected
2026-11-21 18:44:49.100 GMT [14301] bench@bench DETAIL:  Process 1 waits for ShareLock on transaction 7; blocked by process 2.
2026-11-21 18:44:49.100 GMT [14301] bench@bench STATEMENT:  SELECT 'ERROR:  not an error'
2026-11-21 18:44:50 GMT [14302] ERROR:  relation "x" does not exist at character 15
2026-11-21 18:44:51.500 GMT [14400] LOG:  automatic vacuum of table "bench.public.pgbench_tellers": index scans: 0
2026-11-21 18:44:51.600 GMT [14400] LOG:  automatic aggressive vacuum to prevent wraparound of table "bench.public.x": index scans: 0
2026-11-21 18:44:51.700 GMT [14400] LOG:  automatic analyze of table "bench.public.pgbench_tellers" system usage: CPU 0.00s
2026-11-21 18:44:56.000 GMT [14216] FATAL:  terminating connection due to administrator command
"""


def events(log=LOG, seconds=10.0):
    return {
        found.metric: dict(zip(found.times, found.values, strict=True))
        for found in make_events(log.encode(), BEGIN, BEGIN + seconds)
    }


@pytest.mark.parametrize("case", CASES, ids=[case.parent.name for case in CASES])
def test_every_capture_gives_the_expected_events(case):
    found = Counter(event.kind for event in parse_log((case / "server.log").read_bytes()))
    assert found == json.loads((case / "expected.json").read_text())


def test_captures_of_all_majors_are_there():
    assert {case.parent.name for case in CASES} == {"9.6", *map(str, range(10, 19))}


def test_events_are_counted_by_the_second_of_the_run_in_which_they_happened():
    assert events() == {
        "checkpoint_starts": {2: 1},
        "checkpoint_ends": {0: 1},
        "temporary_files": {3: 2},
        "errors": {4: 1, 5: 1},
        "deadlocks": {4: 1},
        "autovacuums_done": {6: 3},
    }
    assert events().keys() == EVENTS.keys()


@pytest.mark.parametrize(
    "line",
    [
        "LOG:  checkpoint starting: time",
        "2026-11-21 18:44:47.200 CET [14220] LOG:  checkpoint starting: time",
        "2026-11-21 18:44:47.200 GMT [14220] LOG:  Checkpoint beginnt: time",
        "2026-21-21 18:44:47.200 GMT [14220] LOG:  checkpoint starting: time",
        "2026-11-21 18:44:47.200 GMT [14220] HINT:  Perhaps ERROR:  x",
        "\tcontinued ERROR:  x",
    ],
)
def test_of_other_lines_nothing_is_said(line):
    assert events(f"{line}\n") == {}


@given(st.binary(max_size=300), st.integers(0, len(LOG)))
def test_any_bytes_are_read(rubbish, place):
    list(parse_log(LOG.encode()[:place] + rubbish + LOG.encode()[place:]))


def test_the_clock_of_the_run_is_that_of_the_first_sample_on_the_servers_host():
    evidence = {"seconds.samples": f"wall {BEGIN + 2}\n@ 500.00\n@ 505.00\n".encode(), "server.log": LOG.encode()}
    window = Window(seconds=5, transactions=1, client_cpu=0, postmaster_pid=1, transport_pids=(), server_version=180000)
    found = {series.metric: series.times for series in SecondsSampler().parse(evidence, window).series}
    assert found == {
        "checkpoint_starts": (0,),
        "temporary_files": (1,),
        "errors": (2, 3),
        "deadlocks": (2,),
        "autovacuums_done": (4,),
    }
    without = {**evidence, "seconds.samples": b"@ 500.00\n@ 505.00\n"}
    assert SecondsSampler().parse(without, window).series == ()
