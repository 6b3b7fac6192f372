"""Two windows side by side in words: what differs stands in tables, the rest is folded, and causes are not named."""

import json

import pytest

from archives import BLOCKER, START, Second, behind, make_archive, session, use
from pgstrata.app.explain import load_periods
from pgstrata.errors import ArchiveError, UsageError
from pgstrata.model.archive import Holder, HolderKind, Horizon, Relation, RelationUse
from pgstrata.report.blocks.markdown import emit_markdown
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.blocks.text import emit_text
from pgstrata.report.live.periods import make_periods_document, periods_json

NASTY = "<script>\x1b[31m\u202e"
CPU, LOCK, IO = session("10"), session("20", "Lock/tuple"), session("10", "IO/DataFileRead", application=NASTY)
OLD = Horizon(holder=Holder(kind=HolderKind.SLOT, name="forgotten"), age=7000, held=0)
BEFORE, AFTER = f"@{START}..@{START + 600}", (f"@{START + 600}", f"@{START + 1000}")


def tell(number):
    late = number >= 600
    seen = {CPU: 1 + number % 3, LOCK: (4 if late else 0) + number % 2, IO: 1 if number % 7 == 0 else 0}
    blocked = behind(LOCK, BLOCKER, sessions=4) if late else {}
    host = {"host_user_cpu": 1.0 + number % 5 / 10, "disk_throughput": 1e6}
    counts = {each: many for each, many in seen.items() if many}
    scans = RelationUse(sequential_scans=60.0 * (5 if late else 1), sequential_rows=600.0)
    relations = {Relation(name="public.stock"): scans} if number % 60 == 59 else {}
    return Second(counts, (80 if late else 100) + number % 4, blocked, host, relations, OLD if late else None)


def uses(number):
    late, odd = number >= 600, number // 10 % 3
    return {"10": use(1000 + odd, 2.0 + odd / 50, 9.0), "20": use(100 + odd, (40.0 if late else 1.0) + odd / 50)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("periods") / "a"
    return make_archive(folder, 1000, tell, uses=uses, texts={"10": f"select {NASTY}", "20": "update t set x = $1"})


@pytest.fixture(scope="module")
def found(archive):
    return load_periods(archive, *AFTER, BEFORE)


def words(found):
    return " ".join(emit_text(make_periods_document(found, "1")).split())


def test_all_in_all_is_said_with_intervals_and_what_may_be_chance(found):
    said = words(found)
    assert "81.5 transactions per second, against 102 in the comparison window, -19.7 % [-19.8, -19.6]" in said
    assert "6.64 active sessions on average, against 2.64 in the comparison window" in said
    assert "differ for certain" in said


def test_rows_are_parted_by_whether_their_difference_is_resolved(found):
    said = words(found)
    certain, _, chance = said.partition("Load by wait event")[2].partition("whose difference may be chance")
    assert "Lock/tuple 0.50 4.50 +4.00" in certain
    assert "IO/DataFileRead" not in certain
    assert "IO/DataFileRead" in chance
    assert "time of a call comparison window difference [95 %]" in said
    assert "update t set x = $1 10.1 ms 396 ms 39.2 times" in said


def test_totals_of_both_windows_stand_beside_each_other(found):
    assert "bytes read from disks and written 572 MB 381 MB" in words(found)


def test_tables_and_what_held_back_vacuum_are_shown_of_both_windows(found):
    said = words(found)
    assert "public.stock 1 → 5 10 → 10" in said
    assert "What held back vacuum in the window" in said
    assert "What held back vacuum in the comparison window" not in said
    read = json.loads(periods_json(found))
    assert [holder["name"] for holder in read["horizons"]] == ["forgotten"]
    assert read["comparison_horizons"] == []


def test_figures_without_an_error_are_said_to_have_none(found):
    assert "on average; no error of these figures is known" in words(found)


def test_no_cause_is_named_and_nothing_is_called_an_incident(found):
    for text in (words(found), periods_json(found)):
        for word in ("incident", "largest part of the extra load", "slower:", "outcome"):
            assert word not in text


def test_foreign_text_is_text_everywhere(found):
    page = emit_page(make_periods_document(found, "1"))
    assert "<script>\x1b" not in page
    assert page.count('role="img"') == 2
    assert "<details" in page
    for text in (page, emit_text(make_periods_document(found, "1")), emit_markdown(make_periods_document(found, "1"))):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert max(map(len, emit_text(make_periods_document(found, "1")).splitlines())) <= 78


def test_programs_get_all_figures(found):
    assert "NaN" not in periods_json(found)
    read = json.loads(periods_json(found))
    assert read["blockers"][0]["value"] == 4.0
    assert {change["name"] for change in read["changes"]} == {"throughput", "load", "time"}
    by_key = {use["statement"]: use for use in read["uses"]}
    time = next(change for change in by_key["20"]["per_call"] if change["name"] == "seconds")
    assert time["resolved"]
    assert time["reference"] == pytest.approx(0.0101, rel=0.005)
    assert time["ratio"][0] < time["value"] / time["reference"] < time["ratio"][1]
    assert read["comparison"]["looks"] == 600
    assert {total["name"] for total in read["totals"]} == {"commits", "disk_throughput"}


def test_texts_are_left_out_where_they_are_not_wanted(archive):
    found = load_periods(archive, *AFTER, BEFORE, query_text=False)
    assert "update t" not in words(found)
    assert json.loads(periods_json(found))["texts"] == {}


def test_the_order_of_the_windows_does_not_matter(archive, found):
    turned = load_periods(archive, *BEFORE.split(".."), "..".join(AFTER))
    assert turned.periods.load.value == found.periods.load.reference
    assert turned.periods.throughput.ratio.low == pytest.approx(1 / found.periods.throughput.ratio.high)


def test_windows_that_cannot_be_compared_are_refused(archive):
    with pytest.raises(UsageError, match="overlap"):
        load_periods(archive, *AFTER, f"@{START + 900}..@{START + 950}")
    with pytest.raises(ArchiveError, match="nothing is recorded from"):
        load_periods(archive, *AFTER, f"@{START - 900}..@{START - 50}")


def test_a_window_too_short_for_errors_says_so(archive):
    said = words(load_periods(archive, f"@{START + 600}", f"@{START + 630}", f"@{START}..@{START + 30}"))
    assert "No error of these figures is known" in said
