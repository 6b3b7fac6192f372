"""`pgstrata init`: a file for each question, which is planned as it is written."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer

from pgstrata.app.init import QUESTIONS, load_template
from pgstrata.cli.main import app
from pgstrata.model.plan import HostCapacity
from program import pgstrata

GB = 1 << 30
SMALL = HostCapacity(memory=4 * GB, cpus=2, free_disk=20 * GB)
LARGE = HostCapacity(memory=512 * GB, cpus=128, free_disk=1000 * GB)
EXPERIMENTS = [question for question in QUESTIONS if question != "live"]


def test_the_questions_are_those_that_users_have():
    assert QUESTIONS == (
        "versions", "settings", "checksums", "pages", "file-systems", "builds", "machines", "price", "live",
    )  # fmt: skip


@pytest.mark.parametrize("machine", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("question", EXPERIMENTS)
def test_a_file_is_planned_unchanged(question, machine, tmp_path, monkeypatch):
    monkeypatch.setattr("pgstrata.app.question.capacity_here", lambda: machine)
    done = pgstrata(tmp_path, "init", question)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{question}.toml is written")
    planned = pgstrata(tmp_path, "plan", f"{question}.toml")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "cannot be asked" not in planned.stdout


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_file_begins_with_what_it_asks_and_fits_into_a_window(question):
    template = load_template(question)
    assert template.text.startswith(f"# {template.asks}\n#\n")
    assert max(map(len, template.text.splitlines())) <= 120


def test_without_a_question_it_is_that_of_versions(tmp_path):
    assert pgstrata(tmp_path, "init").stdout.startswith("versions.toml is written")
    assert pgstrata(tmp_path, "init", "mine.toml").stdout.startswith("mine.toml is written")
    assert (tmp_path / "mine.toml").read_text() == (tmp_path / "versions.toml").read_text()


def test_another_file_can_be_named(tmp_path):
    assert pgstrata(tmp_path, "init", "settings", "mine.toml").returncode == 0
    assert "shared_buffers" in (tmp_path / "mine.toml").read_text()


def test_questions_are_listed_with_what_they_need(tmp_path):
    lines = pgstrata(tmp_path, "init", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(QUESTIONS)
    assert all(line.split("  ")[-1].endswith((".", "?")) for line in lines)
    assert "root" in next(line for line in lines if line.startswith("pages"))
    assert not list(tmp_path.glob("*.toml"))


def test_the_manual_shows_what_is_printed(tmp_path):
    manual = (Path(__file__).parents[2] / "docs/how-to/README.md").read_text()
    (block,) = re.findall(r"^```console\n\$ pgstrata init --list\n(.*?)^```$", manual, re.MULTILINE | re.DOTALL)
    assert block.split("$ pgstrata init settings\n") == [
        pgstrata(tmp_path, "init", *words).stdout for words in (["--list"], ["settings"])
    ]


def test_no_file_is_overwritten(tmp_path):
    (tmp_path / "settings.toml").write_text("mine")
    done = pgstrata(tmp_path, "init", "settings")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not overwritten" in done.stderr
    assert (tmp_path / "settings.toml").read_text() == "mine"


def test_an_unknown_question_names_the_nearest(tmp_path):
    done = pgstrata(tmp_path, "init", "setings")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'settings'?" in done.stderr
    assert "file-systems" in done.stderr
    assert not (tmp_path / "setings").exists()


def test_commands_for_a_live_server_are_those_that_there_are(tmp_path):
    assert "live.sh is written" in pgstrata(tmp_path, "init", "live").stdout
    assert subprocess.run(["sh", "-n", "live.sh"], cwd=tmp_path).returncode == 0
    program = typer.main.get_command(app)
    given = [shlex.split(line) for line in (tmp_path / "live.sh").read_text().splitlines() if line.startswith("pg")]
    assert {words[1] for words in given} == {"watch", "explain", "window", "incidents", "workload"}
    for _, name, *words in given:
        group, rest = (program.commands[name], words[1:]) if name == "workload" else (program, words)
        command = group.commands[words[0] if name == "workload" else name]
        command.make_context(name, list(rest))  # an unknown option raises
