import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.diagnosis.query_text import LONGEST, hash_query, hide_constants, normalise, read_masked

SECRET = "hunter2"
QUOTED = (
    f"'{SECRET}'", f"'it''s {SECRET}'", f"E'it\\'s {SECRET}'", f"e'\\\\{SECRET}'", f"'c:\\' || '{SECRET}'", f"U&'{SECRET}'",
    f"u&'\\0061{SECRET}' UESCAPE '!'", f"N'{SECRET}'", f"$${SECRET}$$", f"$$a $ {SECRET}$$", f"$a1${SECRET}$a1$",
    f"$ä${SECRET}$ä$", f"-- {SECRET}\n", f"/* {SECRET} */", f"/* a /* b */ {SECRET} */", f"/* ' */ '{SECRET}'",
    f"-- it's\n'{SECRET}'", f"\"it's\" || '{SECRET}'", f"\"--\" || '{SECRET}'", f"'--' || '{SECRET}'", f"'a'\n'{SECRET}'",
)  # fmt: skip
NUMBERS = ("70707", "-70707", "7.0707", ".70707", "7e-0707", "0x70707", "70_707", "B'0111'", "X'70707'", "70707.")


@pytest.mark.parametrize("constant", [*QUOTED, *NUMBERS])
def test_no_constant_is_left_however_it_is_quoted(constant):
    found = normalise(f"SELECT a1, {constant} FROM t2 WHERE b = {constant}")
    assert SECRET not in found
    assert "707" not in found
    assert found.startswith("select a1,")


@pytest.mark.parametrize("constant", [*QUOTED, *NUMBERS])
def test_hiding_leaves_no_constant_and_all_else_as_it_is(constant):
    found = hide_constants(f'SELECT "A 1", t2.b, $1 FROM t2  WHERE c = :c AND b = {constant}')
    assert SECRET not in found
    assert "707" not in found
    assert "0111" not in found
    assert found.startswith('SELECT "A 1", t2.b, $1 FROM t2  WHERE c = :c AND b = ')


def test_hiding_keeps_numbers_that_it_is_told_of_but_not_within_constants():
    assert hide_constants("(cost=1) SubPlan 1, 'SubPlan 1'", r"\(cost=\d\) | SubPlan\ \d") == "(cost=1) SubPlan 1, ?"


@given(st.lists(st.sampled_from([*QUOTED, "a", " ", "\n", "||", "t1.c2", '"x"', "(", ")"]), max_size=8), st.data())
def test_no_constant_is_left_in_a_text_that_was_cut(parts, data):
    text = " ".join(parts)
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert SECRET not in normalise(cut)


@given(st.text())
def test_normalising_twice_is_normalising_once_and_gives_one_line(text):
    found = normalise(text)
    assert normalise(found) == found
    assert len(found) <= LONGEST
    assert found == "" or found.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE pgbench_accounts SET abalance = abalance + -4211 WHERE aid = 17;",
        "UPDATE pgbench_accounts SET abalance = abalance + 4211 WHERE aid = 9;",
        "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;",
        "update pgbench_accounts\n\tset abalance = abalance + $1 where aid = $2",
        "/* app */ UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ? -- now",
    ],
)
def test_texts_of_all_protocols_and_of_the_server_are_one(text):
    assert normalise(text) == "update pgbench_accounts set abalance = abalance + ? where aid = ?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a - 5, -5, (-5), a-$1 FROM t WHERE b = - 5", "select a - ?, ?, (?), a-? from t where b = ?"),
        ("SELECT x IN (1, 2,3), y in ($1 /*, ... */), z = ANY(ARRAY[1,2])", "select x in (?), y in (?), z = any(array[?])"),
        ('SELECT "Größe", Tab_1.c2, f3(x) FROM "it\'s" WHERE date \'2020-01-01\' < d',
         'select "Größe", tab_1.c2, f3(x) from "it\'s" where date ? < d'),
        ("SELECT 'a'\n 'b'", "select ?"),
        ("INSERT INTO t VALUES (1, 'x'), (2, 'y')", "insert into t values (?, ?), (?, ?)"),
        ("SELECT\x01\x7f<b>&amp;</b>\\\ufffd", "select <b>&amp;</b>\\\ufffd"),
        ("", ""),
        (";", ""),
    ],
)  # fmt: skip
def test_what_means_the_same_becomes_the_same(text, expected):
    assert normalise(text) == expected


def test_the_marks_of_the_server_are_taken_away():
    assert read_masked('SELECT "a""b"?, ? /*?, "open') == 'SELECT "a""b", ?  , "open'
    assert normalise(read_masked('SELECT "a"? -? FROM t --?')) == 'select "a" -? from t'


def test_a_hash_stands_for_a_text():
    assert len(hash_query("select ?")) == 13
    assert hash_query("select ?") != hash_query("select a")
    assert hash_query("") == ""
