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


def test_the_page_of_a_kept_study_draws_its_versions_and_no_axis_that_it_does_not_have(tmp_path):
    study = kept.unpack("ordered", tmp_path)
    assert kept.pgstrata(tmp_path, "reparse", study).returncode == 0
    page = tmp_path / "page.html"
    assert kept.pgstrata(tmp_path, "report", study, "-o", page, "--along", "server").returncode == 0
    text = page.read_text()
    assert "By server, with a line for each number of clients" in text
    assert "with a line for each environment" not in text
    refused = kept.pgstrata(tmp_path, "report", study, "-o", page, "--along", "clients")
    assert refused.returncode == 2
    assert "use one of server" in refused.stderr


def test_a_kept_study_is_explained_like_an_archive(tmp_path):
    study = kept.unpack("causes", tmp_path)
    assert kept.pgstrata(tmp_path, "reparse", study).returncode == 0
    found = json.loads(kept.pgstrata(tmp_path, "explain", study, "--json").stdout)
    assert (found["outcome"], found["window"]["environment"], found["window"]["runs"]) == ("incident", "injected", 5)
    (change,) = found["plans"]["changes"]
    assert change["changes"] == ["Index Scan using orders_customer on orders -> Seq Scan on orders"]
    assert found["causes"][0]["kind"] == "more blocks a call"
    assert found["causes"][0]["statements"] == [change["statement"]]
    extra = found["changes"][1]["value"] - found["changes"][1]["reference"]
    assert sum(row["difference"] for row in found["rows"]) == pytest.approx(extra)
