"""The workload that runs files of a user's checkout: which are read, what is refused, what they are part of."""

import pytest

from pgstrata.datasets.cluster import dataset_identity
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.server import Build, ServerVersion
from pgstrata.plan import data_of, make_plan
from pgstrata.report.planning.plan import render_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
ENVIRONMENT = '[factors]\nserver = ["18", "16"]\n'
CELL = """
[[cells]]
workload = "sysbench-tpcc"
scale = 2
clients = 4
{more}
"""
FILES = {
    "mine/tpcc.lua": '#!/usr/bin/env sysbench\nffi = require("ffi")\nrequire("tpcc_common")\nrequire("tpcc_run")\n',
    "mine/tpcc_run.lua": 'require("tpcc_common")\nif drv:name() == "pgsql" then end\n',
    "mine/tpcc_common.lua": "sysbench.cmdline.options = {\n   scale =\n      {1},\n   tables =\n      {1},\n}\n",
    "old/tpcc.lua": "sysbench.cmdline.options = {\n   scale = {1},\n   tables = {1},\n}\n",
    "other/tpcc.lua": "-- nothing\n",
    "half/tpcc.lua": 'require("tpcc_common")\n',
}


@pytest.fixture(scope="module")
def read(parse):
    def run(more, text=ENVIRONMENT, files=FILES):
        def read_program(name):
            if name not in files:
                raise FileNotFoundError(name)
            return files[name]

        return parse(
            text + CELL.format(more=more), workloads=WORKLOADS, drivers=driver_capabilities(), read_program=read_program
        )

    return run


def problem(read, more, **given):
    with pytest.raises(ExperimentError) as caught:
        read(more, **given)
    (found,) = caught.value.problems
    return found


def test_its_first_file_and_all_that_it_requires_from_there_become_part_of_the_plan(read):
    (cell,) = read('checkout = "mine/"').cells
    assert [script.file for script in cell.checkout] == ["tpcc.lua", "tpcc_common.lua", "tpcc_run.lua"]
    assert [script.text for script in cell.checkout] == [FILES[f"mine/{script.file}"] for script in cell.checkout]
    assert cell.driver == "sysbench"
    assert cell.scripts == ()


@pytest.mark.parametrize(
    ("more", "what", "remedy"),
    [
        ("", "runs tpcc.lua from a checkout, and the cell names no checkout", "the folder that git clone made"),
        ('checkout = "nowhere"', "the file 'nowhere/tpcc.lua' does not exist", "relative to the experiment file"),
        ('checkout = "half"', "the file 'half/tpcc_common.lua' does not exist", "relative"),
        ('checkout = "old"', "the files of 'old' lack support for PostgreSQL", "2020 or later"),
        (
            'checkout = "other"',
            "the files of 'other' lack the option --scale, the option --tables, support for PostgreSQL",
            "Percona-Lab/sysbench-tpcc",
        ),
        ('checkout = "mine"\noptions.tables = 0', "tables of sysbench-tpcc cannot be '0'", "from 1 to 100"),
        ('checkout = "mine"\noptions.tables = "many"', "tables of sysbench-tpcc cannot be 'many'", "from 1 to 100"),
        ('checkout = "mine"\noptions.use_fk = 0', "has no option 'use_fk'", "it has tables"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(read, more, what, remedy):
    found = problem(read, more)
    assert what in found.what
    assert remedy in found.remedy


def test_other_workloads_have_none(read):
    text = CELL.replace("sysbench-tpcc", "tpcc").format(more='checkout = "mine"')
    found = problem(read, 'checkout = "mine"', text=ENVIRONMENT + text)
    assert found.what == "the workload 'tpcc' uses no checkout"


def test_how_many_tables_there_are_is_no_option_of_environments(read):
    found = problem(read, 'checkout = "mine"', text='[factors]\n"options.tables" = [1, 2]\n')
    assert "decides which data there are" in found.what
    assert "[[cells]]" in found.remedy


def test_plan_and_dataset_are_others_when_a_file_or_the_number_of_tables_is(read, capacity):
    def identities(more, files=FILES):
        experiment = read(more, files=files)
        plan = make_plan(experiment, WORKLOADS, capacity, drivers=driver_capabilities())
        cell, build = experiment.cells[0], _build()
        return plan.identity, dataset_identity(experiment.environments[0], build, cell, data_of(cell, WORKLOADS))

    changed = {**FILES, "mine/tpcc_run.lua": FILES["mine/tpcc_run.lua"] + "-- more\n"}
    found = [
        identities('checkout = "mine"'),
        identities('checkout = "mine"', files=changed),
        identities('checkout = "mine"\noptions.tables = 2'),
    ]
    for each in zip(*found, strict=True):
        assert len(set(each)) == len(each)
    assert identities('checkout = "mine"') == found[0]
    assert found[0][1].startswith("sbtpcc-s2-pg18-")


def test_a_plan_names_the_files_and_who_runs_them(read, capacity):
    plan = make_plan(read('checkout = "mine"'), WORKLOADS, capacity, drivers=driver_capabilities())
    text = " ".join(render_plan(plan).split())
    assert "by sysbench, tpcc.lua, tpcc_common.lua, tpcc_run.lua of a checkout" in text
    assert "no audited TPC result" in text


def _build():
    return Build(
        spec=ServerSpec(kind=ServerKind.CATALOGUE, value="18"), prefix="/p", version=ServerVersion(number=180000, text="18.0"),
        supplier="x", digest="d", compiler="", configure="", cflags="",
    )  # fmt: skip
