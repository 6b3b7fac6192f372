import json
from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.collectors.sessions.counts import parse_sessions
from pgstrata.collectors.sessions.parse import hide_queries, parse_clocks, parse_samples
from pgstrata.diagnosis.query_text import hash_query
from pgstrata.errors import ParseError
from pgstrata.model.activity import SessionState
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "sessions"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
WINDOW = Window(
    seconds=2.0, transactions=100, client_cpu=1.0, postmaster_pid=None, transport_pids=(), server_version=180000
)


def row(time, pid=1, *, kind="client backend", own=1, state="active", wait="\t", blockers="", query="SELECT ?"):
    return f"{time}\t{pid}\t{kind}\t{own}\t{state}\t{wait}\t\t\t{blockers}\t{query}\n"


def parse(*rows, head="@ 99.9 100.0 100.1 0.1\n", **window):
    return parse_sessions((head + "".join(rows)).encode(), replace(WINDOW, **window))


def window_of(case):
    """The window of a capture."""
    major = case.parent.name
    return replace(WINDOW, server_version=90600 if major == "9.6" else int(major) * 10000)


def counts(sampled):
    found = {}
    for count in sampled.sessions:
        key = f"{count.wait_type}/{count.event}" if count.state is SessionState.WAITING else count.state.value
        found[key] = found.get(key, 0) + count.samples
    return found


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_every_capture_gives_the_expected_counts(case):
    found = parse_sessions((case / "sessions.samples").read_bytes(), window_of(case))
    assert counts(found) == json.loads((case / "expected.json").read_text())
    queries = {count.query for count in found.sessions}
    assert queries <= {
        "",
        "begin",
        "end",
        "select ?, v from hot where id = ?",
        "update hot set v = v + ? where id = least(?, ?)",
    }
    assert found.remarks == ()


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_waits_for_a_row_in_a_capture_go_to_a_query_unless_they_were_over_too_soon(case):
    found = parse_sessions((case / "sessions.samples").read_bytes(), window_of(case))
    waits = [count for count in found.sessions if count.wait_type == "Lock"]
    assert sum(count.samples for count in waits if count.blocker) >= 5


def test_captures_of_all_majors_are_there():
    assert {case.parent.name for case in CASES} == {"9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18"}


@pytest.mark.parametrize("version", ["9.6", "18"])
def test_a_file_may_end_anywhere(version):
    text = (CAPTURES / version / "hot-rows" / "sessions.samples").read_bytes()
    whole = list(parse_samples(text))
    for end in range(0, len(text), 7):
        assert list(parse_samples(text[:end])) == whole[: text[:end].count(b"\n") - 1 if end > 70 else 0]
        parse_sessions(text[:end], WINDOW)


@pytest.mark.parametrize("text", [b"garbage\n", b"1\t2\n", b"\0\n", b"x" * 100_000 + b"\n", row("now").encode()])
def test_garbage_is_refused_with_its_line(text):
    with pytest.raises(ParseError, match="unknown shape of a sample"):
        parse_sessions(text, WINDOW)


def test_hashes_stand_for_queries_where_no_text_is_wanted():
    samples = row(1.0, query="SELECT a + -? ") + row(1.0, 2, query="select a + $1") + row(1.0, 3, query="SELECT b")
    hidden = hide_queries((samples + "1.1\t4").encode())
    assert b"SELECT" not in hidden.upper()
    queries = [sample.query for sample in parse_samples(b"@ 1 1 1 0.1\n" + hidden)]
    assert queries == [hash_query("select a + ?")] * 2 + [hash_query("select b")]
    assert hide_queries(b"@ 1 1 1 0.1\n" + row(1.0, query="").encode()).decode() == "@ 1 1 1 0.1\n" + row(1.0, query="")


def test_texts_of_any_bytes_break_no_row():
    text = row(1.0).encode().replace(b"SELECT ?", b"SELECT \xff\xfe\x01\x0b\x0c\r\x85\xe2\x80\xa8 <b>\\")
    (sample,) = parse_samples(text)
    assert sample.query == "select \ufffd\ufffd \ufffd <b>\\"


def test_a_session_says_what_it_does():
    found = parse(
        row(1.0, 1),
        row(1.0, 2, wait="IO\tWALSync"),
        row(1.0, 3, state="idle", wait="Client\tClientRead"),
        row(1.0, 4, state="idle in transaction", wait="Client\tClientRead"),
        row(1.0, 5, wait="Client\tClientWrite"),
        row(1.0, 6, state=""),
        row(1.0, 7, state="disabled"),
    )
    assert counts(found) == {"running": 1, "IO/WalSync": 1, "client": 3}


def test_other_processes_are_counted_apart():
    found = parse(
        row(1.0),
        row(1.0, 2, kind="parallel worker", wait="IPC\tBgWorkerStartup", query="SELECT a1"),
        row(1.0, 3, kind="checkpointer", own=0, state="", wait="IO\tDataFileWrite", query=""),
        row(1.0, 4, own=0, query="SELECT b"),
        row(1.0, 5, kind="", own=0, state="", query=""),
    )
    assert counts(found) == {"running": 1}
    assert [(count.kind, count.wait_type, count.event, count.query, count.samples) for count in found.processes] == [
        ("parallel worker", "IPC", "BgworkerStartup", "select a1", 1),
        ("checkpointer", "IO", "DataFileWrite", "", 1),
    ]


def test_waits_for_locks_go_to_the_query_at_the_end_of_the_chain():
    lock = "Lock\ttransactionid"
    found = parse(
        row(1.0, 1, wait=lock, blockers="2", query="UPDATE a"),
        row(1.0, 2, wait=lock, blockers="3 1", query="UPDATE b"),
        row(1.0, 3, own=0, state="idle in transaction", query="UPDATE c"),
        row(2.0, 1, wait=lock, blockers="2", query="UPDATE a"),
        row(2.0, 2, wait=lock, blockers="1", query="UPDATE b"),
        row(3.0, 1, wait=lock, blockers="0"),
        row(3.0, 2, wait=lock, blockers="99"),
    )
    assert sorted((count.query, count.blocker) for count in found.sessions) == [
        ("select ?", ""),
        ("select ?", "prepared transaction"),
        ("update a", "update b"),
        ("update a", "update c"),
        ("update b", "update a"),
        ("update b", "update c"),
    ]


def test_what_the_driver_does_before_and_after_its_sessions_does_not_count():
    before = [row(1.0 + at / 10, 9, query="SELECT count(*) FROM pgbench_branches") for at in range(4)]
    coming = [row(1.4, 1, query="SELECT early")]
    during = [row(1.5 + at / 10, pid) for at in range(10) for pid in (1, 2)]
    going = [row(2.5, 2, query="SELECT late")]
    found = parse(*before, *coming, *during, *going)
    assert [(count.query, count.samples) for count in found.sessions] == [("select ?", 20)]


def test_with_a_session_for_each_transaction_all_samples_count():
    found = parse(*(row(1.0 + at / 10, 100 + at) for at in range(10)))
    assert counts(found) == {"running": 10}


def test_only_the_turns_count_and_not_how_they_begin():
    times = (0.99, 1.001, 1.05, 1.24, 1.26, 2.01, 2.1)
    found = parse(
        *(row(time, query=f"SELECT q{time}".replace(".", "_")) for time in times), turns=((1, 1.25), (2, 2.25))
    )
    assert sorted(count.query for count in found.sessions) == ["select q1_05", "select q1_24", "select q2_1"]


def test_a_server_with_another_clock_is_matched_to_the_turns():
    found = parse(row(1001.1), head="@ 1.0 1001.0 1.01 0.1\n", turns=((1.0, 1.25),))
    assert counts(found) == {"running": 1}
    assert parse_clocks(b"@ 1.0 1.2 1.3 0.05\n").offset == 0
    assert parse_clocks(b"@ 1.0 1.2 1.3 0.05\n").period == 0.05
    assert parse_clocks(b"@ %N 1.2 %N 0.1\n").offset == 0


@pytest.mark.parametrize(
    ("times", "turns", "share"),
    [
        ([at / 10 for at in range(20)], (), None),
        ([at / 10 for at in range(10)], (), 0.30),
        ([0.0, 0.1, 0.2, 1.7, 1.8, 1.9], (), 0.50),
        ([0.0, 0.1, 0.2, -5.0, -4.9, -4.8], (), 0.50),
        ([1.05, 1.15, 1.25], ((1.0, 1.3),), None),
        ([1.05, 1.15], ((1.0, 1.3), (2.0, 2.3)), 0.32),
    ],
)
def test_a_window_that_was_not_seen_is_told(times, turns, share):
    found = parse(*(row(10 + time) for time in times), turns=tuple((10 + a, 10 + b) for a, b in turns))
    assert [reason.how for reason in found.remarks] == (["sessions"] if share else [])
    assert share is None or found.remarks[0].value == pytest.approx(share, abs=0.005)


def test_a_window_without_any_sample_is_told():
    assert [reason.code for reason in parse().remarks] == ["samples_missing"]


def test_an_idle_session_that_waits_for_no_client_has_gone_on():
    waiting, nothing = "IO\tDataFileRead", "\t"
    found = parse(
        row(100, state="idle", wait=waiting, query=""),
        row(100, 2, state="idle", wait=nothing, query=""),
        row(100, 3, state="active", wait="Client\tClientRead"),
    )
    assert counts(found) == {"IO/DataFileRead": 1, "running": 1, "client": 1}
    assert {count.query for count in found.sessions} == {""}
    # before 10 waiting for a client had no event
    assert counts(parse(row(100, state="idle", wait=nothing, query=""), server_version=90624)) == {"client": 1}


def test_a_session_that_the_kernel_says_is_asleep_is_no_running_one():
    found = parse(*(row(100 + 0.1 * step, state="active/hrtimer_nanosleep") for step in range(5)))
    assert counts(found) == {"asleep": 5}
    assert counts(parse(*(row(100 + 0.1 * step, state="active/?") for step in range(5)))) == {"passing": 5}
    assert counts(parse(*(row(100 + 0.1 * step, state="active/0") for step in range(5)))) == {"awake": 5}
    assert counts(parse(*(row(100 + 0.1 * step, state="active") for step in range(5)))) == {"running": 5}
    assert counts(parse(*(row(100 + 0.1 * step) for step in range(5)))) == {"running": 5}


def look(time, clients=2):
    return row(time, clients, kind="look", own=0, state="", query="")


def test_clients_that_connect_for_each_transaction_and_have_no_session_yet_are_connecting():
    found = parse(
        look(99.8),  # before the first session
        row(99.9, 9), look(99.9),  # the first one, and so are all looks chosen of which it is the first
        row(100.0, 10), look(100.0),
        look(100.1),
        row(100.2, 11), row(100.2, 12, state="starting"), look(100.2),
        row(100.3, 13, state="idle", wait="Client\tClientRead"), row(100.3, 14), row(100.3, 15), look(100.3),
        row(100.4, 16), look(100.4),
        look(100.5),
        seconds=0.8,
    )  # fmt: skip
    assert counts(found) == {"running": 4, "client": 1, "connecting": 4}
    assert {count.query for count in found.sessions if count.state is SessionState.CONNECTING} == {""}
    # no look is missing because it saw nobody
    assert found.remarks == ()
    assert found.processes == ()


def test_sessions_that_never_say_what_they_do_are_not_taken_for_connecting():
    rows = [part for at in range(6) for part in (row(100 + at / 10, 10 + at, state="disabled"), look(100 + at / 10))]
    assert parse(*rows).sessions == ()


def test_in_turns_looks_outside_of_them_do_not_count():
    rows = [part for at in range(10) for part in (row(100 + at / 10, 10 + at), look(100 + at / 10))]
    found = parse(*rows, turns=((100.25, 100.45), (100.65, 100.75)))
    assert counts(found) == {"running": 3, "connecting": 3}


def test_looks_stay_where_texts_are_hidden():
    text = (row(100.0, query="SELECT secret") + look(100.0)).encode()
    kinds = [(sample.kind, sample.pid) for sample in parse_samples(hide_queries(b"@ 1 1 1 0.1\n" + text))]
    assert kinds == [("client backend", 1), ("look", 2)]
