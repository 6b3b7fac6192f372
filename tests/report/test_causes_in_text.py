"""Why in plain text: what is claimed, what is left open, and that it fits a mailing list."""

import json
from dataclasses import replace

import pytest

from pgstrata.compare import compare_study, find_axes
from pgstrata.compare.causes.why import BESIDE_METRICS, find_why
from pgstrata.model.activity import SessionCount, SessionState
from pgstrata.model.answer import Answer, Verdict
from pgstrata.model.attribution import Part, ValueInterval
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.report.json.answer import answer_json
from pgstrata.report.sentences.causes import (
    cause_sentences,
    name_query,
    name_row,
    render_change,
    render_half,
    say_attribution,
    say_causes,
)
from rendering import render_html, render_why
from studies import make_environment, make_plan, make_run

QUERY = (
    "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ? AND <b>a statement that is long</b>\x1b[31m\n;"
)
LEVELS = ("on", "local", "off")
ENVIRONMENTS = tuple(
    make_environment(level, levels={"settings.synchronous_commit": level}, settings={"synchronous_commit": level})
    for level in LEVELS
)


def make_record(environment, block, waited, **rest):
    rows = [
        (SessionState.CLIENT, "", "", "", 300),
        (SessionState.RUNNING, "", "", QUERY, 100 + block),
        (SessionState.RUNNING, "", "", "END;", 20),
        (SessionState.WAITING, "IO", "WalSync", "END;", waited),
    ]
    sessions = tuple(
        SessionCount(state=state, wait_type=kind, event=event, query=query, samples=samples)
        for state, kind, event, query, samples in rows
        if samples
    )
    seconds = 1e-6 * sum(count.samples for count in sessions) * (1 + 0.01 * block)
    values = {"tps": 4 / seconds, "backend_cpu_per_tx": 105e-6, "run_queue_per_tx": 15e-6, **rest}
    return replace(make_run(environment, block, **values), sessions=sessions)


@pytest.fixture(scope="module")
def answer():
    plan = make_plan(ENVIRONMENTS, blocks=8, factors=("settings.synchronous_commit",))
    runs = tuple(
        make_record(level, block, waited + block % 3, wal_per_tx=500.0 + waited + block, checkpoints=float(block % 2))
        for block in range(1, 9)
        for level, waited in zip(LEVELS, (400, 395, 0), strict=True)
    )
    nothing = Fingerprint(facts={})
    study = Study(
        name="s", plan=plan, runs=runs, host=nothing, client=nothing, environments={}, created="", version="0"
    )
    why = find_why(plan, runs)
    return Answer(
        study=study,
        comparisons=compare_study(plan, runs),
        warnings=(),
        axes=find_axes(plan, runs),
        attributions=why.attributions,
        unattributed=why.missing,
        accounts=why.accounts,
    )


def of(answer, environment):
    return next(item for item in answer.attributions if item.environment == environment)


def test_the_sentence_has_the_saving_and_its_parts_and_the_causes_their_statements(answer):
    text = say_attribution(answer, of(answer, "off"))
    assert text.startswith("synchronous_commit = off saves 4")
    assert " µs per transaction (8" in text
    assert ", 8 blocks): -4" in text
    assert " IO/WalSync" in text
    assert "END" not in text
    assert say_causes(of(answer, "off")).startswith("first cause: IO/WalSync in END (-4")


def test_of_one_statement_figures_are_told_once(answer):
    found = of(answer, "off")
    alone = replace(found, rows=tuple(row for row in found.rows if not row.query or row.query.startswith("END")))
    assert say_causes(alone) == "first cause: IO/WalSync in END"


def test_the_first_cause_is_told_where_a_verdict_has_found_a_difference(answer):
    (text,) = cause_sentences(answer)
    assert text.startswith("synchronous_commit = off: the first cause is IO/WalSync in END, -4")
    assert text.endswith("µs per transaction")
    # beside the verdicts, at the head of the page
    head = render_html(answer).partition("<h2>")[0]
    assert "the first cause is IO/WalSync in END" in head


def test_an_interval_that_reaches_farther_to_one_side_is_told_as_it_is(answer):
    cause = replace(of(answer, "off").causes[0], difference=200e-6, interval=ValueInterval(low=150e-6, high=400e-6))
    assert render_change(cause, 1e-6) == "+200 [+150, +400]"
    assert render_half(cause, 1e-6, 0) == "-50 +200"
    even = replace(cause, interval=ValueInterval(low=150e-6, high=250e-6))
    assert (render_change(even, 1e-6), render_half(even, 1e-6, 0)) == ("+200 ± 50", "50")


def test_the_kernel_s_function_stands_beside_the_rest(answer):
    rest = replace(of(answer, "off").causes[0], part=Part.REST, event="", place="hrtimer_nanosleep")
    assert name_row(rest) == "rest: off the CPU, no event in END, in the kernel's hrtimer_nanosleep"


def test_no_cause_is_told_of_a_control_and_against_the_verdict(answer):
    comparisons = tuple(replace(item, control=True) for item in answer.comparisons)
    assert cause_sentences(replace(answer, comparisons=comparisons)) == []
    comparisons = tuple(replace(item, verdict=Verdict.WORSE) for item in answer.comparisons)
    assert cause_sentences(replace(answer, comparisons=comparisons)) == []


def test_a_difference_that_is_not_certain_claims_nothing(answer):
    found = of(answer, "off")
    open_ = replace(found, total=replace(found.total, resolved=False), causes=())
    assert "no difference in the time of a transaction is certain" in say_attribution(answer, open_)
    assert say_causes(open_) == ""


def test_the_text_fits_a_mailing_list_and_has_every_table(answer):
    text = render_why(answer)
    assert max(map(len, text.splitlines())) <= 78
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    for part in (
        "µs per transaction",
        "part and statement",
        "per transaction or run  ",
        "Along synchronous_commit",
        "unresolved",
        "WAL",
    ):
        assert part in text
    assert "..\n" not in text.replace("...", "")


def test_what_was_counted_beside_is_one_table_whatever_its_names(answer):
    found = of(answer, "off")
    beside = tuple(
        replace(found.beside[0], metric=metric, value=3.16e-6, reference=1.08e-6, difference=2.08e-6)
        for metric in BESIDE_METRICS
    )
    text = render_why(replace(answer, attributions=(replace(found, beside=beside),)))
    (head,) = [place for place, line in enumerate(text.splitlines()) if line.startswith("per transaction or run")]
    table = "\n".join(text.splitlines()[head:]).split("\n\n")[0]
    assert table.splitlines()[0].split() == [
        "per", "transaction", "or", "run", "before", "after", "change", "±", "state",
    ]  # fmt: skip
    assert table.count("resolved") == len(BESIDE_METRICS)
    assert max(map(len, table.splitlines())) <= 78


def test_a_change_and_its_half_have_their_units(answer):
    (wal, *_) = (item for item in of(answer, "off").beside if item.metric == "wal_per_tx")
    item = replace(wal, difference=-400.0, interval=ValueInterval(low=-410.0, high=-390.0))
    text = render_why(replace(answer, attributions=(replace(of(answer, "off"), beside=(item,)),)))
    assert ["-400", "B", "10", "B"] in [line.split()[-5:-1] for line in text.splitlines()]
    item = replace(wal, difference=-4096.0, interval=ValueInterval(low=-4106.0, high=-4086.0))
    text = render_why(replace(answer, attributions=(replace(of(answer, "off"), beside=(item,)),)))
    assert ["-4", "kB", "10", "B"] in [line.split()[-5:-1] for line in text.splitlines()]


def test_levels_stand_beside_each_other_and_add_up(answer):
    lines = render_why(answer).split("Along synchronous_commit")[1].splitlines()
    columns = lines[2].split()
    assert columns == ["synchronous_commit", *LEVELS]
    rows = [[float(word) for word in line.split()[-3:]] for line in lines[4:] if line.strip()]
    assert [sum(row[place] for row in rows[:-1]) for place in range(3)] == pytest.approx(rows[-1], abs=3)


def test_statements_are_one_line_without_control_characters():
    assert name_query("a\x1b[0m\n b\t;") == "a?[0m b"
    assert len(name_query("x" * 200)) <= 44


def test_the_json_form_has_all_of_it_only_where_it_is_asked_for(answer):
    document = json.loads(answer_json(answer, why=True))["why"]
    assert [item["environment"] for item in document["attributions"]] == ["local", "off"]
    assert document["attributions"][1]["causes"][0]["event"] == "IO/WalSync"
    assert document["attributions"][1]["method"] == "counted"
    assert {item["environment"] for item in document["accounts"]} == set(LEVELS)
    assert "why" not in json.loads(answer_json(answer))


def test_where_no_server_counts_statements_it_says_how_to_have_that(answer):
    text = " ".join(render_why(answer).split())
    assert "Calls and latencies of single statements are not known: load pg_stat_statements in all environments" in text


def test_what_other_processes_did_stands_below_in_the_same_unit(answer):
    found = of(answer, "off")
    others = tuple(
        replace(
            found.causes[0],
            part=Part.WAIT,
            event=f"IO/Event{number}",
            query="",
            process="checkpointer",
            reference=0.0,
            value=number * 1e-6,
            difference=number * 1e-6,
        )
        for number in range(14)
    )
    changed = replace(answer, attributions=(replace(found, processes=others),))
    text = render_why(changed)
    table = text[text.index("other processes, µs") :].split("\n\n")[0]
    assert "checkpointer: IO/Event13" in table
    assert "and 2 smaller rows" in table
    assert max(map(len, table.splitlines())) <= 78
    (fields,) = json.loads(answer_json(changed, why=True))["why"]["attributions"]
    assert [row["process"] for row in fields["processes"]] == ["checkpointer"] * 14
    page = render_html(changed)
    assert "What the server&#39;s other processes did" in page or "What the server's other processes did" in page
    assert "other processes" not in render_why(answer)


def test_names_that_come_from_a_server_do_nothing_to_a_terminal(answer):
    cause = replace(of(answer, "off").causes[0], event="IO/\x1b[31mSync", process="walwriter\n\x07")
    assert name_row(cause) == "walwriter ?: IO/?[31mSync"
    rest = replace(cause, process="", event="", part=Part.REST, place="do\x1bselect")
    assert "do?select" in name_row(rest)
