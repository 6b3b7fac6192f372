"""The table `data` of a cell: its ways, its mistakes, its identity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from pgstrata.errors import ExperimentError
from pgstrata.model.own_data import DataFile, DumpForm
from pgstrata.plan.load import workload_of

CELL = """
[factors]
server = ["16", "18"]
[[cells]]
workload = "mine"
clients = [1, 4]
scripts = [{{ file = "mine.sql" }}]
data = {data}
{more}
"""
FORMS = {"prod.dump": DumpForm.CUSTOM, "prod.tar": DumpForm.TAR, "prod": DumpForm.DIRECTORY}
KNOWN = {*FORMS, "mine.sql", "orders.csv", "orders.txt", "fill"}


def look_at(name):
    if name not in KNOWN:
        raise FileNotFoundError(name)
    form = FORMS.get(name, DumpForm.NONE)
    return DataFile(name=name, path=f"/there/{name}", digest=f"digest of {name}", bytes=1000, form=form)


@pytest.fixture
def own(parse):
    return lambda data, more="", look=look_at: parse(CELL.format(data=data, more=more), look_at=look)


def told(own, data, more=""):
    with pytest.raises(ExperimentError) as caught:
        own(data, more)
    return " ".join(
        f"{problem.line} {problem.key}: {problem.what} -> {problem.remedy}" for problem in caught.value.problems
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_dump_is_data_without_a_scale(own, workloads, name):
    first, second = own(f'{{ dump = "{name}" }}').cells
    assert (first.identity, second.identity) == ("mine-c1", "mine-c4")
    assert first.data.dump == look_at(name)
    kind = workload_of(first, workloads).data
    assert kind.name == f"own_{first.data.digest[:8]}"
    assert kind.size(1) == round(1000 * (1.5 if name == "prod.tar" else 6))
    assert workload_of(replace(first, data=None), workloads).data.name == "pgbench"


def test_files_are_copied_by_their_endings_or_as_they_say(own):
    copies = (
        own(
            '{ sql = "mine.sql", copy = { orders = "orders.csv", "app.events" = "orders.txt", '
            'x = { file = "orders.csv", options = "FORMAT csv, HEADER, DELIMITER \';\', FORCE_NULL (a, b)" } } }'
        )
        .cells[0]
        .data.copies
    )
    assert [(copy.table, copy.options) for copy in copies] == [
        ("orders", "FORMAT csv"),
        ("app.events", "FORMAT text"),
        ("x", "FORMAT csv, HEADER, DELIMITER ';', FORCE_NULL (a, b)"),
    ]


def test_checks_and_size_are_taken_over(own):
    data = (
        own('{ command = ["./fill", "-n", "5"], files = ["fill"], checks = "setup.sql", size = "3 GB" }').cells[0].data
    )
    assert (data.command, data.size, data.checks) == (("./fill", "-n", "5"), 3 << 30, "CREATE INDEX ON t (a);\n")
    assert data.estimate == data.size


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{}", "neither dump, sql nor command"),
        ('{ dump = "prod.dump", sql = "mine.sql" }', "given by dump and sql"),
        ('{ dump = "gone.dump" }', "'gone.dump' does not exist"),
        ('{ dump = "mine.sql" }', "not a dump in the custom, directory or tar format"),
        ('{ sql = "prod.dump" }', "a dump in the custom format -> write dump"),
        ('{ command = ["./fill"], copy = { t = "orders.csv" } }', "copy needs sql"),
        ('{ sql = "mine.sql", copy = { "a b; c" = "orders.csv" } }', "not the name of a table"),
        ('{ sql = "mine.sql", copy = { t = { file = "orders.csv", options = "x) ; (" } } }', "unbalanced parentheses"),
        ('{ sql = "mine.sql", copy = { t = "gone.csv" } }', "'gone.csv' does not exist"),
        ('{ command = ["./fill", "--password=hunter2"] }', "looks like a password"),
        ('{ command = ["./fill", "--db-password", "hunter2"] }', "looks like a password"),
        ('{ command = ["./fill", "postgresql://me:hunter2@db/prod"] }', "looks like a password"),
        ('{ command = "./fill" }', "a list of words"),
        ("{ command = [] }", "or no program"),
        ('{ dump = "prod.dump", size = "much" }', "'much' is not a size"),
        ('{ dump = "prod.dump", rows = 3 }', "unknown key"),
        ('"prod.dump"', "must be a table -> write it as [cells.data]"),
    ],
)
def test_mistakes_have_a_line_and_a_remedy_and_show_no_secret(own, data, words):
    text = told(own, data)
    assert words in text
    assert "8 cells" in text
    assert "hunter2" not in text


def test_a_scale_does_not_apply(own):
    assert "the scale does not apply" in told(own, '{ dump = "prod.dump" }', "scale = 10")


ELSEWHERE = '[common]\nhost = "ssh:db1"\n'


@pytest.mark.parametrize(
    "data", ['{ dump = "prod" }', '{ sql = "mine.sql", copy = { orders = "orders.csv" } }'], ids=["dump", "copy"]
)
def test_files_may_be_for_other_hosts(parse, data):
    (cell, _) = parse(CELL.format(data=data, more="") + ELSEWHERE, look_at=look_at).cells
    assert cell.data is not None


def test_a_command_stays_on_this_machine(parse):
    text = CELL.format(data='{ command = ["./fill"] }', more="") + ELSEWHERE
    with pytest.raises(
        ExperimentError, match=r"8: cells.1..data.command: a command of your own is not run on other hosts"
    ):
        parse(text, look_at=look_at)


def test_data_need_scripts(problems):
    found = problems(
        '[factors]\nserver = ["16", "18"]\n[[cells]]\nworkload = "select-only"\nclients = 1\ndata = { sql = "a" }\n'
    )
    assert any("need scripts" in problem.what for problem in found)


def test_the_identity_is_that_of_contents_and_words(own):
    def digest(text, content="digest"):
        look = partial(
            lambda content, name: replace(look_at(name), digest=content + name[:4], path=f"/p/{name}"), content
        )
        return own(text, look=look).cells[0].data.digest

    first = digest('{ command = ["./fill", "5"], files = ["fill"] }')
    assert digest('{ command = ["./fill", "5"], files = ["fill"], size = "2 GB" }') == first
    assert digest('{ command = ["./fill", "6"], files = ["fill"] }') != first
    assert digest('{ command = ["./fill", "5"], files = ["fill"] }', "other") != first
    assert digest('{ command = ["./fill", "5"], files = ["fill"], checks = "setup.sql" }') != first


def test_guesses_and_unread_files_are_noted(own):
    look = partial(lambda name: replace(look_at(name), digest="", stamp="1:2"))
    notes = " ".join(own('{ dump = "prod.dump" }', look=look).notes)
    assert "is a guess" in notes
    assert "too large to be read for a plan: prod.dump" in notes
    assert not own('{ dump = "prod.dump", size = "1 GB" }').notes
