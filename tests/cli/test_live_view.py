"""The live screen of `watch` as lines: they fit terminals of any size, and no text can control these."""

import re
import time
import unicodedata
from functools import cache

import pytest
from rich.cells import cell_len

from archives import BLOCKER, START, behind, counted, session, use
from pgstrata.cli.live_cells import Paint, Piece, fit, render_frame, width_of
from pgstrata.cli.live_chart import draw_bars, draw_clock, draw_stack, scale_of
from pgstrata.cli.live_state import MOST_COLUMNS, STEPS, Column, History, LiveState
from pgstrata.cli.live_view import Choice, draw
from pgstrata.model.archive import REST, ArchiveEvent, Blocking, EventKind, SessionsLook
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import Incident, IncidentKind
from pgstrata.ports.recording import RecordedSecond

SIZES = [
    (40, 10), (41, 11), (59, 13), (60, 16), (80, 24), (109, 20), (110, 30), (120, 12), (160, 45), (200, 60), (300, 100),
]  # fmt: skip
HOSTILE = "\x1b[2J\x1b]0;owned\x07漢字\u202e\x9b31m select\r\n\t'日本語' \U0001f600 \ud800"
LOCKED = session("update", "Lock/transactionid")
SEQUENCE = re.compile(r"\x1b\[(?:2J|H|K|(?:\d+;)*\d+m)")


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def plain_text(line):
    """A line without its paints."""
    return "".join(piece.text for piece in line)


def second(number, counts, blocked=None, commits=100.0, uses=None):
    return RecordedSecond(
        moment=START + number,
        look=None if counts is None else SessionsLook(counts=counts, blocked=blocked or {}),
        server={} if counts is None else {"commits": commits},
        counted=counted(uses) if uses else None,
    )


def recorded(seconds=30, counts=None, **more):
    state = LiveState(archive="shop-archive")
    state.begin({"server_version": "18.1 (Debian)"}, ())
    for number in range(seconds):
        state.follow(second(number, {session(): 2} if counts is None else counts, **more))
    return state


@cache
def hostile():
    """Texts that would like to control the terminal; not to be changed."""
    waits = (
        "",
        "IO/DataFileRead",
        "LWLock/WALWrite",
        "Lock/transactionid",
        "IPC/X",
        "Client/ClientRead",
        f"{HOSTILE}/x",
    )
    counts = {session(f"{HOSTILE}{n}", wait, application=HOSTILE): n + 1 for n, wait in enumerate(waits)}
    root = session(HOSTILE, "Client/ClientRead", application=HOSTILE, kind=HOSTILE)
    blocked = {Blocking(waiting=LOCKED, root=root, pid=n, held=10**n): 1000 * n for n in range(1, 9)}
    state = LiveState(archive=HOSTILE)
    state.begin({"server_version": HOSTILE}, ())
    state.learn({f"{HOSTILE}{n}": HOSTILE * 50 for n in range(7)})
    for number in range(400):
        state.follow(second(number, counts, blocked, commits=1e9, uses={f"{HOSTILE}1": use(1e12, 1e9)}))
    state.note(ArchiveEvent(moment=START, kind=EventKind.LOST, detail=HOSTILE))
    state.alarm(incident())
    return state


def incident(kind=IncidentKind.SLOWER):
    return Incident(
        kind=kind, begin=START, begin_interval=ValueInterval(low=START - 5, high=START + 5), found=START + 20, factor=3.16,
        peak=5.0, throughput=40.0, usual_throughput=120.0, load=9.5, usual_load=2.0,
    )  # fmt: skip


def shown(state, columns=80, rows=24, choice=None):
    return [plain_text(line) for line in draw(state, choice or Choice(), columns, rows)]


def text_of(state, columns=80, rows=24, choice=None):
    return "\n".join(shown(state, columns, rows, choice))


# ------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("make", [hostile, recorded, lambda: LiveState(archive="a"), lambda: recorded(0)])
@pytest.mark.parametrize("size", SIZES)
def test_lines_fill_the_rows_and_never_pass_the_columns(size, make):
    state = make()
    for step in STEPS:
        lines = draw(state, Choice(step=step), *size)
        assert len(lines) == size[1]
        assert max(map(width_of, lines)) <= size[0]


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (20, 5), (10, 1), (1, 1)])
def test_a_terminal_that_is_too_small_has_one_line(size):
    for state in (hostile(), recorded(), LiveState(archive="a")):
        (line,) = draw(state, Choice(), *size)
        assert width_of(line) <= size[0]
    assert shown(recorded(), 39, 24) == ["connected 100/s load 2.00  q quit"]


def test_wide_characters_take_two_columns():
    assert plain_text(fit((Piece("漢字"), Piece("abc")), 5)) == "漢字a"
    assert plain_text(fit((Piece("漢字"), Piece("abc")), 3)) == "漢 "
    state = recorded()
    state.learn({"select": "select '" + "漢" * 100})
    (row,) = [line for line in shown(state) if "漢" in line]
    assert 79 <= cell_len(row) <= 80
    assert row.endswith("…")


@pytest.mark.parametrize("colour", [True, False])
def test_no_text_of_strangers_can_control_the_terminal(colour):
    for size in SIZES:
        frame = render_frame(draw(hostile(), Choice(), *size), size[0], colour=colour, anew=True)
        rest = SEQUENCE.sub("", frame).replace("\r\n", "")
        assert not [mark for mark in rest if unicodedata.category(mark) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
        frame.encode()


def test_pieces_lose_control_characters_even_where_nobody_has_read_them_before():
    assert plain_text(fit((Piece("a\x1b[2J\n\u202eb\x9b"),), 80)) == "a?[2J??b?"


def test_without_colours_there_are_none():
    frame = render_frame(draw(hostile(), Choice(), 80, 24), 80, colour=False)
    codes = {code for found in re.findall(r"\x1b\[([\d;]+)m", frame) for code in found.split(";")}
    assert codes <= {"0", "1", "2", "7"}
    coloured = render_frame(draw(hostile(), Choice(), 80, 24), 80, colour=True)
    assert "41" in {code for found in re.findall(r"\x1b\[([\d;]+)m", coloured) for code in found.split(";")}


def test_a_full_line_is_not_followed_by_what_would_erase_its_last_character():
    frame = render_frame([(Piece("full"),), (Piece("abc"),)], 4, colour=False)
    assert frame == "\x1b[Hfull\r\nabc\x1b[K"


# ------------------------------------------------------------------------------------------------------- contents


def test_before_anything_was_recorded_it_says_so():
    first, *rest = shown(LiveState(archive="a"))
    assert first.split() == ["PostgreSQL", "a", "0", "looks", "connecting"]
    assert "nobody is blocked" in "\n".join(rest)


def test_the_head_has_the_server_the_archive_since_when_and_how_many_looks():
    assert shown(recorded())[0].split("  ")[:4] == ["PostgreSQL 18.1", "shop-archive", "since 16:20:00", "30 looks"]
    assert shown(recorded())[0].endswith(" connected")


def test_a_lost_connection_is_seen_until_it_is_there_again():
    state = recorded()
    state.note(ArchiveEvent(moment=START + 29, kind=EventKind.LOST, detail="the server is gone"))
    state.follow(second(30, None))
    lines = draw(state, Choice(), 80, 24)
    assert lines[0][-1] == Piece("LOST since 16:20:29", Paint.ALARM)
    assert "connection lost: the server is gone" in plain_text(lines[-1])
    for number in range(31, 45):
        state.follow(second(number, None))
    assert re.search(r"throughput +- ", text_of(state))
    assert re.search(r"load +- ", text_of(state))
    state.begin({"server_version": "18.2"}, ())
    assert shown(state)[0].endswith(" connected")
    assert "PostgreSQL 18.2" in shown(state)[0]


def test_values_are_means_of_ten_seconds():
    state = recorded(20, counts={session(): 4})
    for number in range(20, 25):
        state.follow(second(number, {session(): 1}, commits=300.0))
    text = text_of(state)
    assert re.search(r"throughput +200/s ", text)
    assert re.search(r"load +2\.50 ", text)
    assert re.search(r"time per tx +12\.5 ms ", text)


def test_classes_have_letters_and_their_parts_of_the_load():
    state = recorded(counts={session(): 3, session("select", "IO/WalSync"): 2, session("select", "Odd/Thing"): 1})
    text = text_of(state)
    assert re.search(r"^C CPU and run queue 3\.00 ", text, re.MULTILINE)
    assert re.search(r"^I IO +2\.00 ", text, re.MULTILINE)
    assert re.search(r"^o other waits +1\.00 ", text, re.MULTILINE)
    assert not re.search(r"^L Lock", text, re.MULTILINE)


def test_sessions_that_are_no_load_are_not_counted():
    idle = session("select", "Client/ClientRead", state="idle in transaction")
    state = recorded(counts={session(): 1, idle: 7, session(kind="checkpointer", state=""): 1})
    assert re.search(r"load +1\.00 ", text_of(state))


def test_statements_are_those_of_the_last_minute_with_calls_and_mean():
    state = recorded(61, counts={session("old"): 9})
    state.learn({"update": "update stock set pieces = $1", "old": "select old"})
    for number in range(61, 121):
        uses = {"update": use(5000, 2.5)} if number % 10 == 0 else None
        state.follow(second(number, {LOCKED: 2}, uses=uses))
    row = next(line for line in shown(state, 120) if "update stock" in line)
    assert row.split("  ")[0:2] == ["", "2.00"]
    assert row.split() == [
        "2.00",
        "500",
        "500",
        "µs",
        "Lock/transactionid",
        "update",
        "stock",
        "set",
        "pieces",
        "=",
        "$1",
    ]
    assert "select old" not in text_of(state)


def test_a_statement_that_was_not_counted_has_no_calls():
    state = recorded()
    state.learn({"select": "select 1"})
    assert any(line.split() == ["2.00", "select", "1"] for line in shown(state))


def test_statements_that_no_look_has_seen_follow_with_what_was_counted():
    state = recorded(10)
    state.learn({"often": "select often", "seldom": "select seldom", "select": "select 1"})
    state.follow(
        second(10, {session(): 2}, uses={"seldom": use(1, 0.0001), "often": use(900, 0.01), REST: use(9, 9.0)})
    )
    rows = shown(state, 120)[-12:]
    found = [line.split() for line in rows if "select" in line]
    assert found == [
        ["2.00", "CPU", "and", "run", "queue", "select", "1"],
        ["0.00", "90", "11.1", "µs", "select", "often"],
        ["0.00", "0.1", "100", "µs", "select", "seldom"],
    ]


def test_blockers_are_those_of_the_last_look():
    blocked = {**behind(LOCKED, sessions=3), **behind(session("select", "Lock/tuple"), held=45, sessions=2)}
    state = recorded(counts={LOCKED: 5, BLOCKER: 1}, blocked=blocked)
    title, row, rest, _ = shown(state, 100)[-4:]
    assert not rest
    assert "(5 sessions blocked)" in title
    assert row.split()[:5] == ["5", "45", "s", "process", "4711:"]
    assert "application admin idle in its transaction" in row
    state.follow(second(30, {session(): 1}))
    assert "nobody is blocked" in text_of(state)


def test_small_terminals_still_say_who_blocks():
    state = recorded(counts={LOCKED: 5}, blocked=behind(LOCKED, sessions=5))
    assert "5 sessions blocked by 4711" in text_of(state, 40, 10)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (IncidentKind.SLOWER, "SLOWER since 16:20:00: 3.16 times the usual time; 40/s, usually 120/s; load 9.50,"),
        (IncidentKind.STALLED, "STALLED since 16:20:00: no transaction is committed; load 9.50, usually 2.00"),
    ],
)
def test_an_incident_has_a_line_while_it_lasts(kind, said):
    state = recorded()
    state.alarm(incident(kind))
    (piece,) = draw(state, Choice(), 100, 24)[1]
    assert piece.paint is Paint.ALARM
    assert piece.text.startswith(said)
    state.alarm(None)
    assert said not in text_of(state)


def test_the_last_message_stays_and_evicted_statements_do_not_replace_it():
    state = recorded()
    state.tell(START, "the archive has reached its size limit")
    state.note(ArchiveEvent(moment=START + 1, kind=EventKind.EVICTED))
    assert "16:20:00 the archive has reached" in shown(state)[-1]
    state.note(ArchiveEvent(moment=START + 2, kind=EventKind.RESET, detail="pg_stat_database"))
    assert "16:20:02 statistics reset: pg_stat_database" in shown(state, 120)[-1]
    state.note(ArchiveEvent(moment=START + 3, kind=EventKind.DEADLOCK, times=3))
    assert "16:20:03 deadlock (3 times)" in shown(state, 120)[-1]


def test_keys_choose_the_seconds_of_a_column_and_stop_the_screen():
    steps, choice = [], Choice()
    for _ in STEPS:
        steps.append(choice.step)
        choice = choice.zoomed
    assert steps == list(STEPS)
    assert choice.step == STEPS[0]
    assert shown(recorded(), choice=Choice().turned)[-1].startswith("PAUSED")
    assert not Choice().turned.turned.paused
    assert "(15 s)" in shown(recorded(), choice=Choice(step=15))[-1]


# ------------------------------------------------------------------------------------------------------- charts


def columns(*loads):
    """A column for each mapping of wait types to sessions, None where nobody looked."""
    found = []
    for number, load in enumerate(loads):
        column = Column(start=START + number, looks=0 if load is None else 1)
        column.sessions.update(load or {})
        found.append(column)
    return found


def test_classes_are_stacked_by_their_share_of_the_height():
    top, lines = draw_stack(columns({"": 2, "Lock": 2}, {"": 1}, None, {}, {"": 0.4}), 4)
    assert top == 4
    assert [plain_text(line) for line in lines] == ["L    ", "L    ", "C    ", "CC· ▃"]


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (0.5, 1), (1, 1), (1.1, 1.2), (7, 8), (11, 12), (99, 100), (101, 120)]
)
def test_scales_end_at_round_numbers(most, top):
    assert scale_of(most) == top


def test_bars_begin_at_zero_and_nothing_known_is_blank():
    assert draw_bars([0.0, 50.0, float("nan"), 100.0]) == "▁▄ █"
    assert draw_bars([0.0, 0.0]) == "▁▁"
    assert draw_bars([]) == ""


def test_times_stand_below_their_own_columns():
    assert draw_clock(columns(*[{}] * 39), 1) == f"{'╵16:20:00':<15}{'╵16:20:15':<15}╵16:20:30"
    assert draw_clock(columns(*[{}] * 38), 1) == f"{'╵16:20:00':<15}╵16:20:15"


def test_a_history_has_no_holes_and_forgets_what_is_too_old():
    history = History(5)
    for moment in (START, START + 3, START + 27):
        history.reach(moment)
    assert [column.start - START for column in history.columns] == [0, 5, 10, 15, 20, 25]
    assert history.at(START + 14).start == START + 10
    assert history.at(START - 1) is None
    history.reach(START + 10_000_000)
    assert len(history.columns) == MOST_COLUMNS
    assert history.at(START) is None


def test_rates_that_come_seldom_hold_for_the_seconds_before():
    state = LiveState(archive="a")
    for number in range(21):
        told = {"commits": 50.0} if number % 10 == 0 else {}
        state.follow(RecordedSecond(moment=START + number, look=SessionsLook(counts={}, blocked={}), server=told))
    assert [column.throughput for column in state.histories[1].last(20)] == [50.0] * 20


def test_a_clock_that_was_set_back_begins_charts_and_sums_anew():
    state = LiveState(archive="a")
    for number in [*range(3600, 3700), *range(10)]:
        state.follow(second(number, {session("old" if number >= 3600 else "new"): 2}))
    assert [column.start - START for column in state.histories[1].columns] == list(range(10))
    assert state.now.load == 2
    assert [(each.key, each.load) for each in state.statements(5)] == [("new", 2.0)]


def test_what_was_lost_is_no_throughput_afterwards():
    state = recorded(5)
    for number in range(5, 9):
        state.follow(second(number, None))
    state.begin({"server_version": "18.1"}, ())
    state.follow(second(9, {session(): 1}))
    known = [column.seconds for column in state.histories[1].columns]
    assert known == [1] * 5 + [0] * 4 + [1]
