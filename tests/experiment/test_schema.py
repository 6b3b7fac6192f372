from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pgstrata.experiment.schema import json_schema

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "examples").rglob("*.toml")
    # lists of prices are no experiments
    if "[[cells]]" in path.read_text(encoding="utf-8")
)


def test_the_shipped_schema_is_the_generated_one():
    shipped = (ROOT / "docs/reference/experiment.schema.json").read_text(encoding="utf-8")
    assert shipped == json_schema(), "run: python -m pgstrata.experiment.schema > docs/reference/experiment.schema.json"


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_satisfy_the_schema(name):
    schema = json.loads(json_schema())
    Draft202012Validator.check_schema(schema)
    # a date of TOML is a text of JSON
    document = json.loads(json.dumps(tomllib.loads((ROOT / name).read_text(encoding="utf-8")), default=str))
    assert list(Draft202012Validator(schema).iter_errors(document)) == []


@pytest.mark.parametrize("document", [{}, {"cells": [], "treshold": 1}, {"cells": [{"clients": 0}]}])
def test_bad_documents_do_not(document):
    assert list(Draft202012Validator(json.loads(json_schema())).iter_errors(document))


def test_every_key_is_described():
    schema = json.loads(json_schema())
    tables = [schema, *schema["$defs"].values()]
    missing = [
        key
        for table in tables
        for key, value in table["properties"].items()
        if not value.get("description", "").strip()
    ]
    assert missing == []


def test_quoted_keys_may_stand_wherever_they_are_read():
    document = {
        "common": {"settings.jit": "off"},
        "environments": [{"name": "a", "settings.jit": "on"}],
        "cells": [{"options.width": 1}],
    }
    assert list(Draft202012Validator(json.loads(json_schema())).iter_errors(document)) == []
