"""Lines of progress: what is wrong with runs is told in full once."""

import io

from pgstrata.cli.progress import PlainSink
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
