"""Nothing that is printed gives the terminal an order."""

from __future__ import annotations

import io

import pytest

import program
from pgstrata.cli.plain import make_plain
from pgstrata.cli.progress import TerminalSink
from pgstrata.ports.events import Event, EventKind

PLAN = '[factors]\nserver = ["16", "18"]\n[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
ESCAPES = "\x1b]0;title\x07 \x1b[2J \x9b31m \x08 \r \u202e"


def printed(text):
    stream = io.StringIO()
    print(text, file=make_plain(stream), end="")
    return stream.getvalue()


def test_colours_tabulators_and_lines_pass_and_orders_do_not():
    assert printed("\x1b[1;31mred\x1b[0m\ta\nb µ") == "\x1b[1;31mred\x1b[0m\ta\nb µ"
    assert printed(ESCAPES) == "?]0;title? ?[2J ?31m ? ? ?"


def test_the_last_line_is_written_anew_all_the_same():
    stream = io.StringIO()
    sink = TerminalSink(make_plain(stream))
    sink.emit(Event(kind=EventKind.WARNING, text="the disk\r\x1b[2Kis quiet"))
    sink.close()
    assert stream.getvalue().startswith("\r\x1b[2K")
    assert stream.getvalue().count("\x1b") == 2
    assert "the disk??[2Kis quiet\n" in stream.getvalue()


@pytest.mark.parametrize("real", [False, True])
def test_a_file_cannot_speak_to_the_terminal_by_its_question_or_its_keys(tmp_path, real):
    for text in (
        'question = "\\u001B]0;title\\u0007?"\n' + PLAN,
        '"a\\u001B[2Jb" = 1\n',
    ):
        (tmp_path / "e.toml").write_text(text)
        done = program.pgstrata(tmp_path, "plan", "e.toml", **({"timeout": 60} if real else {}))
        said = done.stdout + done.stderr
        assert "?" in said
        assert not set(said) & {"\x1b", "\x07"}, said
