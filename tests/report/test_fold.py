from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.report.answer.experiment_text import fold_experiment

_EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("width", [40, 74])
def test_a_folded_experiment_means_the_same(path, width):
    text = path.read_text()
    lines, is_cut = fold_experiment(text, width)
    assert max(map(len, lines)) <= width
    assert is_cut or tomllib.loads("\n".join(lines)) == tomllib.loads(text)


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
def test_no_example_has_to_be_cut(path):
    assert not fold_experiment(path.read_text(), 74)[1]


def test_short_lines_are_kept_letter_by_letter():
    text = "a = 1  # why\n\n[b]\nc   = 'x'"
    assert fold_experiment(text, 20) == (text.split("\n"), False)


def test_comments_are_wrapped_as_comments():
    assert fold_experiment("  # one two three four", 14)[0] == ["  # one two", "  # three four"]


def test_a_remark_behind_a_value_moves_above_it_where_the_line_is_too_long():
    assert fold_experiment("seed = 18  # any number will do", 20)[0] == ["# any number will do", "seed = 18"]


def test_a_comment_sign_within_a_string_of_several_lines_is_no_comment():
    text = 'a = """\n# one two three four five six\n"""'
    lines, is_cut = fold_experiment(text, 20)
    assert is_cut
    assert "".join(line.removesuffix(" \\") for line in lines) == text.replace("\n", "")


@given(st.text(), st.integers(20, 80))
def test_any_text_is_brought_within_the_width(text, width):
    lines, _ = fold_experiment(text, width)
    assert all(len(line) <= width for line in lines)
