"""Every text that a user can meet is in one list, which is fresh, and no sentence in it is too long."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@cache
def load_script():
    spec = importlib.util.spec_from_file_location("scripts_messages", ROOT / "scripts/messages.py")
    module = importlib.util.module_from_spec(spec)
    # where its dataclasses look for the names of their types
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def lines(source):
    return [line for message in load_script().find_messages(source) for line in message.lines]


def test_the_list_of_messages_is_fresh():
    kept = (ROOT / "docs/reference/messages.md").read_text()
    assert kept == load_script().render_messages(), "run `.venv/bin/python scripts/messages.py`"


def test_no_sentence_of_a_message_has_more_than_thirty_words():
    assert list(load_script().long_sentences()) == []


def test_a_long_sentence_is_found_with_its_file_and_its_number_of_words(tmp_path, monkeypatch):
    script = load_script()
    monkeypatch.setattr(script, "SOURCE", tmp_path)
    words = " ".join(["word"] * 31)
    (tmp_path / "a.py").write_text(f'tell("{words}")\ntell("Two are told. W{words[1:-5]}")\n')
    assert list(script.long_sentences()) == [f"a.py: 31: {words}"]


def test_each_room_and_each_file_has_a_heading():
    page = load_script().render_messages()
    assert "\n## app\n" in page
    assert "\n### app/run.py\n" in page
    assert "  -> give the same command again to go on\n" in page


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            'raise UsageError(f"no {name!r} in {len(rows)} rows", where=path, remedy="name another one")',
            ["error: no '{name}' in {rows} rows", "  -> name another one"],
        ),
        ('_CURE = "take it out"\nraise PgstrataError("bad", remedy=_CURE)', ["error: bad", "  -> take it out"]),
        ('raise WrongValueError("bad value", "write a number")', ["error: bad value", "  -> write a number"]),
        ('findings.add(path, "bad key", "take it out")', ["error: bad key", "  -> take it out"]),
        ('def f():\n    what = f"{n} rows are bad"\n    raise UsageError(what)', ["error: {n} rows are bad"]),
        ("complain(what, remedy=f\"give {'one' if n == 1 else 'two'}\")", ["error: {what}", "  -> give {one|two}"]),
        ('Section("Doubts", ())', ["# Doubts"]),
        ('Column(title="tps", cells=())', ["| tps"]),
        ('emit(Event(text=f"{name} was started " + "once more"))', ["{name} was started once more"]),
        ("say(f\"{count(n, 'run')} were kept in the study\")", ["{number} runs were kept in the study"]),
        ('tell(join("one two three", deep("four five six")))', ["one two three", "four five six"]),
        ('tell("raise max_connections or use fewer clients")', ["raise max_connections or use fewer clients"]),
        ('tell("not seen: GRANT pg_monitor TO the role")', ["not seen: GRANT pg_monitor TO the role"]),
        ('tell("a b c" if x else "d e f")', ["a b c", "d e f"]),
    ],
)
def test_a_text_for_users_is_found(source, found):
    assert lines(source) == found


@pytest.mark.parametrize(
    "source",
    [
        '"""What this module is for."""',
        'def f():\n    """What this function does."""',
        'A = 1\n"""What this name is for."""',
        'run("SELECT one, two, three FROM a table")',
        'ask(sql="take all of them")',
        'Command(argv=("say what is wrong",))',
        'if text == "this is only compared": pass',
        'text.startswith("this is only compared")',
        'Option(help="which is in another reference")',
        'raise AssertionError("this can not happen")',
        'sh("set -e; cd $HOME && do this there")',
        'names("one_name two_name three_name")',
        "_FIELDS: str = 'what it is'\npick_fields(row, _FIELDS)",
        '{"a key of three words": 1}',
        'tell("word")',
    ],
)
def test_what_is_no_text_for_users_is_left_out(source):
    assert lines(source) == []


def test_what_is_said_twice_in_a_file_stands_there_once():
    assert lines('tell("three small words")\ntell("three small words")') == ["three small words"]


@pytest.mark.parametrize(
    ("sentence", "number"), [("one two", 2), ("{a} and {b}", 3), ("{{one|two}|three} words, and -- more", 4)]
)
def test_what_is_filled_in_counts_as_one_word(sentence, number):
    assert load_script().count_words(sentence) == number
