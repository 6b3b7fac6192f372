"""Foreign files that are made to take long, or much memory, are read in linear time and refused where they are too large."""

import time

import pytest

from pgstrata.errors import UsageError
from pgstrata.importers import assemble as assembling
from pgstrata.importers.assemble import ImportQuestion, assemble
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.logs import read_logs
from pgstrata.importers.results import Placed, ReadingTerms, Result, shorten_reason
from pgstrata.model import codec
from pgstrata.sources import table

LONG = 100_000
SECONDS = 5.0
"""What takes quadratic time takes minutes."""


def read(name, text):
    return FORMATS[name].read(text, ReadingTerms())


@pytest.mark.parametrize(
    "text",
    ["1" * LONG, "System achieved 1 NOPM from 1 a " * (LONG // 8), '"' + " " * LONG],
    ids=["digits", "said", "blank"],
)
def test_a_long_line_of_hammerdb_is_read_in_linear_time(text):
    begun = time.process_time()
    assert read("hammerdb", text).unusable
    assert time.process_time() - begun < SECONDS


def test_the_result_of_a_job_with_very_many_sets_is_found_in_its_log_in_linear_time():
    sets = "".join(f"Vuser 1:Completed {each} query set(s) in {each} seconds\n" for each in range(1, LONG // 5))
    end = "ALL VIRTUAL USERS COMPLETE\n"
    begun = time.process_time()
    found = read("hammerdb", f"Vuser 1:query 1 completed in 0.5 seconds\n{sets}{end}{sets}{end}")
    assert time.process_time() - begun < SECONDS
    assert len(found.results) == LONG // 5 - 1


def test_a_script_with_a_long_line_of_blanks_is_read_in_linear_time():
    begun = time.process_time()
    assert read("commits", f"const {' ' * 20 * LONG}x").unusable
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize("field", ["number of transactions actually processed", "number of failed transactions"])
def test_a_count_of_any_length_is_no_traceback(field):
    made = "number of transactions actually processed: 1\n" if "failed" in field else ""
    found = read("pgbench", f"transaction type: x\n{made}{field}: {'9' * 5000}\ntps = 12.5 (including)\n")
    assert found.unusable[0][1].startswith("pgbench's summary has no count where one is expected")
    of_script = read("pgbench", f"SQL script 1: x.sql\n - {'9' * 5000} transactions (1%)\n")
    assert of_script.unusable


def test_a_progress_report_with_a_count_of_any_length_is_no_traceback():
    text = f"progress: 1.0 s, 10.0 tps, lat 1.0 ms stddev 0.1, {'9' * 5000} failed\ntransaction type: x\n"
    assert read("pgbench", text).unusable


def test_a_log_with_a_count_of_any_length_is_no_log():
    assert read_logs([f"1777000000 {'9' * 5000} 1 1 1 1\n"], whole=True) is None


def test_documents_hold_a_limited_number_of_values(monkeypatch):
    document = '[{"commit": "a", "value": 1}]'
    assert read("commits", document).results
    monkeypatch.setattr(codec, "_MOST_VALUES", 2)
    assert "more than 2 values" in read("commits", document).unusable[0][1]


def test_systems_of_postgresbench_have_a_limited_number_of_levels(monkeypatch):
    text = '{"system": "a", "benchmark": {"x": 1, "y": 2}, "results": [{"tps": 1}, {"tps": 2}, {"tps": 3}]}'
    assert len(read("postgresbench", text).results) == 3
    monkeypatch.setattr(table, "MOST_FIELDS", 8)
    with pytest.raises(UsageError, match="more than 8 fields"):
        read("postgresbench", text)
    monkeypatch.setattr(table, "MOST_COLUMNS", 2)
    with pytest.raises(UsageError, match="there are 3 columns"):
        read("postgresbench", text)


@pytest.mark.parametrize("name", ["table", "wide", "otava", "pgbent"])
def test_tables_have_a_limited_number_of_columns_and_fields(name, monkeypatch):
    header, row = "time,tps,clients,end_time", "2026-01-01,1,2,2026-01-02"
    monkeypatch.setattr(table, "MOST_FIELDS", 8)
    assert not read(name, f"{header}\n{row}\n{row}").unusable or name == "wide"
    with pytest.raises(UsageError, match="more than 8 fields"):
        read(name, f"{header}\n{row}\n{row}\n{row}")
    monkeypatch.setattr(table, "MOST_COLUMNS", 3)
    with pytest.raises(UsageError, match="there are 4 columns"):
        read(name, header)


def test_a_table_that_is_decided_has_a_limited_number_of_columns_and_fields(monkeypatch):
    text = "environment,value,note\na,1,x\nb,2,y\n"
    monkeypatch.setattr(table, "MOST_FIELDS", 6)
    assert len(table.parse_table(text, "r.csv").observations) == 2
    with pytest.raises(UsageError, match="more than 6 fields"):
        table.parse_table(f"{text}c,3,z\n", "r.csv")
    monkeypatch.setattr(table, "MOST_COLUMNS", 2)
    with pytest.raises(UsageError, match="there are 3 columns"):
        table.parse_table(text, "r.csv")


def test_dimensions_are_told_apart_up_to_a_number(monkeypatch):
    def placed(level):
        return Placed(
            result=Result(measurements={"tps": 1.0}, line=0), source=level,
            dimensions={"environment": level, "one": level, "two": level, "same": "x"}, named=frozenset(),
        )  # fmt: skip

    monkeypatch.setattr(assembling, "_MOST_DIMENSIONS", 3)
    assert assemble([placed("a"), placed("b")], ImportQuestion(), "").observations
    monkeypatch.setattr(assembling, "_MOST_DIMENSIONS", 2)
    with pytest.raises(UsageError, match="there are 3 dimensions"):
        assemble([placed("a"), placed("b")], ImportQuestion(), "")


@pytest.mark.parametrize("name", ["table", "wide", "otava", "pgbent"])
def test_a_line_without_separators_is_no_name_of_a_column(name):
    found = read(name, "0" * LONG)
    assert found.results == ()
    assert all(len(what) < 240 for _, what in found.unusable)
    if name in {"table", "wide"}:
        assert found.unusable[0][1].startswith("a column has a name of 100,000 characters")


def test_a_reason_that_quotes_a_long_field_is_shortened():
    (reason,) = [what for _, what in read("table", f"server,tps\na,{'x' * LONG}\n").unusable]
    assert len(reason) > LONG
    assert len(shorten_reason(reason)) == 240
    assert shorten_reason("short") == "short"


def test_many_documents_in_lines_are_one_document_of_limited_size(monkeypatch):
    monkeypatch.setattr(codec, "_MOST_VALUES", 10)
    assert read("commits", '{"commit": "a", "value": 1}\n' * 2).results
    assert "more than 10 values" in read("commits", '{"commit": "a", "value": 1}\n' * 20).unusable[0][1]


def test_a_run_of_thousands_of_years_is_no_traceback():
    for length in ("1e300", "1e20"):
        document = f'"Elapsed Time (nanoseconds)": {length}, "Current Timestamp (milliseconds)": 1700000000000'
        (found,) = read("benchbase", f'{{"Throughput (requests/second)": 1, {document}}}').results
        assert found.started is None


def test_a_time_of_sysbench_that_is_no_number_is_no_traceback():
    text = (
        "sysbench 1.0.20\nRunning the test with following options:\nSQL statistics:\n"
        "    transactions:   100 (10.00 per sec.)\nGeneral statistics:\n    total time:   1.2.3s\n"
        "Latency (ms):\n    sum:   9.0\n"
    )
    (found,) = read("sysbench", text).results
    assert found.seconds == 0
    assert read("sysbench", text.replace("1.2.3s", "10.5s")).results[0].seconds == 10.5


def test_a_long_banner_of_pgbench_is_read_in_linear_time():
    begun = time.process_time()
    assert read("pgbench", "pgbench (" + ", server " * LONG + "\ntransaction type: x\n").unusable
    assert time.process_time() - begun < SECONDS


def test_a_name_that_is_a_long_list_is_made_a_text_once():
    keys = ", ".join(f'"k{number}": "a"' for number in range(LONG // 5))
    text = f'[{{"commit": "x", "value": 1, "name": [{"1, " * LONG}1], {keys}}}]'
    begun = time.process_time()
    assert read("commits", text).results
    assert time.process_time() - begun < SECONDS


def test_a_row_that_lacks_many_values_names_some_of_them():
    names = [f"{number:0>200}" for number in range(900)]
    text = "\n".join((f"time,{','.join(names)}", "2026-01-01" + ",1" * 900, "2026-01-02" + "," * 900))
    ((_, what),) = read("otava", text).unusable
    assert len(what) < 30_000
    assert shorten_reason(what).startswith(f"no value of {names[0]}, ")
