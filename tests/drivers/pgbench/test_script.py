import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.drivers.pgbench.script import parse_statements, parse_values


def texts(script):
    return [statement.with_parameters for statement in parse_statements(script, {})]


def test_statements_end_at_semicolons_and_meta_commands():
    script = "\\set a 1\nSELECT 1 AS x \\gset\nSELECT 2;SELECT 3 \\; SELECT 4;\n\\if :a\nSELECT 5"
    assert texts(script) == ["SELECT 1 AS x", "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 5"]


def test_a_meta_command_goes_on_behind_a_backslash_at_the_end_of_its_line():
    assert texts("\\set a 1 + \\\n  2; \nSELECT 1;") == ["SELECT 1"]


@pytest.mark.parametrize(
    "quoted", ["'it''s; '", "E'\\'; '", "$$ ; $$", "$x$ ; $$ ; $x$", '"a;""b"', "(1; 2)", "'\\'", "'a\\b'"]
)
def test_what_stands_in_quotes_and_brackets_is_no_end(quoted):
    assert texts(f"SELECT {quoted} ; SELECT 2;") == [f"SELECT {quoted}", "SELECT 2"]


def test_comments_are_left_out_nested_ones_as_well():
    assert texts("/* a; /* b; */ c; */ SELECT 1 -- ; x\n+ 2;\n-- \\set x\nSELECT '--';") == [
        "SELECT 1 + 2",
        "SELECT '--'",
    ]


def test_each_place_of_a_variable_is_a_parameter_and_casts_are_none():
    assert texts("UPDATE t SET a = :x::int WHERE a = :x AND b[1:2] = ':x' AND c = :_y1;") == [
        "UPDATE t SET a = $1::int WHERE a = $2 AND b[1:2] = ':x' AND c = $3"
    ]


def test_values_are_constants_or_the_least_of_a_random_number():
    script = "\\set a 5\n\\set b random(10, 20)\n\\set c :a + 1\n\\set d random_zipfian(-3, 100, 1.1)\nSELECT :a, :b, 1 -:d, :c, :o;"
    values = parse_values(script)
    assert values == {"a": "5", "b": "10", "c": "1", "d": "-3"}
    (statement,) = parse_statements(script, {"o": "it's"})
    assert statement.parameters == 5
    assert statement.with_values == "SELECT 5, 10, 1 -(-3), 1, 'it''s'"


def test_the_first_word_says_what_a_statement_is():
    script = "select 1; :a; (SELECT 2); With x AS (SELECT 1) SELECT 1;"
    assert [one.keyword for one in parse_statements(script, {})] == ["SELECT", "", "", "WITH"]


@given(st.text(alphabet="aE1:;'\"$\\/*-() \n", max_size=60))
def test_no_script_is_too_odd_to_be_cut(script):
    for statement in parse_statements(script, {}):
        assert statement.with_parameters.strip()
        assert statement.with_values.strip()
    parse_values(script)
