"""How environments are called."""

import pytest

import records
from pgstrata.report.sentences.names import name_environment


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
