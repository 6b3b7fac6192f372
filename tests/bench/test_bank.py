"""The bank of real visits: what its evaluation says of a known truth, and what a kill leaves of its files."""

import dataclasses
import importlib
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pgstrata.compare import compare_study
from pgstrata.errors import UsageError
from pgstrata.ports.events import Event, EventKind
from pgstrata.store.load import load_study

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bank():
    """The modules of bench/bank by name; bench is no package, and its folder is on the path only here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield lambda name: importlib.import_module(f"bank.{name}")


@pytest.fixture
def condition(bank):
    return bank("conditions").Condition(workload="select-only", clients=2, design="paired", side="quiet")


@pytest.fixture
def few(bank):
    return bank("replay").Draws(studies=200, banks=6, studies_of_each=30, limits=60)


def make_visits(bank, kind, count, *, slower=0.0, sd=0.01, seconds=8.0, study="20261124T120000", width=8):
    rng = np.random.default_rng(1)
    rounds = rng.normal(math.log1p(-slower / 100), 2 * sd, (count, width))
    d = rng.normal(math.log1p(-slower / 100), sd, count)
    return [
        bank("visits").Visit(
            kind=kind, study=study, block=number, started="2026-11-24T12:00:00Z", commit="abcdef01", seconds=seconds,
            preparing=12.0 if number == 1 else math.nan, load=2.0, background=0.05, level=90_000.0,
            d=(float(each), -0.01, 0.0, math.nan, 0.02), rounds=tuple(own.tolist()),
        )
        for number, (each, own) in enumerate(zip(d, rounds, strict=True), start=1)
    ]  # fmt: skip


def question(bank, name):
    return next(each for each in bank("conditions").QUESTIONS if each.name == name)


def evaluate(bank, visits, name, minutes, draws):
    replay = bank("replay")
    return replay.evaluate(replay.Sample.of(visits), question(bank, name), minutes, draws)


def test_a_clear_difference_is_found_in_time_and_its_truth_lies_inside(bank, few):
    found = evaluate(bank, make_visits(bank, "5", 150, slower=5), "5 %", 3.0, few)
    assert found.right.value > 97
    assert found.whole.wrong == 0
    assert found.covered.value > 90
    assert found.in_order > 97
    # 12 s around the visits, and at least eight visits of 8 s
    assert (12 + 8 * 8) / 60 <= found.whole.minutes < 2
    assert found.right.low <= found.right.value <= found.right.high


def test_a_right_verdict_that_comes_too_late_is_none(bank, few):
    visits = make_visits(bank, "5", 150, slower=5, seconds=60.0)
    late = evaluate(bank, visits, "5 %", 3.0, few)
    assert late.right.value == 0
    assert late.whole.undecided == 100
    assert late.whole.minutes > 8


def test_equals_that_differ_all_the_same_are_wrong_verdicts(bank, few):
    found = evaluate(bank, make_visits(bank, "equal", 150, slower=5), "equal within 2 %", 6.0, few)
    assert found.right.value == 0
    assert found.whole.wrong > 95
    assert found.covered.value < 5


def test_small_differences_in_large_noise_are_not_found(bank, few):
    found = evaluate(bank, make_visits(bank, "1", 150, slower=1, sd=0.15), "1 %", 6.0, few)
    assert found.right.value < 20
    assert found.whole.minutes == math.inf


def test_too_few_visits_say_nothing_of_shares(bank, few):
    assert evaluate(bank, make_visits(bank, "5", 10, slower=5), "5 %", 1.5, few) is None


def test_the_truth_comes_from_visits_that_are_not_in_the_studies(bank, few):
    visits = make_visits(bank, "2", 150, slower=2)
    # every second visit is of a machine on which the difference was another one
    odd = make_visits(bank, "2", 150, slower=9)
    mixed = [odd[place] if place % 2 else visit for place, visit in enumerate(visits)]
    assert evaluate(bank, mixed, "2 %", None, few).covered.value < 5


def test_the_detection_limit_grows_with_the_noise(bank, few):
    replay = bank("replay")
    limits = [
        replay.detection_limit(replay.Sample.of(make_visits(bank, "1", 60, sd=sd)), question(bank, "1 %"), few)
        for sd in (0.01, 0.1)
    ]
    assert 0.4 < limits[0] < 2
    assert 4 < limits[1] < 20


def test_visits_come_back_as_they_were_written(bank, tmp_path):
    visits = bank("visits")
    written = make_visits(bank, "5", 3, slower=5)
    assert visits.keep_visits(tmp_path / "data" / "a.csv", written) == written
    read = visits.load_visits(tmp_path / "data" / "a.csv")
    assert [visit.key for visit in read] == [visit.key for visit in written]
    assert read[0].tps == pytest.approx(written[0].tps, abs=1e-4)
    assert read[0].rounds == pytest.approx(written[0].rounds, abs=1e-3)
    assert read[0].started == written[0].started
    assert read[0].preparing == 12.0
    assert math.isnan(read[1].preparing)
    assert math.isnan(read[0].d[3])


def test_after_a_broken_last_line_only_what_it_lacks_is_written_again(bank, tmp_path):
    visits, file = bank("visits"), tmp_path / "a.csv"
    written = make_visits(bank, "5", 4, slower=5)
    visits.keep_visits(file, written[:3])
    whole = file.read_text()
    file.write_text(whole[:-30])
    assert [visit.block for visit in visits.load_visits(file)] == [1, 2]
    assert [visit.block for visit in visits.keep_visits(file, written)] == [3, 4]
    assert file.read_text().startswith(whole)
    assert [visit.block for visit in visits.load_visits(file)] == [1, 2, 3, 4]


def test_visits_of_two_kinds_and_studies_are_told_apart(bank, tmp_path):
    visits, file = bank("visits"), tmp_path / "a.csv"
    visits.keep_visits(file, make_visits(bank, "5", 2))
    added = [*make_visits(bank, "2", 2), *make_visits(bank, "5", 2, study="20261125T080000")]
    assert visits.keep_visits(file, added) == added


def test_seconds_of_a_killed_call_are_known_but_for_its_first_visit(bank, tmp_path):
    times = tmp_path / "times.jsonl"
    times.write_text(
        '{"block": 1, "ended": 20.0, "load": 1.0}\n{"block": 2, "ended": 28.0, "load": 1.0}\n'
        '{"preparing": 9.0, "ended": 29.0}\n'
        '{"block": 3, "ended": 15.0, "load": 2.0}\n{"block": 4, "ended": 24.0, "load": 2.0}\n{"block": 5, "en'
    )
    found = bank("record").read_times(times)
    assert {block: row["seconds"] for block, row in found.items() if block != 3} == {1: 11.0, 2: 8.0, 4: 9.0}
    assert math.isnan(found[3]["seconds"])
    assert found[1]["preparing"] == 10.0
    assert math.isnan(found[2]["preparing"])
    sample = bank("replay").Sample.of(make_visits(bank, "5", 3, seconds=math.nan))
    assert np.isnan(sample.seconds).all()


def test_a_call_after_a_killed_one_has_seconds_of_its_own(bank, tmp_path):
    record, times = bank("record"), tmp_path / "times.jsonl"
    killed = record.VisitClock(times, lambda: None)
    killed._write(block=1, ended=14.0, load=1.0)
    times.write_text(times.read_text() + '\n{"block": 2, "en')
    again = record.VisitClock(times, lambda: None)
    again._write(block=2, ended=20.0, load=1.0)
    again._write(preparing=9.0, ended=21.0)
    found = record.read_times(times)
    assert found[2] == {"seconds": 11.0, "load": 1.0, "preparing": 10.0}
    assert math.isnan(found[1]["seconds"])


def test_each_visit_is_kept_when_it_has_ended_and_that_is_none_of_its_seconds(bank, monkeypatch, tmp_path):
    record, now, kept = bank("record"), [100.0], []
    monkeypatch.setattr(record.time, "monotonic", lambda: now[0])

    def keep():
        kept.append(now[0])
        now[0] += 1000.0

    clock = record.VisitClock(tmp_path / "times.jsonl", keep)
    for block in (1, 2):
        now[0] += 10.0
        clock.emit(Event(kind=EventKind.STEP, text="measure"))
        clock.emit(Event(kind=EventKind.BLOCK_FINISHED, text=str(block)))
    clock.finish(preparing=4.0)
    assert kept == [110.0, 1120.0]
    assert {block: row["seconds"] for block, row in record.read_times(tmp_path / "times.jsonl").items()} == {
        1: 6.0,
        2: 10.0,
    }


def test_a_kept_visit_gets_the_seconds_that_were_not_known_yet_and_nothing_else(bank, tmp_path):
    visits, file = bank("visits"), tmp_path / "a.csv"
    full = make_visits(bank, "5", 3, slower=5)
    early = [dataclasses.replace(full[0], seconds=math.nan, preparing=math.nan), *full[1:]]
    visits.keep_visits(file, early)
    before = file.read_text().splitlines()
    later = [dataclasses.replace(each, level=1.0) for each in full]
    assert not visits.keep_visits(file, later)
    first = visits.load_visits(file)[0]
    assert (first.seconds, first.preparing, first.level) == (8.0, 12.0, 90_000.0)
    after = file.read_text().splitlines()
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True, True]
    assert not visits.keep_visits(file, early)
    assert file.read_text().splitlines() == after


def two_tasks(bank, condition):
    conditions = bank("conditions")
    return [conditions.Task(condition=condition, kind=kind, visits=12) for kind in ("equal", "5")]


def test_what_has_the_fewest_visits_is_measured_first(bank, condition, monkeypatch, tmp_path):
    record, visits = bank("record"), bank("visits")
    place = record.Bank(folder=tmp_path / "studies", data=tmp_path / "data", commit="abcdef01")
    many, few = two_tasks(bank, condition)
    visits.keep_visits(place.file(many), make_visits(bank, "equal", 7, width=16))
    made = []

    def measure(_, task, seconds):
        if len(made) == 5 or seconds <= 0:
            return False
        made.append(task.kind)
        before = place.have(task)
        visits.keep_visits(place.file(task), make_visits(bank, task.kind, before + 3, width=16))
        return True

    monkeypatch.setattr(record, "_measure_portion", measure)
    record.record(place, [many, few], 60.0)
    # 3, 6 and 9 against 7, then 10 against 9
    assert made == ["5", "5", "5", "equal", "5"]
    assert place.counts([many, few]) == {many: 10, few: 12}


def test_what_brings_no_visit_or_an_error_is_left_out_of_a_call(bank, condition, monkeypatch, tmp_path):
    record = bank("record")
    place = record.Bank(folder=tmp_path / "studies", data=tmp_path / "data", commit="abcdef01")
    tried = []

    def measure(_, task, __):
        tried.append(task.kind)
        if task.kind == "5":
            raise UsageError("no server", where="here", remedy="none")
        return True

    monkeypatch.setattr(record, "_measure_portion", measure)
    record.record(place, two_tasks(bank, condition), 60.0)
    assert sorted(tried) == ["5", "equal"]


def test_a_study_of_another_load_is_not_gone_on_with_and_not_counted(bank, condition, tmp_path):
    record = bank("record")
    place = record.Bank(folder=tmp_path, data=tmp_path / "data", commit="abcdef01")
    task = two_tasks(bank, condition)[1]
    begun = record._current(place, task)
    assert place.studies(task) == [begun]
    assert record._current(place, task) == begun
    file = begun / "experiment.toml"
    file.write_text(file.read_text().replace("extra_work = 300", "extra_work = 20000"))
    assert place.studies(task) == []


def test_the_known_load_of_cells_that_write_depends_on_their_clients(bank):
    conditions = bank("conditions")
    two, four, eight = (
        conditions.Condition(workload="simple-update", clients=clients, design="paired", side="quiet")
        for clients in (2, 4, 8)
    )
    assert "extra_work = 7000" in conditions.other_environment(two, "5")
    assert "extra_work = 3000" in conditions.other_environment(four, "5")
    assert conditions.other_environment(eight, "5") is None
    assert conditions.other_environment(four, "16") is None
    assert "extra_work = 0" in conditions.other_environment(four, "equal")


def test_visits_of_a_load_that_is_no_longer_planned_stand_by_their_true_size(bank, condition, tmp_path):
    place = dataclasses.replace(condition, workload="simple-update", clients=4)
    found = write_bank(bank, place, tmp_path, _26=(15, 26.0))
    ((_, kind, by_design),) = bank("rows").truths(found)
    assert (kind, len(by_design["paired"])) == ("26", 15)
    assert bank("conditions").title_of(kind) == "about 26 % slower"


def write_bank(bank, condition, folder, **counts):
    file = folder / f"{condition.name}.csv"
    for kind, (count, slower, *width) in counts.items():
        made = make_visits(bank, kind.strip("_"), count, slower=slower, width=width[0] if width else 8)
        bank("visits").keep_visits(file, made)
    return bank("rows").load_bank(folder)


def test_rows_with_too_few_visits_are_marked_and_so_is_what_was_not_measured(bank, condition, few, tmp_path):
    found = write_bank(bank, condition, tmp_path, _5=(150, 5.0), _2=(30, 2.0, 16))
    rows = {(row.condition, row.question.name): row for row in bank("rows").rows_of(found, few)}
    assert rows[condition, "5 %"].complete
    assert rows[condition, "5 %"].state == ("ok" if rows[condition, "5 %"].reached else "missed")
    assert rows[condition, "2 %"].state.endswith("not complete: 30 of 38 visits")
    assert rows[condition, "1 %"].state == "not complete: 0 of 38 visits"
    page = tmp_path / "page.md"
    bank("page").write_page(found, list(rows.values()), bank("rows").scatters(found), (), page)
    text = page.read_text()
    assert "| select-only, 2 clients, quiet | 5 % | slices, paired | 150 |" in text
    assert "not complete: 30 of 38 visits" in text
    assert "No visits yet." in text


def test_visits_have_the_rounds_of_the_finest_question_that_they_answer(bank, condition):
    conditions = bank("conditions")
    many = dataclasses.replace(condition, clients=16)
    writing = dataclasses.replace(condition, workload="simple-update")
    rounds = {
        (place.name, kind): conditions.Task(condition=place, kind=kind, visits=1).rounds
        for place, kind in ((condition, "1"), (condition, "5"), (condition, "equal"), (condition, "16"), (many, "1"),
                            (writing, "5"), (dataclasses.replace(condition, design="runs"), "1"))
    }  # fmt: skip
    assert list(rounds.values()) == [16, 8, 16, 8, 8, 16, 0]
    assert {each.name: each.rounds for each in conditions.QUESTIONS if each.kind == "equal"} == {
        "equal within 2 %": 8,
        "equal within 1 %": 16,
    }


def test_a_visit_with_more_rounds_than_asked_for_counts_by_its_first_ones(bank):
    (visit,) = make_visits(bank, "equal", 1, width=16, seconds=14.0)
    first = visit.first(8)
    assert first.rounds == visit.rounds[:8]
    assert first.tps == pytest.approx(float(np.median(visit.rounds[:8])))
    assert (first.seconds, first.d[1:4]) == (10.0, visit.d[1:4])
    assert visit.first(16) is visit
    sample = bank("replay").Sample.of([visit], 8)
    assert (sample.d[0], sample.seconds[0]) == (first.tps, 10.0)


def test_visits_with_too_few_rounds_are_used_only_while_there_are_no_others_and_do_not_count(
    bank, condition, few, tmp_path
):
    found = write_bank(bank, condition, tmp_path, _1=(40, 1.0))
    row = next(each for each in bank("rows").rows_of(found, few) if each.question.name == "1 %" and each.visits)
    assert row.state.endswith("not complete: 0 of 38 visits; 40 visits have fewer than the 16 rounds of a study")
    file = tmp_path / f"{condition.name}.csv"
    longer = make_visits(bank, "1", 20, slower=1.0, width=16, study="20261125T080000")
    bank("visits").keep_visits(file, longer)
    found = bank("rows").load_bank(tmp_path)
    row = next(each for each in bank("rows").rows_of(found, few) if each.question.name == "1 %" and each.visits)
    assert (row.visits, row.fitting) == (20, 20)
    assert row.state.endswith("not complete: 20 of 38 visits")


def test_what_is_asked_of_the_bank_is_checked(bank, monkeypatch):
    for name, value in {"KINDS": "equal,5", "CLIENTS": "2,4", "DESIGNS": "paired", "SIDES": "quiet"}.items():
        monkeypatch.setenv(name, value)
    chosen = bank("measure").chosen_tasks()
    found = {(task.condition.name, task.kind, task.visits) for task in chosen}
    assert ("select-only-2-paired-quiet", "equal", 38) in found
    assert ("simple-update-4-paired-quiet", "5", 150) in found
    assert not any("simple-update" in name and kind == "equal" for name, kind, _ in found)
    monkeypatch.setenv("VISITS", "10")
    assert {task.visits for task in bank("measure").chosen_tasks()} == {10}
    monkeypatch.setenv("KINDS", "equal,3")
    with pytest.raises(SystemExit, match="KINDS: there is no 3"):
        bank("measure").chosen_tasks()


def test_the_same_difference_paired_and_free_stands_in_one_row(bank, condition, few, tmp_path):
    free = dataclasses.replace(condition, design="free")
    write_bank(bank, condition, tmp_path, _5=(30, 5.0))
    found = write_bank(bank, free, tmp_path, _5=(12, 5.0))
    ((place, kind, by_design),) = bank("rows").truths(found)
    assert (place, kind) == (condition, "5")
    assert {name: len(visits) for name, visits in by_design.items()} == {"paired": 30, "free": 12}


def test_visits_are_taken_from_a_study_as_answers_compare_it(bank, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCH.parent / "tests" / "kept")
    kept = importlib.import_module("kept")
    study = kept.unpack("slices", tmp_path)
    assert kept.pgstrata(tmp_path, "reparse", study).returncode == 0
    loaded = load_study(study, series=True)
    visits = bank("record").extract(loaded, "5", "20261122T100000-abcdef01", {1: {"seconds": 9.0, "load": 1.0}})
    assert len(visits) >= 7
    assert visits[0].seconds == 9.0
    assert math.isnan(visits[1].seconds)
    assert {visit.commit for visit in visits} == {"abcdef01"}
    name = next(
        each.name for each in loaded.plan.experiment.environments if each.name != loaded.plan.experiment.baseline
    )
    (headline,) = [
        each for each in compare_study(loaded.plan, loaded.runs)
        if each.environment == name and each.metric == "tps" and each.cell == loaded.plan.experiment.cells[0].identity
    ]  # fmt: skip
    centre = bank("replay").centre_of(np.array([visit.tps for visit in visits]))
    assert math.exp(centre) == pytest.approx(headline.effect, rel=1e-9)


def test_the_parts_of_a_scatter_are_found_again(bank):
    visits = make_visits(bank, "equal", 400, sd=0.02)
    found = bank("components").scatter_of(visits)
    assert found.spread.value == pytest.approx(2.0, rel=0.1)
    assert found.between_rounds == pytest.approx(4.0, rel=0.1)
    assert found.of_rounds == pytest.approx(4.0 * math.sqrt(math.pi / 2 / 8), rel=0.1)
    assert found.lasting.value == pytest.approx(math.sqrt(found.spread.value**2 - found.of_rounds**2), rel=0.01)
    assert found.spread.low < 2.0 < found.spread.high


@pytest.mark.usefixtures("bank")
def test_the_busy_loop_ends_with_a_parent_that_is_killed():
    script = (
        "import os, subprocess, sys, time\n"
        "print(subprocess.Popen([sys.executable, '-c', sys.argv[1], str(os.getpid())]).pid, flush=True)\n"
        "time.sleep(60)"
    )
    argv = [sys.executable, "-c", script, importlib.import_module("loops").LOOP]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    with parent:
        loop = Path("/proc", parent.stdout.readline().strip(), "stat")
        assert loop.exists()
        parent.kill()
    until = time.monotonic() + 30
    while loop.exists() and loop.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.1)


def test_half_an_hour_is_as_the_fitted_model_says(bank):
    long_runs = bank("long_runs")
    runs = long_runs.draw_long_runs(np.random.default_rng(1), long_runs.structure_of("select-only"), 300)
    assert runs.shape == (300, 6)
    shares = [long_runs.right_share(runs, question(bank, name)) for name in ("1 %", "2 %", "5 %")]
    assert shares == sorted(shares)
    assert shares[0] < 20


def test_every_planned_series_is_an_experiment(bank, tmp_path):
    from pgstrata.app.question import load_plan

    tasks = {task.kind: task for task in bank("conditions").planned_tasks()}
    assert tasks.keys() == set(bank("conditions").KINDS)
    for task in tasks.values():
        file = tmp_path / "experiment.toml"
        file.write_text(task.experiment(1))
        plan = load_plan(file, blocks=2)
        assert [each.name for each in plan.experiment.environments] == ["plain", "other"]
        design = plan.design(plan.experiment.cells[0].identity)
        assert design.sliced is (task.condition.design != "runs")
        assert design.rounds == task.rounds


def test_the_recorded_bank_is_small_and_can_be_read(bank):
    files = list((BENCH / "bank" / "data").glob("*.csv"))
    assert files
    assert sum(file.stat().st_size for file in files) < 1_000_000
    for visits in bank("rows").load_bank(BENCH / "bank" / "data").values():
        assert all(math.isfinite(visit.tps) for own in visits.values() for visit in own)


def test_a_whole_study_comes_back_as_it_was_written(bank, condition, tmp_path):
    studies, file = bank("studies"), tmp_path / "studies.csv"
    made = [
        studies.LiveStudy(condition=condition, question="5 %", started="2026-11-24T12:00:00Z", commit="abcdef01",
                          verdict=verdict, blocks=9, seconds=75.5, known=known)
        for verdict, known in (("worse", studies.Known(change=-4.6, low=-6.0, high=-3.0)), ("inconclusive", None))
    ]  # fmt: skip
    for study in made:
        studies._append(file, study)
    file.write_text(file.read_text() + "select-only-2-pa")
    assert studies.load_studies(file) == made
