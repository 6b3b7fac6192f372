"""A layer is declared once and done by one class: everything else follows."""

import importlib.util
import json
from pathlib import Path

import pytest

from pgstrata.collectors.hostfacts.abilities import judge_layers
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.experiment.compose import compose_try
from pgstrata.experiment.layers import LAYERS
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, Together, one_of
from pgstrata.experiment.needs import HostLine, file_needed
from pgstrata.experiment.parse import parse_experiment
from pgstrata.experiment.schema import json_schema
from pgstrata.experiment.values import TABLE
from pgstrata.hosts.local import LocalHost
from pgstrata.layers.registry import HOST_LAYERS, Ground, LayerEntry, make_host_layers, privileged_changes
from pgstrata.layers.sysctl import sysctl_change
from pgstrata.model.abilities import Abilities, HostCase
from pgstrata.model.doctor import Possible
from pgstrata.model.experiment import Interleave
from pgstrata.model.plan import HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.plan.design import choose_designs
from pgstrata.workloads import builtin_workloads

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
FILE = "/proc/made_up"


class MadeUpLayer:
    name = "made_up"

    def __init__(self, site):
        self.host = site.host

    def concerns(self, environment):
        return "made_up.level" in environment.layers


@pytest.fixture
def made_up(monkeypatch):
    declared = Layer(
        factors={
            "made_up": FactorKey(
                kind=TABLE, meaning="Made up.", wrong='{ level = "odd" }', wrong_levels='{ level = ["odd"] }'
            )
        },
        keys={"made_up.level": LayerKey(read=one_of("low", "high"), meaning="made up", together=Together.FOR_ONE)},
        host=(HostLine(key="made_up.level", needs=(file_needed(FILE, lack="needs CONFIG_MADE_UP"),)),),
    )
    change = sysctl_change("vm.swappiness", "1")
    done = LayerEntry(make=MadeUpLayer, changes=lambda _: iter((("made_up.level", change),)))
    monkeypatch.setitem(LAYERS, "made_up", declared)
    monkeypatch.setitem(HOST_LAYERS, "made_up", done)


def parse(text):
    return parse_experiment(text, "e.toml", read_file=str, workloads=builtin_workloads())


def test_every_layer_that_is_declared_has_its_class():
    assert set(HOST_LAYERS) == set(LAYERS)


@pytest.mark.usefixtures("made_up")
class TestALayerThatIsAdded:
    def test_is_read_as_common_part_and_as_factor(self):
        (one, _) = parse('controls = ["same"]\n[common]\nmade_up.level = "HIGH"\n' + CELL).environments
        assert one.layers == {"made_up.level": "high"}
        composed = compose_try(["made_up.level=low,high"])
        assert parse(composed.text).factors == ("made_up.level",)

    def test_is_in_the_schema(self):
        schema = json.loads(json_schema())
        for table in ("FactorsTable", "StackTable", "EnvironmentTable"):
            assert schema["$defs"][table]["properties"]["made_up"] == {"description": "Made up.", "type": "object"}
            assert any("made_up" in pattern for pattern in schema["$defs"][table]["patternProperties"])

    def test_is_in_the_reference_with_what_is_said_to_mistakes(self):
        path = Path(__file__).parents[2] / "scripts" / "reference.py"
        spec = importlib.util.spec_from_file_location("reference", path)
        reference = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reference)
        text = reference.render_reference()
        assert "| `made_up.level` | made up |" in text
        assert text.count("### `made_up`") == 2
        assert "“'odd' is not allowed here”" in text

    def test_is_judged_by_doctor(self):
        def found(files):
            case = HostCase(abilities=Abilities(root=True, files=files), package=str, devices="/none")
            return next(each for each in judge_layers(case) if each.key == "made_up.level")

        assert found({FILE: ""}).possible is Possible.YES
        assert (found({}).possible, found({}).note) == (Possible.NOT_ON_HOST, "needs CONFIG_MADE_UP")
        assert "made_up.level" in dict(privileged_changes(Ground(storage="/d", user="u", cgroup=2)))

    def test_decides_about_slices(self):
        experiment = parse('controls = ["same"]\n[common]\nmade_up.level = "low"\n' + CELL)
        capacity = HostCapacity(memory=1 << 40, cpus=4, free_disk=1 << 40)
        (design,) = choose_designs(experiment, builtin_workloads(), capacity, driver_capabilities(), Interleave.AUTO)
        assert design.reason == Reason(code="for_one", names=("made_up.level",))

    def test_is_made_for_a_host(self):
        host = LocalHost()
        (*_, made) = make_host_layers(host, "key", (), data="/data", storage="/storage")
        assert (made.name, made.host) == ("made_up", host)
