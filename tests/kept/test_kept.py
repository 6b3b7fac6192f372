"""Studies of the former version give the same findings, byte by byte the same evidence included."""

import importlib.util
import json
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("kept", Path(__file__).with_name("kept.py"))
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)


@pytest.mark.parametrize("name", kept.NAMES)
def test_a_kept_study_gives_what_it_gave(name, tmp_path):
    expected = json.loads((kept.HERE / f"{name}.json").read_text())
    assert json.loads(json.dumps(kept.derive(name, tmp_path))) == expected


def test_archives_and_expectations_are_small():
    files = [kept.HERE / f"{name}{kind}" for name in kept.NAMES for kind in (".tar.xz", ".json")]
    assert sum(file.stat().st_size for file in files) <= 5 * 1024**2
