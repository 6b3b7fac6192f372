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


def test_only_styles_of_its_own_output_pass_and_no_text_is_hidden_or_turned_round():
    assert printed("\x1b[8mhidden\x1b[1;8m\x1b[30;40m\x1b[38;5;0m\x1b[5m") == "?[8mhidden?[1;8m?[30;40m?[38;5;0m?[5m"
    assert printed("\u200e\u200f\u061c\u202e\u2067") == "?????"
    assert printed("a\udcffb") == "a?b"


def test_what_the_encoding_of_a_terminal_lacks_becomes_a_question_mark():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    print("±3 % ▁", file=make_plain(stream), end="", flush=True)
    assert stream.buffer.getvalue() == "±3 % ?".encode("latin-1")


def test_lines_are_written_as_plainly():
    stream = io.StringIO()
    make_plain(stream).writelines(["a\x1b]0;t\x07\n", "b\n"])
    assert stream.getvalue() == "a?]0;t?\nb\n"


def test_a_traceback_cannot_control_the_terminal(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import pgstrata.app.question as q\n"
        "def load_plan(*a, **k):\n    raise RuntimeError('\\x1b]0;title\\x07')\nq.load_plan = load_plan\n"
    )
    done = program.pgstrata(tmp_path, "plan", "e.toml", environ={"PYTHONPATH": str(tmp_path)}, timeout=60)
    assert "RuntimeError: ?]0;title?" in done.stderr
    assert "\x1b" not in done.stderr


def test_the_screen_is_drawn_anew_all_the_same():
    stream = io.StringIO()
    sink = TerminalSink(make_plain(stream))
    sink.emit(Event(kind=EventKind.WARNING, text="the disk\r\x1b[2Kis quiet"))
    sink.close()
    assert stream.getvalue().startswith("\r\x1b[0J")
    # once before the lines, and to go up and erase at the end
    assert stream.getvalue().count("\x1b") == 3
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
