"""The tutorial is followed as far as that goes without a server; the rest is in tests/integration/test_tutorial.py."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

from program import pgstrata
from tutorial import PGSTRATA, STEPS, TEXT, assert_printed, blocks, shape_of, steps_of

ROOT = Path(__file__).parents[1]
HERE = {"init", "plan", "show", "report", "servers list"}
ON_SERVERS = {"servers fetch", "servers check", "doctor", "try", "run", "show", "report"}

_spec = importlib.util.spec_from_file_location("kept", ROOT / "tests" / "kept" / "kept.py")
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)


@pytest.fixture
def with_question(tmp_path):
    (step,) = steps_of("init")
    done = pgstrata(tmp_path, *step.words)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_each_command_is_followed():
    names = {" ".join(step.words[: 2 if step.words[0] == "servers" else 1]) for step in PGSTRATA}
    assert names == HERE | ON_SERVERS
    others = [step.command for step in STEPS if not step.words]
    assert others[:2] == ["make bootstrap", ". .venv/bin/activate"]
    assert [command.split()[0] for command in others[2:]] == ["sed"]


def test_a_shape_is_that_of_its_line_and_of_no_other():
    shape = re.compile(shape_of("[1/39] b01/pg18/simple-update-s10-c4   …"))
    assert shape.fullmatch("[1/3] b01/pg18/simple-update-s1-c4 1,204 tps")
    assert not shape.fullmatch("[1/3] b01/pg18/select-only-s1-c4 1,204 tps")
    assert re.fullmatch(shape_of("all   26.1   29.5    +3.4  1.0"), "all 9.0 12 -3.1 0.4")
    with pytest.raises(AssertionError, match="'a 1' is not printed"):
        assert_printed(["b 1", "…", "a 1"], "a 2\nb 3\n")
    assert_printed(["a 1", "…", "b 1"], "x\na\n22\ny\nb 3\n")


def test_servers_are_listed_as_is_shown(tmp_path):
    (step,) = steps_of("servers", "list")
    done = pgstrata(tmp_path, *step.words)
    assert done.returncode == 0, done.stderr
    assert_printed(step.shown, done.stdout)


def test_init_writes_the_file_that_is_shown(with_question):
    written = tomllib.loads((with_question / "question.toml").read_text())
    assert written.pop("common") == {"settings": {}}, "the tutorial leaves out a section that is empty"
    assert written == tomllib.loads(blocks("toml")[0])


def test_the_plan_is_that_of_the_run_that_is_shown(with_question):
    (step,) = steps_of("plan")
    done = pgstrata(with_question, *step.words, "--json")
    assert done.returncode == 0, done.stderr
    visits = [visit for block in json.loads(done.stdout)["blocks"] for visit in block["visits"]]
    runs = [run["identity"] for visit in visits for stage in visit["stages"] for run in stage["runs"]]
    number, first = re.search(r"^\[1/(\d+)\] (\S+)", TEXT, re.MULTILINE).groups()
    assert (len(runs), runs[0]) == (int(number), first)


@pytest.mark.parametrize("step", [*steps_of("show"), *steps_of("report")], ids=lambda step: step.command)
def test_a_study_is_shown_by_the_commands_that_are_shown(step, tmp_path):
    study = kept.unpack("slices", tmp_path)
    assert pgstrata(tmp_path, "reparse", study).returncode == 0
    done = pgstrata(tmp_path, *(study if "/" in word else word for word in step.words))
    assert done.returncode == 0, done.stderr
    assert (study / "report.html").exists() is (step.words[0] == "report")
    # the study is an older one than the demo: other parts of its time are resolved
    assert_printed([line for line in step.shown if line.startswith(("µs", "---", "all"))], done.stdout)


def test_the_table_of_an_answer_has_the_columns_that_are_shown(tmp_path):
    study = kept.unpack("slices", tmp_path)
    assert pgstrata(tmp_path, "reparse", study).returncode == 0
    (table,) = (block for block in blocks("text") if "\nenvironment " in block)
    head = [line for line in table.splitlines() if line.startswith(("environment", "---"))]
    assert_printed(head, pgstrata(tmp_path, "show", study).stdout)
