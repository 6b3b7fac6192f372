"""The driver of a cell, and the keys that it allows; with the real workloads and drivers."""

import pytest

from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import ExperimentError, PlanRefusedError
from pgstrata.model.reasons import Reason
from pgstrata.plan import make_plan
from pgstrata.workloads import builtin_workloads

WORKLOADS = builtin_workloads()
TWO = """
[factors]
server = ["18", "16"]
"""


@pytest.fixture(scope="module")
def read(parse):
    return lambda text: parse(text, workloads=WORKLOADS, drivers=driver_capabilities())


@pytest.fixture(scope="module")
def plan(read, capacity):
    return lambda text: make_plan(read(text), WORKLOADS, capacity, drivers=driver_capabilities())


def cell(workload, more=""):
    return f'[[cells]]\nworkload = "{workload}"\nscale = 10\nclients = 100\n{more}\n'


def test_a_cell_has_the_driver_of_its_workload(read):
    scripts = '[[cells]]\nscripts = [{ file = "mine.sql" }]\nscale = 1\nclients = 1\n'
    experiment = read(TWO + cell("select-only") + cell("oltp-read-only") + scripts)
    assert [each.driver for each in experiment.cells] == ["pgbench", "sysbench", "pgbench"]


def test_a_driver_whose_clients_share_no_threads_has_one_for_each(read):
    experiment = read(TWO + cell("select-only") + cell("oltp-read-only"))
    assert [each.threads for each in experiment.cells] == [32, 100]


def test_cells_of_sysbench_are_measured_run_by_run_and_the_plan_says_why(plan):
    small = cell("oltp-read-only").replace("100", "4")
    (design,) = plan(TWO + small).designs
    assert not design.sliced
    assert design.reason == Reason(code="driver", names=("sysbench",))
    with pytest.raises(PlanRefusedError, match=r"slices: .*sysbench"):
        plan('interleave = "slices"\n' + TWO + small)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("rate = 10\nlatency_limit = '5ms'", "neither counts nor skips late transactions"),
        ("rate = 10.5", "cannot keep a rate of 10.5 per second"),
        ('protocol = "extended"', "does not speak the extended protocol"),
        ("profile = true", "does not tell the latency of each statement"),
        ("threads = 2", "has a thread for each client"),
    ],
)
def test_what_sysbench_cannot_do_is_refused(plan, more, what):
    with pytest.raises(PlanRefusedError, match=what):
        plan(TWO + cell("oltp-read-only", more).replace("100", "4"))


def test_what_it_can_do_is_planned(plan):
    more = 'rate = 10\nprotocol = "simple"\noptions = { access = "pareto" }'
    planned = plan(TWO + cell("oltp-read-write", more).replace("100", "4")).experiment.cells[0]
    assert planned.options == {"access": "pareto"}


class TestAccess:
    def test_of_a_cell_is_one_that_the_workload_has(self, read):
        with pytest.raises(ExperimentError) as caught:
            read(TWO + cell("oltp-read-only", 'options = { access = "zipfian" }'))
        (problem,) = caught.value.problems
        assert "access of oltp-read-only cannot be 'zipfian'" in problem.what
        assert "uniform, gaussian, special, pareto" in problem.remedy

    def test_is_a_factor_whose_levels_are_checked_too(self, read):
        factor = '[common]\nserver = "18"\n[factors]\n"options.access" = ["uniform", "{}"]\n'
        experiment = read(factor.format("pareto") + cell("oltp-read-only"))
        assert [each.options for each in experiment.environments] == [{"access": "uniform"}, {"access": "pareto"}]
        with pytest.raises(ExperimentError, match="cannot be 'parato'") as caught:
            read(factor.format("parato") + cell("oltp-read-only"))
        assert "did you mean 'pareto'" in caught.value.problems[0].remedy


class TestOrderEntry:
    """The workload that both drivers run."""

    def test_is_driven_by_what_its_cell_says(self, read):
        experiment = read(TWO + cell("tpcc") + cell("tpcc", 'driver = "sysbench"'))
        assert [(each.driver, each.threads, each.label) for each in experiment.cells] == [
            ("pgbench", 32, "-pgbench-j32"),
            ("sysbench", 100, "-sysbench-j100"),
        ]

    def test_under_sysbench_is_another_plan_with_the_same_data(self, plan):
        mine, other = (plan(TWO + cell("tpcc", more).replace("100", "4")) for more in ("", 'driver = "sysbench"'))
        assert mine.identity != other.identity
        assert mine.forecast.datasets == other.forecast.datasets
        both = plan(TWO + cell("tpcc").replace("100", "4") + cell("tpcc", 'driver = "sysbench"').replace("100", "4"))
        assert len(both.forecast.datasets) == 2  # one for each server

    @pytest.mark.parametrize(
        ("more", "what", "remedy"),
        [
            (
                'options = { statements = "server" }',
                'does not run tpcc with statements = "server"',
                'write statements = "client" or driver = "pgbench"',
            ),
            (
                'options = { terminals = "standard" }',
                'does not run tpcc with terminals = "standard"',
                'write terminals = "busy" or driver = "pgbench"',
            ),
            ("rate = 0.5", "cannot keep a rate of 0.5 per second", "use a whole number, such as 1"),
            ('latency_limit = "1s"', "neither counts nor skips late transactions", "leave out latency_limit"),
        ],
    )
    def test_what_sysbench_cannot_do_is_refused_with_the_way_out(self, plan, more, what, remedy):
        with pytest.raises(PlanRefusedError) as caught:
            plan(TWO + cell("tpcc", f'driver = "sysbench"\n{more}').replace("100", "4"))
        assert what in caught.value.what
        assert caught.value.remedy == remedy

    def test_a_factor_that_sysbench_cannot_take_is_refused_too(self, plan):
        factors = '[factors]\n"options.statements" = ["client", "server"]\n'
        with pytest.raises(PlanRefusedError, match='sysbench does not run tpcc with statements = "server"'):
            plan(factors + cell("tpcc", 'driver = "sysbench"').replace("100", "4"))
        assert plan(factors + cell("tpcc").replace("100", "4"))

    def test_slices_are_refused_with_the_reason(self, plan):
        with pytest.raises(PlanRefusedError, match=r"slices: .*sysbench"):
            plan('interleave = "slices"\n' + TWO + cell("tpcc", 'driver = "sysbench"').replace("100", "4"))


@pytest.mark.parametrize(
    ("workload", "driver", "what", "remedy"),
    [
        ("tpcc", "sysbensh", "there is no driver 'sysbensh'", "did you mean 'sysbench'?"),
        ("select-only", "sysbench", "select-only has no scripts for the driver 'sysbench'", "driven by pgbench"),
        ("oltp-read-only", "pgbench", "oltp-read-only has no scripts for the driver 'pgbench'", "driven by sysbench"),
    ],
)
def test_a_driver_that_cannot_run_the_workload_is_named_with_its_line(read, workload, driver, what, remedy):
    with pytest.raises(ExperimentError) as caught:
        read(TWO + cell(workload, f'driver = "{driver}"'))
    (problem,) = caught.value.problems
    assert what in problem.what
    assert remedy in problem.remedy
    assert problem.line == 8


def test_scripts_of_one_s_own_are_not_run_by_sysbench(plan):
    with pytest.raises(PlanRefusedError, match="does not run scripts"):
        plan(TWO + '[[cells]]\nscripts = [{ file = "mine.sql" }]\nscale = 1\nclients = 1\ndriver = "sysbench"\n')
