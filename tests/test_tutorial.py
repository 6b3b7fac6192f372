"""The tutorial is followed as far as that goes without a server; the rest is what tests of whole experiments do."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

from program import pgstrata

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
TOML, CONSOLE = (
    re.findall(rf"^```{kind}\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL) for kind in ("toml", "console")
)
COMMANDS = [line.split() for block in CONSOLE for line in re.findall(r"^\$ pgstrata (.+)$", block, re.MULTILINE)]
NEED_SERVERS = {"servers", "doctor", "try", "run"}
ON_A_STUDY = {"show", "report"}

_spec = importlib.util.spec_from_file_location("kept", ROOT / "tests" / "kept" / "kept.py")
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)


def named(command):
    (words,) = (words for words in COMMANDS if words[0] == command)
    return words


@pytest.fixture
def with_question(tmp_path):
    done = pgstrata(tmp_path, *named("init"))
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_each_command_is_followed_here_or_needs_servers():
    assert {words[0] for words in COMMANDS} == NEED_SERVERS | ON_A_STUDY | {"init", "plan"}


def test_init_writes_the_file_that_is_shown(with_question):
    written = tomllib.loads((with_question / "question.toml").read_text())
    assert written.pop("common") == {"settings": {}}, "the tutorial leaves out a section that is empty"
    assert written == tomllib.loads(TOML[0])


def test_the_plan_is_that_of_the_run_that_is_shown(with_question):
    done = pgstrata(with_question, *named("plan"), "--json")
    assert done.returncode == 0, done.stderr
    visits = [visit for block in json.loads(done.stdout)["blocks"] for visit in block["visits"]]
    runs = [run["identity"] for visit in visits for stage in visit["stages"] for run in stage["runs"]]
    number, first = re.search(r"^\[1/(\d+)\] (\S+)", TUTORIAL, re.MULTILINE).groups()
    assert (len(runs), runs[0]) == (int(number), first)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] in ON_A_STUDY], ids=" ".join)
def test_a_study_is_shown_by_the_commands_that_are_shown(words, tmp_path):
    study = kept.unpack("slices", tmp_path)
    assert pgstrata(tmp_path, "reparse", study).returncode == 0
    done = pgstrata(tmp_path, *(study if "/" in word else word for word in words))
    assert done.returncode == 0, done.stderr
    assert (study / "report.html").exists() is (words[0] == "report")
