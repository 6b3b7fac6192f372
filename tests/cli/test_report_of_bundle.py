"""The report of a bundle, whose author chose the name of the study, takes no file's place."""

import importlib.util
from pathlib import Path

from program import pgstrata

_spec = importlib.util.spec_from_file_location("kept", Path(__file__).parents[1] / "kept" / "kept.py")
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)


def test_a_report_whose_name_the_user_did_not_choose_replaces_nothing(tmp_path):
    study = kept.unpack("hosts", tmp_path)
    made = pgstrata(tmp_path, "bundle", str(study), "-o", "b.tar.xz")
    assert made.returncode == 0, made.stderr
    mine = tmp_path / f"{Path(study).name}.html"
    mine.write_text("mine")
    done = pgstrata(tmp_path, "report", "b.tar.xz")
    assert done.returncode != 0
    assert "the file exists" in done.stderr
    assert "-o" in done.stderr
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.glob(".pgstrata-*")) == []
    assert pgstrata(tmp_path, "report", "b.tar.xz", "-o", mine.name).returncode == 0
    assert mine.read_text() != "mine"
