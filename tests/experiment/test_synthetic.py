"""Values that are declared instead of measured: their table, and that nothing else can be compared with them."""

import pytest

from pgstrata.errors import ExperimentError
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.boot import release_key
from pgstrata.model.synthetic import Synthetic
from pgstrata.plan.identity import identify
from pgstrata.workloads import builtin_workloads

TEXT = """
{first}
[factors]
kernel = ["6.1", "6.12"]
[common]
host = "vm:deb12"
{table}
[[cells]]
workload = "select-only"
scale = 1
clients = 1
"""
GOOD = '[synthetic]\nkernel = "6.9-rc3"\nchange = "-9 %"\nscatter = "1 %"'


def parse(table=GOOD, first=""):
    text = TEXT.format(first=first, table=table)
    return parse_experiment(text, "x", read_file=str, workloads=builtin_workloads())


def test_the_metric_is_synthetic_and_a_note_says_that_it_is_declared():
    found = parse()
    assert found.synthetic == Synthetic(kernel="6.9.0-rc3", factor=0.91, scatter=0.01)
    assert found.metric == "synthetic"
    assert "its values are declared under [synthetic], not measured" in found.notes[0]
    assert parse(GOOD, 'metric = "synthetic"').metric == "synthetic"


def test_a_version_is_its_release_so_that_its_candidates_come_before_it():
    rule = parse(GOOD.replace("6.9-rc3", "6.9")).synthetic
    assert rule.kernel == "6.9.0"
    assert release_key("6.9.0-rc1-g0123456789ab.00112233") < release_key(rule.kernel)
    assert release_key("6.9.0-g0123456789ab.00112233") >= release_key(rule.kernel)


def test_declared_values_are_another_plan():
    assert identify(parse(), ()) != identify(parse(GOOD.replace("-9", "-8")), ())


@pytest.mark.parametrize(
    ("table", "first", "said"),
    [
        ("", 'metric = "synthetic"', "the values of [synthetic] are missing"),
        (GOOD, 'metric = "latency_p95"', "with declared values there is no other metric"),
        ("synthetic = 3", "", "is not allowed here"),
        ('[synthetic]\nkernel = "6.12"', "", "needs kernel and change"),
        ('[synthetic]\nkernel = 6.12\nchange = "1 %"', "", "kernel is not a version in quotes"),
        ('[synthetic]\nkernel = "new"\nchange = "1 %"', "", "kernel is not a version in quotes"),
        (GOOD.replace("-9 %", "soon"), "", "change is not a ratio"),
        (GOOD.replace('"-9 %"', "0.1"), "", "change is not a ratio in quotes"),
        (GOOD.replace("-9 %", "0 %"), "", "is not between -100 and 100 %, or is 0"),
        (GOOD.replace("-9 %", "-100 %"), "", "is not between -100 and 100 %"),
        (GOOD.replace("1 %", "90 %"), "", "a scatter of 90 % is not between 0 and 50 %"),
        (GOOD.replace("kernel", "server"), "", "needs kernel and change"),
    ],
)
def test_what_is_not_declared_as_it_must_be_is_refused(table, first, said):
    if table == "synthetic = 3":
        table, first = "", table
        said = "must be a table"
    with pytest.raises(ExperimentError) as refused:
        parse(table, first)
    assert said in str(refused.value)
