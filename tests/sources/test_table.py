"""Tables of other tools' results as text: every way to write one, and every way to write it wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.errors import UsageError
from pgstrata.sources.table import parse_table

HEADER = "block,environment,value\n"


def refusal(text, **more):
    with pytest.raises(UsageError) as caught:
        parse_table(text, "r.csv", **more)
    return str(caught.value)


def test_of_many_names_ten_are_said_and_how_many_more_there_are():
    wide = ",".join(f"c{number}" for number in range(1_000))
    said = refusal(f"{wide}\n")
    assert said.startswith(
        "r.csv:1: the first line names no column environment and no column value\n  | it names 'c0', "
    )
    assert "'c8', 'c9' and 990 more\n" in said
    many = "".join(f"a,m{number},1\n" for number in range(12))
    listed = "m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 more"
    assert refusal(f"environment,metric,value\n{many}").startswith(f"r.csv: the file mixes 12 metrics: {listed}\n")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separator_and_line_ends_are_found_out(separator, end):
    lines = ["block,environment,value", "1,a,10", "1,b,12.5"]
    text = end.join(line.replace(",", separator) for line in lines)
    rows = parse_table(text, "r.csv").observations
    assert [(row.provenance, row.key.label, row.target, row.measurements["value"]) for row in rows] == [
        ("r.csv:2", "1", "a", 10),
        ("r.csv:3", "1", "b", 12.5),
    ]


def test_columns_may_stand_in_any_order_and_spelling_and_others_are_passed_over():
    table = parse_table("Host, Value ,ENVIRONMENT,when\nx,10,a,now\ny,11,b,then\n", "r.csv")
    assert [row.measurements[table.metric] for row in table.observations] == [10, 11]
    assert table.ignored == ("Host", "when")
    assert table.columns == {"value", "environment"}


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    assert parse_table(f"\ufeff{HEADER}1,a,1\n", "r.csv").columns == {"block", "environment", "value"}


def test_quoted_fields_may_hold_separators_line_ends_and_marks():
    text = f'{HEADER}1,"a, the ""first""",10\n1,"b\n  two",20\n2,c,30\n'
    rows = parse_table(text, "r.csv").observations
    assert [row.target for row in rows] == ['a, the "first"', "b two", "c"]
    assert [row.provenance for row in rows] == ["r.csv:2", "r.csv:3", "r.csv:5"]


def test_what_a_terminal_would_obey_is_taken_out_of_names():
    (row,) = parse_table(f"{HEADER}1,\x1b[2Ja,1\n", "r.csv").observations
    assert row.target == "\ufffd[2Ja"


def test_blank_lines_and_lines_of_separators_are_passed_over():
    rows = parse_table(f"\n{HEADER}\n1,a,1\n,,\n  \n1,b,2,,\n", "r.csv").observations
    assert [row.provenance for row in rows] == ["r.csv:4", "r.csv:7"]


@pytest.mark.parametrize("text", ["10", "+10.0", "1e1", ".1e2", "10.", "1E+01"])
def test_numbers_are_read_in_their_usual_forms(text):
    (row,) = parse_table(f"{HEADER}1,a,{text}\n", "r.csv").observations
    assert row.measurements == {"value": 10}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "it is empty\n  -> leave out the whole row"),
        ("NaN", "'NaN' is not a result\n  -> leave out the whole row"),
        ("-inf", "'-inf' is not a result\n  -> leave out"),
        ("N/A", "'N/A' is not a result\n  -> leave out"),
        ("0", "'0' cannot be compared, because differences are ratios\n  -> leave out"),
        ("-0.0", "'-0.0' cannot be compared"),
        ("1e-999", "'1e-999' cannot be compared"),
        ("1e999", "'1e999' is too large\n  -> give it in a larger unit"),
        ("-3", "'-3' is below zero, and differences are ratios\n  -> compare a quantity"),
        ("fast", "'fast' is not a number\n  -> write the number alone"),
        ("12 ms", "'12 ms' is not a number"),
        ("1_000", "'1_000' is not a number"),
        ("0x10", "'0x10' is not a number"),
        ("٣", "'٣' is not a number"),
        ('"1,234.5"', "'1,234.5' has a comma in it\n  -> write a decimal point"),
        ("x" * 90, "x..."),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_line_column_and_remedy(value, said):
    message = refusal(f"{HEADER}1,a,10\n1,b,{value}\n")
    assert message.startswith("r.csv:3: column value: ")
    assert said in message


def test_a_decimal_comma_is_understood_as_such_where_semicolons_separate():
    message = refusal("block;environment;value\n1;a;10,5\n")
    assert (
        message
        == "r.csv:2: column value: '10,5' has a comma in it\n  -> write a decimal point, and nothing between thousands"
    )


@pytest.mark.parametrize("place", [0, 1])
def test_an_empty_name_is_an_error_with_its_line(place):
    fields = ["7", "a", "10"]
    fields[place] = " "
    assert f"r.csv:2: column {HEADER.split(',')[place]}: it is empty" in refusal(HEADER + ",".join(fields) + "\n")


def test_two_rows_of_one_place_are_an_error_with_both_lines():
    message = refusal("cell,block,environment,value\nx,1,a,10\ny,1,a,10\nx,1,a,11\n")
    assert message.startswith("r.csv:4: block 1, environment a, cell x is in line 2 already\n  -> ")
    assert "median" in message


def test_without_blocks_values_of_one_environment_may_repeat():
    assert len(parse_table("environment,value\na,1\na,1\n", "r.csv").observations) == 2


def test_many_bad_rows_are_one_message_with_the_first_few():
    message = refusal(HEADER + "".join(f"{n},a,x\n" for n in range(1000)))
    assert message.startswith("r.csv:2: column value: 'x'")
    assert "  | r.csv:6: column value" in message
    assert "  | and 995 more" in message
    assert len(message.splitlines()) == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "r.csv: the file is empty\n  -> begin with a header: block,environment,value"),
        (" \n\n", "r.csv: the file is empty"),
        (HEADER, "r.csv: there is no row below the header"),
        (
            "1,a,10\n",
            "r.csv:1: the first line names no column environment and no column value\n  | it names '1', 'a', '10'",
        ),
        ("block,value\n1,2\n", "r.csv:1: the first line names no column environment\n"),
        ("environment,value,Value\na,1,2\n", "r.csv:1: the header has two columns value\n  -> rename or remove"),
        (f"{HEADER}1,a\n", "r.csv:2: 2 fields, the header has 3\n  -> complete the row"),
        (f"{HEADER}1,a,10,5\n", "r.csv:2: 4 fields, the header has 3\n  -> put a field"),
        (f'{HEADER}1,"a,10\n1,b,11\n', "r.csv:2: the line cannot be read as a table: "),
        (f'{HEADER}1,"a"b,10\n', "r.csv:2: the line cannot be read as a table: "),
        (f"{HEADER}1,{'a' * 200_000},10\n", "r.csv:2: the line cannot be read as a table: field larger"),
    ],
)
def test_a_text_that_is_no_table_is_told_why(text, said):
    assert said in refusal(text)


# ------------------------------------------------------------------------------------- metrics

MIXED = "environment,metric,value\na,tps,10\na,p99,0.1\nb,tps,12\nb,p99,NaN\n"


def test_two_metrics_without_a_choice_are_an_error_that_names_both():
    assert refusal(MIXED) == "r.csv: the file mixes 2 metrics: tps, p99\n  -> choose one, such as --metric tps"


def test_of_two_metrics_one_is_taken_and_the_other_one_need_not_be_usable():
    table = parse_table(MIXED, "r.csv", metric="tps")
    assert [row.measurements[table.metric] for row in table.observations] == [10, 12]
    assert "r.csv:5: column value: 'NaN'" in refusal(MIXED, metric="p99")


def test_a_metric_that_is_not_there_is_an_error_that_names_those_that_are():
    assert "r.csv: the file has no metric 'qps'\n  -> choose one of tps, p99" in refusal(MIXED, metric="qps")


def test_a_row_without_its_metric_is_an_error():
    assert "r.csv:3: column metric: it is empty" in refusal("environment,metric,value\na,tps,1\nb,,1\n")


def test_a_metric_may_be_given_to_a_table_that_names_none():
    assert parse_table("environment,value\na,1\n", "r.csv", metric="tps").metric == "tps"
    assert parse_table("environment,value\na,1\n", "r.csv").metric == "value"


def read_or_refuse(text):
    """The rows, or the error's remedy: never anything empty, never anything else."""
    try:
        return parse_table(text, "r.csv").observations
    except UsageError as error:
        return error.remedy


@given(st.text(max_size=200))
def test_any_text_is_a_table_or_an_error_with_a_remedy(text):
    assert read_or_refuse(text)


@given(st.lists(st.lists(st.text(alphabet='1,;"\n\t .eé-ab', max_size=6), min_size=3, max_size=3), max_size=5))
def test_any_rows_below_a_header_are_read_or_refused(rows):
    assert read_or_refuse(HEADER + "\n".join(",".join(row) for row in rows))


def test_more_rows_than_are_compared_are_refused_with_the_number():
    assert "there are more than 100,000 rows" in refusal("environment,value\n" + "a,1\n" * 100_001)
