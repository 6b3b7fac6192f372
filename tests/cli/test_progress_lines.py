"""Lines of progress: where there are lines, how long they are, and what is wrong with runs is told in full once."""

import io
import sys

import pytest

from pgstrata.cli.progress import JsonSink, PlainSink, TerminalSink, _wrapped, choose_sink
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.events import Event, EventKind


def lines(*texts, status=RunStatus.COMPLETED):
    out = io.StringIO()
    sink = PlainSink(out)
    for number, text in enumerate(texts, start=1):
        sink.emit(
            Event(
                kind=EventKind.RUN_FINISHED,
                run=f"b{number}",
                done=number,
                total=len(texts),
                value=1000.0,
                status=status,
                validity=Validity.SUSPECT if text else Validity.VALID,
                text=text,
            )
        )
    return [line.partition("tps")[2].strip() for line in out.getvalue().splitlines()]


def test_a_doubt_is_told_in_full_once_whatever_its_figures_are():
    assert lines("1.76 CPUs were busy elsewhere", "1.40 CPUs were busy elsewhere", "", "another, 3 times") == [
        "suspect: 1.76 CPUs were busy elsewhere",
        "suspect: as before",
        "",
        "suspect: another, 3 times",
    ]


def test_failures_are_told_each_time():
    told = lines("the server died", "the server died", status=RunStatus.FAILED)
    assert told == ["failed: the server died"] * 2


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "sink"),
    [
        ({"TERM": "xterm"}, TerminalSink),
        ({"TERM": "dumb"}, PlainSink),
        ({}, PlainSink),
        ({"TERM": "xterm", "CI": "true"}, PlainSink),
    ],
)
def test_a_screen_is_drawn_only_on_a_terminal_that_can_show_it_and_not_in_ci(monkeypatch, environ, sink):
    for name in ("TERM", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert type(choose_sink(events=False)) is sink
    assert type(choose_sink(events=True)) is JsonSink
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert type(choose_sink(events=False)) is PlainSink


def test_sentences_fit_the_terminal_and_are_never_too_long_to_read(monkeypatch):
    text = "18 is slower than 16 on simple-update: -4.5 % " * 10
    for columns, longest in (("40", 40), ("300", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert longest - 20 < max(map(len, _wrapped(text, Terminal()).splitlines())) <= longest
        assert 80 < max(map(len, _wrapped(text, io.StringIO()).splitlines())) <= 100
