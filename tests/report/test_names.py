"""How environments are called."""

from dataclasses import replace

import pytest

import records
from pgstrata.model.experiment import ControlKind
from pgstrata.report.sentences.names import name_environment, say_labels


@pytest.mark.parametrize(
    ("levels", "name"),
    [
        ((("limits.memory", "419430400"),), "limits.memory = 400 MB"),
        ((("server", "18"), ("limits.read_bytes", "157286400")), "18 (limits.read_bytes = 150 MB)"),
        ((("limits.read_operations", "419430400"),), "limits.read_operations = 419430400"),
        ((("limits.memory", "none"),), "limits.memory = none"),
    ],
)
def test_limits_in_bytes_have_their_unit(desk, levels, name):
    environment = desk.environment("a", levels)
    assert name_environment(environment, records.make_experiment((environment,))) == name


def test_environments_are_called_what_the_file_calls_them(desk):
    plain = replace(desk.environment("18", (("server", "18"),)), label="18")
    tuned = replace(desk.environment("18-tuned", (("server", "18"), ("jit", "on"))), label="18 \x1b[31mtuned")
    again = replace(tuned, name="18-tuned-control", control=ControlKind.SAME)
    experiment = records.make_experiment((plain, tuned, again))
    assert [name_environment(each, experiment) for each in experiment.environments] == [
        "18", "18 \ufffd[31mtuned", "18 \ufffd[31mtuned a second time",
    ]  # fmt: skip
    assert say_labels(experiment) == "18 \ufffd[31mtuned is 18 (jit = on)"


def test_names_made_of_levels_are_not_explained(desk):
    environments = tuple(desk.environment(version, (("server", version),)) for version in ("16", "18"))
    assert say_labels(records.make_experiment(environments)) == ""
