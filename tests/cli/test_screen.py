"""The screen of a running experiment: it fits, says how things stand, and groups what is doubtful."""

import io
from dataclasses import replace

import pytest

from pgstrata.cli.plain import make_plain
from pgstrata.cli.progress import TerminalSink
from pgstrata.cli.screen import Screen, draw_bars, say_standing
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.events import Event, EventKind, Standing
from pgstrata.report.sentences.verdicts import words_of

WORDS = words_of("tps")
OPEN = Standing(environment="18", verdict="inconclusive", blocks=7, effect=0.97, low=0.93, high=1.01)
DECIDED = Standing(environment="17", verdict="worse", blocks=9, effect=0.9, low=0.88, high=0.92, decided_at=9)


def finished(number, text="", status=RunStatus.COMPLETED):
    validity = Validity.SUSPECT if text else Validity.VALID
    return Event(
        kind=EventKind.RUN_FINISHED, run=f"b{number}", done=number, total=40, status=status, validity=validity,
        text=text, value=1000.0, seconds_left=90.0,
    )  # fmt: skip


def screen(*events):
    made = Screen()
    for event in events:
        made.note(event)
    return made


def test_it_says_what_runs_how_far_it_is_and_how_long_it_takes_at_most():
    made = screen(finished(3), Event(kind=EventKind.STEP, run="b02/18/select-only", text="warmup"))
    assert made.lines(80, 24) == ["3 of at most 40 runs · at most 1 min 30 s left", "b02/18/select-only · warmup"]


@pytest.mark.parametrize(
    ("left", "budget", "said"),
    [
        (90.0, None, "at most 1 min 30 s left"),
        (90.0, 300.0, "at most 1 min 30 s left · budget: 5 min left"),
        (90.0, 90.0, "budget: 1 min 30 s left"),
    ],
)
def test_the_budget_stands_beside_the_time_and_alone_where_it_ends_first(left, budget, said):
    event = replace(finished(3), seconds_left=left, budget_left=budget)
    assert screen(event).lines(80, 24)[0] == f"3 of at most 40 runs · {said}"


def test_the_budget_is_known_before_the_first_run_has_ended():
    made = screen(Event(kind=EventKind.STUDY_STARTED, total=40, budget_left=480.0))
    assert made.lines(80, 24)[0] == "0 of at most 40 runs · budget: 8 min left"


def test_throughput_is_drawn_second_by_second_and_begins_anew_with_each_run():
    ticks = [Event(kind=EventKind.PROGRESS, run="b1", text=f"{n} s", value=float(n)) for n in range(1, 9)]
    assert draw_bars(screen(*ticks).rates) == "▁▂▃▄▅▆▇█"
    assert len(screen(*ticks, Event(kind=EventKind.PROGRESS, run="b2", text="1 s", value=5.0)).rates) == 1


def test_in_slices_throughput_is_that_of_the_same_environment_and_cell_in_the_blocks_before():
    runs = [
        replace(finished(n), run=f"b0{n}/{environment}/select-only", value=value)
        for n in (1, 2, 3) for environment, value in (("16", 1000.0 * n), ("18", 500.0))
    ]  # fmt: skip
    failed = replace(finished(4, "the server died", status=RunStatus.FAILED), run="b04/16/select-only")
    made = screen(*runs, failed, Event(kind=EventKind.PROGRESS, run="b05/16/select-only", text="round 2 of 12"))
    assert made.lines(80, 24)[1:] == ["b05/16/select-only · round 2 of 12", "  ▁▅█  3,000 tps in its last block"]
    made.note(Event(kind=EventKind.PROGRESS, run="b05/16/select-only", text="1 s", value=40.0))
    assert made.lines(80, 24)[2] == "  ▁  40 tps"
    made.note(Event(kind=EventKind.STEP, run="b05/16/simple-update", text="clone"))
    assert len(made.lines(80, 24)) == 2


def test_comparisons_stand_with_their_intervals_and_say_when_they_were_decided():
    assert say_standing(OPEN, WORDS) == "  -3.0 % [-7.0, +1.0]  open after 7 blocks"
    assert say_standing(DECIDED, WORDS) == " -10.0 % [-12.0, -8.0]  slower, decided after 9 blocks"
    assert say_standing(Standing(environment="18", verdict="insufficient", blocks=1), WORDS).strip() == "after 1 block"


def test_doubts_of_one_kind_are_one_line_with_their_number():
    made = screen(*(finished(number, f"{number}.5 CPUs were busy elsewhere") for number in range(1, 30)))
    assert made.lines(100, 24)[-1] == "! 29 of 29 runs suspect: 1.5 CPUs were busy elsewhere"


def test_doubts_are_a_share_of_the_runs_of_this_call():
    resumed = Event(kind=EventKind.STUDY_STARTED, done=16, total=40)
    assert screen(resumed, finished(17, "a doubt")).lines(100, 24)[-1] == "! 1 of 1 run suspect: a doubt"


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 6), (20, 5), (200, 60)])
def test_it_fits_however_much_there_is_to_say(columns, rows):
    many = tuple(
        Standing(
            environment=f"an environment with a long name {n}", verdict="worse", blocks=n, effect=0.9, low=0.8, high=1.0
        )
        for n in range(60)
    )
    doubts = [finished(n, f"doubt of kind {chr(97 + n)}") for n in range(9)]
    made = screen(*doubts, Event(kind=EventKind.STANDINGS, standings=many))
    lines = made.lines(columns, rows)
    assert len(lines) <= rows
    assert all(len(line) <= columns for line in lines)


def test_where_not_all_fit_those_that_are_open_are_shown():
    made = screen(Event(kind=EventKind.STANDINGS, standings=(*[DECIDED] * 20, OPEN)))
    assert any(line.startswith("18 ") for line in made.lines(80, 8))


def test_lines_that_a_narrower_terminal_has_wrapped_are_erased_whole(monkeypatch):
    sizes = iter([(80, 24), (30, 24)])
    monkeypatch.setattr("pgstrata.cli.progress._size", lambda _: next(sizes))
    stream = io.StringIO()
    sink = TerminalSink(make_plain(stream))
    sink.emit(finished(1))
    head, doing, _ = stream.getvalue().split("\n")
    assert (30 < len(head.rpartition("\x1b[0J")[2]) <= 60, doing) == (True, "preparing")
    sink.emit(finished(2))
    assert stream.getvalue().count("\x1b[3A") == 1


def test_on_a_terminal_only_what_has_to_stay_scrolls_by():
    stream = io.StringIO()
    sink = TerminalSink(make_plain(stream))
    sink.emit(finished(1))
    sink.emit(finished(2, "the server died", status=RunStatus.FAILED))
    sink.emit(Event(kind=EventKind.NOTE, text="a note"))
    sink.close()
    left = [part.rpartition("\x1b[0J")[2] for part in stream.getvalue().split("\n")]
    assert any("failed: the server died" in line for line in left)
    assert "a note" in left
    assert not any(line.startswith("[1/40]") for line in left)
    assert stream.getvalue().endswith("\x1b[0J")
