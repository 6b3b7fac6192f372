"""The server's statistics over the seconds of a run."""

import json
import math
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.pgstat.seconds import CountersSampler, choose_views, render_script
from pgstrata.errors import ParseError
from pgstrata.model.courses import COURSES
from pgstrata.ports.collector import CaptureSubject, Window

CAPTURES = Path(__file__).parents[2] / "captures" / "pgstat-seconds"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
WINDOW = Window(
    seconds=5.0, transactions=1000, client_cpu=2.0, postmaster_pid=100, transport_pids=(7,), server_version=180000
)


def sample(moment, **counters):
    """Rows of a sample; two underscores in a name stand for its dot."""
    rows = ((name.replace("__", "."), value) for name, value in counters.items())
    return "".join(f"{moment:.4f}\t{name}\t{'' if value is None else value}\n" for name, value in rows)


def courses(*samples, window=WINDOW):
    found = CountersSampler().parse({"pgstat.samples": "".join(samples).encode()}, window).series
    assert {series.metric for series in found} <= COURSES.keys()
    return {series.metric: series for series in found}


def test_counters_become_rates_of_the_stretch_before():
    found = courses(
        sample(100, lsn__position=1000, database__xact_commit=5, io__read_time=0),
        sample(101, lsn__position=3000, database__xact_commit=5, io__read_time=250),
        sample(103, lsn__position=3000, database__xact_commit=45, io__read_time=250),
    )
    assert found["wal_bytes"].times == (1, 3)
    assert found["wal_bytes"].values == (2000, 0)
    assert found["commits"].values == (0, 20)
    assert found["relation_reading"].values == (0.25, 0)


def test_rows_changed_are_those_inserted_updated_and_deleted():
    names = ("database__tup_inserted", "database__tup_updated", "database__tup_deleted")
    found = courses(sample(1, **dict.fromkeys(names, 1)), sample(2, **dict(zip(names, (2, 11, 101), strict=True))))
    assert found["rows_changed"].values == (111,)


def test_a_counter_that_went_backwards_is_not_known_for_that_second():
    found = courses(*(sample(at, lsn__position=value) for at, value in enumerate((5, 9, 2, 4))))
    assert [math.isnan(value) for value in found["wal_bytes"].values] == [False, True, False]


def test_a_counter_that_was_reset_and_came_far_is_not_known_for_that_second():
    stamps = ("1", "1", "2.5", "2.5")
    found = courses(*(sample(at, wal__records=10 * at, wal__stats_reset=stamp) for at, stamp in enumerate(stamps)))
    assert found["wal_records"].values == pytest.approx((10, math.nan, 10), nan_ok=True)


def test_what_is_null_missing_or_zero_throughout_is_left_out():
    found = courses(*(sample(at, wal_io__sync_time=None, wal__fpi=7, lsn__position=at) for at in range(3)))
    assert found.keys() == {"wal_bytes"}


def test_a_sample_without_a_counter_says_nothing_of_the_stretches_beside_it():
    found = courses(sample(1, wal__fpi=1), sample(2, lsn__position=1), sample(3, wal__fpi=5), sample(4, wal__fpi=6))
    assert found["wal_images"].values == pytest.approx((math.nan, math.nan, 1), nan_ok=True)


def test_of_a_stretch_without_samples_nothing_is_known():
    found = courses(*(sample(at, lsn__position=at) for at in (1, 2, 5)))
    assert found["wal_bytes"].values == pytest.approx((1, math.nan), nan_ok=True)


def test_samples_after_the_window_and_a_clock_that_was_set_back_do_no_harm():
    found = courses(*(sample(at, lsn__position=value) for at, value in ((11, 1), (12, 2), (3, 3), (13, 4), (18, 9))))
    assert found["wal_bytes"].times == (1, 2)
    assert found["wal_bytes"].values == (1, 2)


def test_slices_have_no_seconds_of_their_own():
    turns = replace(WINDOW, turns=((1.0, 2.0),))
    assert courses(sample(1, lsn__position=1), sample(2, lsn__position=9), window=turns) == {}


def test_a_last_line_without_its_end_is_left_out():
    cut = sample(3, lsn__position=12345)[:-3]
    assert courses(sample(1, lsn__position=1), sample(2, lsn__position=2), cut)["wal_bytes"].values == (1,)


@pytest.mark.parametrize(
    "line", ["nan\tlsn.position\t1", "1.0\tlsn.position", "1.0", "1.0\tlsn.position\tmuch", "-1\ta\t2"]
)
def test_an_unknown_line_is_refused(line):
    with pytest.raises(ParseError, match="unknown"):
        courses(sample(1, lsn__position=1), f"{line}\n")


COUNTS = st.one_of(st.none(), st.integers(0, 1 << 62), st.floats(0, 1e18))
STEPS = st.lists(st.tuples(st.floats(0.0, 4.0), COUNTS, st.sampled_from(("1", "2"))), min_size=1, max_size=12)


@given(STEPS)
def test_whatever_counters_do_a_rate_is_not_negative_or_not_known(steps):
    moment, samples = 1000.0, []
    for passed, count, stamp in steps:
        moment += passed
        samples.append(sample(moment, wal__records=count, wal__stats_reset=stamp, lsn__position=count))
    for series in courses(*samples, window=replace(WINDOW, seconds=60.0)).values():
        assert len(series.times) == len(series.values)
        assert all(math.isnan(value) or 0 <= value < math.inf for value in series.values)
        assert list(series.times) == sorted(set(series.times))


@given(st.lists(st.integers(0, 1 << 40), min_size=2, max_size=6).filter(any))
def test_rates_of_a_counter_that_only_grows_add_up_to_its_growth(growths):
    totals = [sum(growths[: place + 1]) for place in range(len(growths))]
    found = courses(*(sample(at, lsn__position=total) for at, total in enumerate(totals)))
    assert sum(found["wal_bytes"].values) == totals[-1] - totals[0] if "wal_bytes" in found else not any(growths[1:])


@pytest.mark.parametrize("case", CASES, ids=[case.parent.name for case in CASES])
def test_every_capture_gives_the_expected_series(case):
    expected = json.loads((case / "expected.json").read_text())
    window = replace(WINDOW, seconds=expected["times"][-1])
    found = courses((case / "pgstat.samples").read_text(), window=window)
    assert found.keys() == expected["series"].keys()
    for name, series in found.items():
        assert series.values == pytest.approx(expected["series"][name], rel=1e-4), name
        assert series.times == pytest.approx(expected["times"], abs=1e-3)


def test_captures_of_every_kind_of_statements_are_there():
    assert {case.parent.name for case in CASES} == {"9.6", "13", "14", "15", "16", "17", "18"}


@pytest.mark.parametrize(
    ("version", "chosen"),
    [
        (80323, {"database": 80300, "position": 80300, "checkpoints": 80300, "io": 80300}),
        (90023, {"database": 80300, "position": 80300, "checkpoints": 80300, "io": 80300}),
        (90500, {"database": 90200, "position": 90200, "checkpoints": 90100, "io": 90200}),
        (90624, {"database": 90600, "position": 90200, "checkpoints": 90600, "io": 90600}),
        (130023, {"database": 90600, "position": 100000, "checkpoints": 90600, "io": 90600}),
        (140023, {"database": 90600, "position": 100000, "checkpoints": 90600, "wal": 140000, "wal_io": 140000, "io": 90600}),
        (160015, {"database": 90600, "position": 100000, "checkpoints": 90600, "wal": 140000, "wal_io": 140000, "io": 160000}),
        (170011, {"database": 90600, "position": 100000, "checkpoints": 170000, "wal": 140000, "wal_io": 140000, "io": 160000}),
        (180006, {"database": 90600, "position": 100000, "checkpoints": 170000, "wal": 140000, "wal_io": 180000, "io": 180000}),
        (210000, {"database": 90600, "position": 100000, "checkpoints": 170000, "wal": 140000, "wal_io": 180000, "io": 180000}),
    ],
)  # fmt: skip
def test_of_each_view_the_highest_statement_is_used_that_is_not_newer_than_the_server(version, chosen):
    views = choose_views(version)
    assert {view: number for view, (number, _) in views.items()} == chosen
    script = render_script(version)
    assert all(statement.strip() in script for _, statement in views.values())


def test_no_statement_is_left_out():
    folder = files("pgstrata.collectors.pgstat") / "sql"
    there = {file.name for file in folder.iterdir() if not file.name.startswith(("size", "tables"))}
    versions = (80323, 90124, 90224, 90624, 130023, 140023, 150019, 160015, 170011, 180006)
    used = {f"{view}.{number}.sql" for each in versions for view, (number, _) in choose_views(each).items()}
    assert used == there


@pytest.mark.parametrize("version", [90624, 130023, 140023, 150019, 160015, 170011, 180006])
def test_up_to_14_views_are_read_only_where_few_tables_have_statistics(version):
    views = [part for part in render_script(version).split("UNION ALL") if "'lsn.position'" not in part]
    assert len(views) == len(choose_views(version)) - 1
    assert all("FROM pg_stat_" in view for view in views)
    assert all(("pg_relation_size" in view) == (version < 150000) for view in views)


@dataclass
class FakeSql:
    host: str = "here"
    scripts: list = field(default_factory=list)

    def watch(self, _address, script, *, folder, name):
        self.scripts.append((f"{folder}/{name}", script))
        return SimpleNamespace(pid=5)


def subject(*, turns):
    server = SimpleNamespace(build=SimpleNamespace(version=SimpleNamespace(number=180006)), address="there")
    return CaptureSubject(host=None, sql=None, server=server, turns=turns)


def test_a_run_that_is_alone_is_watched_each_second():
    sql = FakeSql()
    sampling = CountersSampler().start(replace(subject(turns=False), sql=sql), "/x")
    assert (sampling.output, sampling.errors, sampling.host) == ("/x/pgstat.samples", "/x/pgstat.samples.err", "here")
    ((name, script),) = sql.scripts
    assert name == sampling.output
    assert script.endswith("EXECUTE sample \\watch 1\n")


def test_nothing_is_started_in_slices():
    sql = FakeSql()
    assert CountersSampler().start(replace(subject(turns=True), sql=sql), "/x") is None
    assert sql.scripts == []


def test_a_window_of_which_little_was_seen_is_told():
    samples = "".join(sample(at, lsn__position=at) for at in range(3)).encode()
    found = CountersSampler().parse({"pgstat.samples": samples}, replace(WINDOW, seconds=6.0))
    assert [remark.code for remark in found.remarks] == ["samples_missing"]
    assert not CountersSampler().parse({"pgstat.samples": samples}, replace(WINDOW, seconds=3.0)).remarks
