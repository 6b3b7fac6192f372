"""The benchmark of known truth: what it writes down and puts back, and what its evaluation makes of known answers."""

import dataclasses
import importlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from archives import START, Second, behind, make_archive, session
from pgstrata.store.archives.reader import ArchiveReader

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def incidents():
    """The modules of bench/incidents by name; bench is no package, and its folder is on the path only here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield lambda name: importlib.import_module(f"incidents.{name}")


@pytest.fixture
def injection(incidents):
    truth = incidents("truth")

    def make(kind="hot-rows", onset=500.0, end=600.0, slower=3.0, **more):
        effect = truth.Effect(latency_before=0.001, latency=0.001 * slower, rate_before=100.0, rate=100.0)
        kind = truth.Kind(kind)
        statement, application = truth.CONCERNED[kind]
        given = {"statement": statement, "application": application, "how": "", "machine_load": 0.5, "effect": effect}
        return truth.Injection(kind=kind, onset=onset, end=end, **{**given, **more})

    return make


@pytest.fixture
def recording(incidents):
    def make(*injections, begin=0.0, end=1400.0, name="20261128T003000-0001"):
        truth = incidents("truth")
        return truth.Recording(
            name=name, half=truth.half_of(name), begin=begin, end=end, commit="c", machine="m",
            injections=tuple(injections), machine_loads=(0.5,),
        )  # fmt: skip

    return make


# what is written down


def test_the_half_of_a_recording_follows_from_its_name_alone(incidents):
    half_of = incidents("truth").half_of
    names = [f"20261128T{number:06d}-0000" for number in range(400)]
    halves = [half_of(name) for name in names]
    assert halves == [half_of(name) for name in names]
    assert 150 < halves.count("judged") < 250
    assert set(halves) == {"judged", "tuning"}


def test_the_truth_is_read_as_it_was_written(incidents, recording, injection, tmp_path):
    truth = incidents("truth")
    written = recording(injection(), injection("more-demand", effect=None))
    truth.save_truth(written, tmp_path)
    assert truth.load_truth(tmp_path) == written
    assert [path.name for path in tmp_path.iterdir()] == ["truth.json"]


def test_a_cause_is_written_down_before_it_is_injected(incidents, monkeypatch, tmp_path):
    record, truth = incidents("record"), incidents("truth")
    seen = []

    def begin(kind, scene, drawn):
        seen.extend(truth.load_truth(tmp_path).injections)
        yield

    monkeypatch.setattr(record, "begin", begin)
    book = record._Book(tmp_path, record._empty("name"))
    record._inject(None, book, truth.Kind.IDLE_BLOCKER, 0.0, random.Random(1))
    assert [each.kind for each in seen] == ["idle-blocker"]
    assert seen[0].statement == "UPDATE stock"
    assert seen[0].application == "clerk"
    assert seen[0].how
    marked = truth.load_truth(tmp_path).injections[0]
    assert marked.onset >= seen[0].onset


def test_what_clients_did_not_notice_is_no_incident(injection):
    assert injection(slower=1.5).is_incident
    assert not injection(slower=1.05).is_incident
    assert not injection("more-demand", slower=1.5).is_incident
    assert not injection(effect=None).is_incident


def test_a_span_in_which_nothing_ended_is_infinitely_slower(incidents, injection):
    effect = incidents("truth").Effect(latency_before=0.001, latency=0.0, rate_before=100.0, rate=0.0)
    assert effect.slower == np.inf
    assert injection(effect=effect).is_incident


def test_transactions_that_hang_are_noticed_though_those_that_end_are_quick(incidents, injection):
    effect = incidents("truth").Effect(latency_before=0.001, latency=0.001, rate_before=100.0, rate=5.0)
    assert injection(effect=effect).is_incident
    assert not injection("less-demand", effect=effect).is_incident


def test_where_nothing_is_known_of_before_nothing_is_called_an_incident(incidents, injection):
    effect = incidents("truth").Effect(latency_before=0.0, latency=0.001, rate_before=0.0, rate=100.0)
    assert not injection(effect=effect).is_incident


def test_the_effect_is_that_of_the_clients_own_log(incidents):
    load = incidents("load")
    lines = [f"{second} 10 {20_000 if second < 110 else 90_000} 0 0 0" for second in range(100, 120)]
    log = load.read_log("\n".join([*lines, *lines[:5], "119 7"]))
    assert log[100] == (20.0, 0.04)
    assert log[119] == (10.0, 0.09)
    effect = load.effect_of(log, (105.0, 110.0), (110.0, 120.0))
    assert effect.slower == pytest.approx(4.5)
    assert effect.rate == 10.0


def test_kinds_come_equally_often(incidents):
    record, kinds = incidents("record"), list(incidents("truth").Kind)
    have = dict.fromkeys(kinds, 0)
    rng = random.Random(1)
    for _ in range(7):
        for kind in record.choose(have, kinds, 4, rng):
            have[kind] += 1
    assert set(have.values()) == {2}


def test_no_recording_has_a_kind_twice_and_none_is_longer_than_is_said(incidents):
    record, truth = incidents("record"), incidents("truth")
    assert len(record.choose({}, list(truth.Kind)[:3], 4, random.Random(1))) == 3
    times = record.Times()
    quiet, cause, between = times.quiet[1], times.cause[1], times.between[1]
    assert times.longest(2) > quiet + cause + 3 * cause + between + times.last


# what is put back


def start_sleeper():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


def test_what_a_ledger_names_is_ended_and_removed(incidents, tmp_path):
    ledger = incidents("ledger")
    sleeper, folder, group = start_sleeper(), tmp_path / "server", tmp_path / "group"
    (folder / "data").mkdir(parents=True)
    group.mkdir()
    with ledger.keep_ledger(tmp_path / "work") as kept:
        kept.folder(folder)
        kept.group(group)
        kept.process(sleeper.pid)
        assert kept.is_kept()
    assert sleeper.wait(30) != 0
    assert not folder.exists()
    assert not group.exists()
    assert not kept.file.exists()


def test_a_process_that_only_has_the_same_id_is_left_alone(incidents):
    ledger = incidents("ledger")
    sleeper = start_sleeper()
    try:
        ledger.end_process(sleeper.pid, "another start", 9)
        assert sleeper.poll() is None
        ledger.end_process(sleeper.pid, "", 9)
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


KILLED = """
import subprocess, sys, time
from pathlib import Path
from incidents.ledger import keep_ledger
with keep_ledger(Path(sys.argv[1]) / "recording") as ledger:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ledger.process(child.pid)
    folder = Path(sys.argv[1]) / "server"
    ledger.folder(folder)
    folder.mkdir()
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_recording_left_is_undone_by_the_next_call_but_not_what_another_one_needs(incidents, tmp_path):
    ledger = incidents("ledger")
    environ = {**os.environ, "PYTHONPATH": str(BENCH)}
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as recorder:
        child = int(recorder.stdout.readline())
        assert ledger.sweep(tmp_path) == []
        assert ledger.started_at(child)
        recorder.kill()
    assert ledger.sweep(tmp_path) == [tmp_path / "recording"]
    assert not ledger.started_at(child)
    assert list(tmp_path.iterdir()) == []
    assert ledger.sweep(tmp_path) == []


def test_a_server_that_the_ledger_has_no_line_of_is_ended_with_its_folder(incidents, tmp_path):
    ledger, sleeper, folder = incidents("ledger"), start_sleeper(), tmp_path / "server"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "postmaster.pid").write_text(f"{sleeper.pid}\n{folder}/data\n")
    with ledger.keep_ledger(tmp_path / "work") as kept:
        kept.folder(folder)
    try:
        # only a process that has the folder in its command line is that server
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_broken_last_line_of_a_ledger_does_no_harm(incidents, tmp_path):
    ledger = incidents("ledger").Ledger(tmp_path / "ledger.jsonl")
    ledger.begin()
    with ledger.file.open("a") as out:
        out.write('{"process": 1, "sta')
    assert len(ledger.lines()) == 1
    ledger.undo()
    assert not ledger.file.exists()


class FakeSite:
    """Keeps what it was asked; plans are the same, whatever is asked."""

    def __init__(self, plan="tickets_opened"):
        self.plan, self.asked = plan, []

    def ask(self, script):
        if script.startswith("EXPLAIN"):
            return self.plan
        self.asked.append(script)
        return ""


@pytest.fixture
def scene(incidents, tmp_path):
    limits = incidents("groups").Limits(cpu=tmp_path, io=tmp_path, device="8:0")
    return incidents("injections").Scene(site=FakeSite(), limits=limits)


@pytest.mark.parametrize(
    ("kind", "begins", "ends"),
    [
        ("dropped-index", "DROP INDEX orders_customer", "CREATE INDEX orders_customer ON orders (customer)"),
        ("stale-statistics", "BEGIN; UPDATE tickets SET queue = true_queue % 3; ANALYZE", "VACUUM (ANALYZE) tickets"),
        ("small-cache", "UPDATE working_set SET span = 150000", "UPDATE working_set SET span = 4000"),
    ],
)
def test_what_is_done_to_the_tables_is_put_back_also_after_an_error(incidents, scene, kind, begins, ends):
    injections = incidents("injections")
    course = injections.begin(incidents("truth").Kind(kind), scene, {"span": 150_000})
    assert scene.site.asked == []
    next(course)
    next(course)
    assert len(scene.site.asked) == 1
    assert scene.site.asked[0].startswith(begins)
    with pytest.raises(KeyboardInterrupt):
        course.throw(KeyboardInterrupt())
    assert scene.site.asked[1:] == [ends]


def test_statistics_that_change_no_plan_end_the_recording(incidents, scene):
    injections = incidents("injections")
    same = dataclasses.replace(scene, site=FakeSite(plan="Index Scan using tickets_queue"))
    with pytest.raises(injections.NotInjectedError):
        next(injections.begin(incidents("truth").Kind.STALE_STATISTICS, same, {}))


def test_limits_of_either_version_are_lifted(incidents, scene, tmp_path):
    kind, begin = incidents("truth").Kind.IO_THROTTLE, incidents("injections").begin
    course = begin(kind, scene, {"operations": 15})
    next(course)
    assert (tmp_path / "blkio.throttle.write_iops_device").read_text() == "8:0 15"
    course.close()
    assert (tmp_path / "blkio.throttle.write_iops_device").read_text() == "8:0 0"
    assert (tmp_path / "blkio.throttle.read_iops_device").read_text() == "8:0 0"
    for name in ("io.max", "cpu.max"):
        (tmp_path / name).touch()
    course = begin(kind, scene, {"operations": 15})
    next(course)
    assert (tmp_path / "io.max").read_text() == "8:0 riops=15 wiops=15"
    course.close()
    assert (tmp_path / "io.max").read_text() == "8:0 riops=max wiops=max"
    scene.limits.limit_cpu(5000)
    assert (tmp_path / "cpu.max").read_text() == "5000 100000"
    scene.limits.limit_cpu(None)
    assert (tmp_path / "cpu.max").read_text() == "max 100000"


def test_limits_that_this_machine_does_not_have_are_not_possible(incidents, scene):
    kinds = incidents("truth").Kind
    bare = dataclasses.replace(scene, limits=dataclasses.replace(scene.limits, cpu=None, io=None))
    assert scene.is_possible(kinds.CPU_QUOTA)
    assert scene.is_possible(kinds.IO_THROTTLE)
    assert not bare.is_possible(kinds.CPU_QUOTA)
    assert not bare.is_possible(kinds.IO_THROTTLE)
    assert bare.is_possible(kinds.HOT_ROWS)


# what is made of answers


def found(incidents, begin, end, alarm=None, cause=""):
    return incidents("judging").Found(begin=begin, end=end, alarm=begin if alarm is None else alarm, cause=cause)


def told(incidents, *kinds, outcome="INCIDENT", statements=(), application=""):
    judging = incidents("judging")
    causes = [judging.NamedCause(kind=kind, statements=statements, application=application) for kind in kinds]
    return judging.Told(outcome=outcome, causes=tuple(causes))


def test_every_kind_of_incident_has_a_right_cause_and_a_wait_event_and_no_other_kind(incidents):
    truth, judging, naive = incidents("truth"), incidents("judging"), incidents("naive")
    every = set(truth.Kind) - truth.NO_INCIDENT
    assert set(judging.RIGHT) == every
    assert set(naive.EVENTS_OF) == every
    assert set(truth.CONCERNED) == set(truth.Kind)
    assert set(incidents("injections")._COURSES) == set(truth.Kind)


def test_right_causes_are_kinds_that_the_product_names(incidents):
    causes = pytest.importorskip("pgstrata.model.causes")
    outcomes = {each.name for each in importlib.import_module("pgstrata.model.explanation").Outcome}
    judging = incidents("judging")
    assert {name for names in judging.RIGHT.values() for name in names} <= {each.name for each in causes.CauseKind}
    assert outcomes >= judging.SLOWER


def test_the_first_cause_alone_counts(incidents, injection):
    is_right = incidents("judging").is_right
    assert is_right(injection(), told(incidents, "LOCK_HELD", "CPU"))
    assert not is_right(injection(), told(incidents, "CPU", "LOCK_HELD"))
    assert not is_right(injection(), told(incidents))
    assert is_right(injection("io-throttle"), told(incidents, "SLOW_IO"))
    assert is_right(injection("io-throttle"), told(incidents, "SLOW_WAL"))


def test_of_more_demand_no_incident_is_the_right_answer(incidents, injection):
    is_right = incidents("judging").is_right
    assert is_right(injection("more-demand"), told(incidents, outcome="MORE"))
    assert not is_right(injection("more-demand"), told(incidents, outcome="INCIDENT"))
    assert not is_right(injection("more-demand"), told(incidents, outcome="STALLED"))
    assert not is_right(injection("more-demand"), told(incidents, outcome="error: nothing was recorded"))


def test_the_statement_or_session_concerned_is_looked_for_in_the_first_cause(incidents, injection):
    names = incidents("judging").names_concerned
    assert names(injection(), told(incidents, "LOCK_HELD", application="batch"))
    assert names(injection(), told(incidents, "LOCK_HELD", statements=("update stock\n set pieces = ?",)))
    assert names(injection(), told(incidents, "LOCK_HELD", statements=("select 1",), application="shop")) is False
    assert names(injection("cpu-quota"), told(incidents, "CPU_LIMIT")) is None


def test_a_stretch_belongs_to_an_injection_that_it_overlaps_and_to_what_comes_after(incidents, injection):
    evaluate = incidents("evaluate")
    one = injection(onset=500, end=600)
    assert evaluate.belongs(found(incidents, 520, 580), one)
    assert evaluate.belongs(found(incidents, 650, 700), one)
    assert not evaluate.belongs(found(incidents, 661, 700), one)
    assert not evaluate.belongs(found(incidents, 400, 489), one)
    assert not evaluate.belongs(found(incidents, 400, 520, alarm=420), one)
    both = [found(incidents, 530, 580, alarm=560), found(incidents, 510, 520, alarm=530)]
    assert evaluate.first_of(both, one).alarm == 530
    assert evaluate.first_of([], one) is None


def test_alarms_in_quiet_and_at_changes_of_demand_are_false(incidents, injection, recording):
    evaluate = incidents("evaluate")
    kept = recording(injection(onset=500, end=600), injection("more-demand", onset=800, end=900))
    alarms = [found(incidents, *span) for span in ((450, 460), (505, 590), (810, 890), (1200, 1300))]
    assert [each.begin for each in evaluate.false_alarms(alarms, kept)] == [450, 810, 1200]


def test_quiet_is_what_is_no_incident_nor_just_after_one_nor_the_beginning(incidents, injection, recording):
    evaluate = incidents("evaluate")
    one = injection(onset=500, end=600)
    kept = recording(one, injection(onset=620, end=700), injection("more-demand", onset=900, end=960))
    trial = evaluate.Trial(recording=kept, judged=(), false=(), naive_false=())
    assert trial.quiet == 1400 - evaluate.HISTORY - (700 + evaluate.SETTLE - 490)
    assert evaluate.quiet_seconds(recording(end=1400.0), ()) == 1400 - evaluate.HISTORY


def test_a_span_is_compared_with_quiet_time_alone(incidents, injection, recording):
    before = incidents("evaluate").before
    kept = recording(injection(onset=500, end=600), injection(onset=850, end=900))
    assert before(kept, 0) == (15.0, 500)
    assert before(kept, 1) == (660, 850)


def test_scores_count_what_is_known(incidents, injection, recording):
    evaluate = incidents("evaluate")
    cases = [
        (injection(onset=500, end=600), told(incidents, "LOCK_HELD", application="batch"), (504, 603, 520, "CPU")),
        (injection(onset=900, end=990), told(incidents, "CPU"), (930, 996, 980, "LOCK_HELD")),
        (injection(onset=1200, end=1290, slower=1.0), told(incidents, "CPU", outcome="SAME"), None),
        (injection("daily-shape", onset=1300, end=1390), told(incidents, outcome="MORE"), None),
    ]
    judged = tuple(
        evaluate.Judged(injection=each, told=answer, found=found(incidents, *span) if span else None, naive=None)
        for each, answer, span in cases
    )
    trial = evaluate.Trial(
        recording=recording(*(case[0] for case in cases), end=4000.0), judged=judged,
        false=(found(incidents, 3000, 3010),), naive_false=(),
    )  # fmt: skip
    scores = evaluate.score([trial])
    shares = {name: (getattr(scores, name).right, getattr(scores, name).all) for name in ("soon", "found", "first")}
    assert shares == {"soon": (1, 2), "found": (2, 2), "first": (1, 2)}
    assert (scores.first_unasked.right, scores.first_unasked.all) == (1, 2)
    assert (scores.concerned.right, scores.concerned.all) == (1, 1)
    assert (scores.calm.right, scores.calm.all) == (1, 1)
    assert (scores.delay, scores.onset_error, scores.end_error) == (50, 17, 4.5)
    assert scores.unnoticed == 1
    assert scores.alarms_a_week == pytest.approx(168 * 3600 / trial.quiet)
    assert scores.naive_found.right == 0


def test_the_upper_limit_of_false_alarms_is_that_of_poisson(incidents, recording):
    evaluate = incidents("evaluate")
    quiet = evaluate.Trial(recording=recording(end=3600.0 * 168 + 400), judged=(), false=(), naive_false=())
    assert evaluate.score([quiet]).alarms_at_most == pytest.approx(3.0, rel=0.02)
    assert evaluate.score([quiet]).alarms_a_week == 0


# what is kept of an archive, and the rule of moving medians


def blocked_shop(number):
    """A hundred transactions a second; from 700 s on four sessions wait, and half as many end."""
    waiting = session("update", "Lock/transactionid")
    if number < 700:
        return Second(sessions={session(): 1}, commits=100.0 + number % 7 / 3)
    return Second(sessions={session(): 1, waiting: 4}, commits=50.0, blocked=behind(waiting, sessions=4))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    return make_archive(folder, 820, blocked_shop, texts={"update": "update stock set pieces = ?"})


def test_a_packed_archive_holds_the_same_but_for_rounding(incidents, archive, tmp_path):
    packing = incidents("packing")
    size = packing.pack(archive / "archive.sqlite", tmp_path / "packed.xz")
    assert size < (archive / "archive.sqlite").stat().st_size / 4
    assert [path.name for path in tmp_path.iterdir()] == ["packed.xz"]
    again = packing.unpack(tmp_path / "packed.xz", tmp_path / "again")
    windows = []
    for folder in (archive, again):
        with ArchiveReader.open(folder) as reader:
            facts = reader.facts()
            windows.append(reader.window(facts.span, facts, most=82))
    assert windows[0].sessions == windows[1].sessions
    assert windows[0].blocked == windows[1].blocked
    assert windows[1].rates["commits"] == pytest.approx(windows[0].rates["commits"], rel=2**-16)


def test_rates_are_rounded_to_sixteen_bits(incidents):
    rounded = incidents("packing").rounded
    assert rounded(None) is None
    assert rounded(0.0) == 0.0
    assert rounded(100.0) == 100.0
    assert rounded(1 / 3) != 1 / 3
    assert rounded(-1 / 3) == pytest.approx(-1 / 3, rel=2**-16)


def test_a_recording_is_judged_by_the_product(incidents, archive, injection, recording, tmp_path):
    measure, truth = incidents("measure"), incidents("truth")
    kept = recording(
        injection("idle-blocker", onset=START + 700.0, end=START + 800.0), begin=float(START), end=START + 820.0
    )
    truth.save_truth(kept, tmp_path)
    incidents("packing").pack(archive / "archive.sqlite", tmp_path / truth.ARCHIVE)
    trial = measure.judge(tmp_path, tmp_path / "scratch")
    answer = incidents("judging").tell(
        tmp_path / "scratch", (START + 700.0, START + 800.0), (START + 400.0, START + 700.0)
    )
    assert answer.outcome == "INCIDENT"
    if incidents("judging").explains_causes():
        assert incidents("judging").is_right(kept.injections[0], trial.judged[0].told)
    if incidents("judging").finds_incidents():
        assert 0 < trial.judged[0].delay <= 60
        assert trial.false == ()
    names = [figure.name for figure in measure.figures_of("judged", [trial])]
    assert names[0] == "incidents, judged: number"
    assert names[-1] == "incidents, judged: moving medians find"


@pytest.fixture
def changed(incidents, recording, archive, tmp_path):
    """Makes a recording whose archive was changed by a statement before it was packed."""

    def make(statement):
        truth, packing = incidents("truth"), incidents("packing")
        copy, folder = tmp_path / "archive.sqlite", tmp_path / "recording"
        folder.mkdir()
        shutil.copy(archive / "archive.sqlite", copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute(statement)
        truth.save_truth(recording(begin=float(START), end=START + 820.0), folder)
        packing.pack(copy, folder / truth.ARCHIVE)
        return folder

    return make


def test_a_recording_outlives_columns_that_came_later(incidents, changed, tmp_path):
    packing, truth = incidents("packing"), incidents("truth")
    folder = changed("ALTER TABLE event DROP COLUMN times")
    with ArchiveReader.open(packing.unpack(folder / truth.ARCHIVE, tmp_path / "again")) as reader:
        facts = reader.facts()
        events = reader.window(facts.span, facts).events
    assert [each.times for each in events] == [1] * len(events)
    assert events


def test_a_rate_that_came_later_is_not_known_in_a_recording(incidents, changed, tmp_path):
    packing, truth = incidents("packing"), incidents("truth")
    folder = changed("ALTER TABLE server_second DROP COLUMN rollbacks")
    with ArchiveReader.open(packing.unpack(folder / truth.ARCHIVE, tmp_path / "again")) as reader:
        facts = reader.facts()
        rates = reader.window(facts.span, facts).rates
    assert "rollbacks" not in rates
    assert "commits" in rates


def test_a_recording_without_a_column_that_is_needed_is_told_and_left_out(incidents, changed, capsys):
    folder = changed("ALTER TABLE look_second DROP COLUMN load")
    assert list(incidents("measure").judge_all([folder])) == []
    assert "recording is left out: the recording has no column load in look_second" in capsys.readouterr().out


def test_moving_medians_are_those_of_the_last_values(incidents):
    found = incidents("naive").moving_median(np.array([1.0, 9.0, 2.0, 3.0, 100.0]), 3)
    assert found.tolist() == [1.0, 5.0, 2.0, 3.0, 3.0]


def test_the_naive_rule_finds_a_long_fall_and_names_the_wait_that_rose(incidents):
    naive = incidents("naive")
    rng = np.random.default_rng(1)
    speed = rng.normal(100, 1, 2400)
    speed[1400:] -= 40
    waits = {"": np.ones(2400), "Lock/tuple": np.where(np.arange(2400) < 1400, 0.0, 5.0)}
    alarms = naive.find_by_medians(speed, waits, begin=1000.0)
    hit = [each for each in alarms if each.end >= 1000 + 1400]
    assert hit
    assert hit[0].cause == "Lock/tuple"
    assert naive.is_right(incidents("truth").Kind.HOT_ROWS, hit[0])
    assert not naive.is_right(incidents("truth").Kind.CPU_QUOTA, hit[0])


def test_the_naive_rule_says_nothing_of_what_never_changes_or_is_too_short(incidents):
    naive = incidents("naive")
    assert naive.find_by_medians(np.full(2000, 100.0), {"": np.ones(2000)}) == []
    assert naive.find_by_medians(np.full(200, 100.0), {"": np.ones(200)}) == ()


def test_recordings_without_their_archive_are_not_whole(incidents, recording, tmp_path):
    truth = incidents("truth")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        truth.save_truth(recording(), tmp_path / name)
    (tmp_path / "two" / truth.ARCHIVE).touch()
    assert truth.load_recordings(tmp_path) == [tmp_path / "two"]


def test_every_kept_recording_is_small_and_of_its_half_and_began_quietly(incidents):
    truth, largest = incidents("truth"), incidents("packing").LARGEST
    for folder in truth.load_recordings():
        kept = truth.load_truth(folder)
        assert kept.name == folder.name
        assert kept.half == truth.half_of(folder.name)
        assert (folder / truth.ARCHIVE).stat().st_size <= largest
        assert kept.injections[0].onset - kept.begin >= 420
        assert all(each.end - each.onset >= 59 for each in kept.injections)
        assert time.time() > kept.end
