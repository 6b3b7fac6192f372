"""Completion in bash, zsh and fish: what is offered, and that a shell gets along with the script."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from pgstrata.app.question import plan_text
from pgstrata.cli.completion import _LEVELS, _SETTINGS
from pgstrata.experiment.compose import Wishes, compose_try
from pgstrata.workloads import builtin_workloads
from program import pgstrata
from stored import write_study

FILES = (
    "studies/one/plan.json", "studies/one/evidence/b01/plan.json", "studies/two/merged.json", "prod/archive.sqlite",
    "sent.tar.xz", ".hidden/plan.json", "other/notes.txt",
)  # fmt: skip


@pytest.fixture
def place(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def offered(place, line):
    """What fish gets, which keeps words as they are."""
    names = {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_ARGS": f"pgstrata {line}"}
    done = pgstrata(place, environ={"_PGSTRATA_COMPLETE": "complete_fish", **names})
    assert (done.returncode, done.stderr) == (0, "")
    return [each.split("\t")[0] for each in done.stdout.split("\n") if each]


def offered_in_bash(place, *words):
    """What bash gets, whose words are also broken at `=` and `:`."""
    names = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = pgstrata(place, environ={"_PGSTRATA_COMPLETE": "complete_bash", **names})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("command", ["show", "report", "gate"])
def test_studies_and_bundles_are_offered_by_their_path(place, command):
    assert offered(place, f"{command} ") == ["sent.tar.xz", "studies/one", "studies/two"]
    assert offered(place, f"{command} studies/o") == ["studies/one"]
    assert offered(place, f"{command} {place}/studies/") == [f"{place}/studies/one", f"{place}/studies/two"]
    assert offered(place, f"{command} nowhere/") == []


HOSTILE = (
    "x;touch made",
    "x$(touch made)",
    "\\$(touch made)",
    "x y",
    "x'y",
    "~",
    "x*",
    "-o",
    "x\ny",
    "x\x1b[2J",
    "\u202ex",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_folders_that_a_shell_would_not_take_for_themselves_are_not_offered(place, name):
    (place / "studies" / name).mkdir()
    (place / "studies" / name / "plan.json").touch()
    (place / f"{name}.tar.xz").touch()
    assert offered(place, "show ") == ["sent.tar.xz", "studies/one", "studies/two"]
    assert offered_in_bash(place, "pgstrata", "show", "studies/") == ["studies/one", "studies/two"]


def test_levels_and_names_of_a_study_that_a_shell_would_not_take_for_themselves_are_not_offered(place):
    write_study(place, QUESTION, lambda plan, run: None)
    file = place / "study/plan.json"
    file.write_text(file.read_text().replace("8MB", "$(touch made)").replace("pg16-work-mem-4mb", "x`touch made`"))
    assert offered(place, "show study --filter work_mem=") == ["work_mem=4MB", "work_mem=16MB"]
    assert offered(place, "show study --filter work_m") == ["work_mem=4MB", "work_mem=16MB"]
    assert not any("`" in each for each in offered(place, "explain study --environment "))


@pytest.mark.parametrize("study", ["~nobody-has-this-name", "endless", "huge", "pipe"])
def test_a_study_that_cannot_be_read_offers_nothing(place, study):
    for name in ("endless", "huge", "pipe"):
        (place / name).mkdir()
    (place / "endless/plan.json").symlink_to("/dev/zero")
    (place / "huge/plan.json").touch()
    os.truncate(place / "huge/plan.json", 1 << 40)
    os.mkfifo(place / "pipe/plan.json")
    assert offered(place, f"explain {study} --environment ") == []


def test_commands_for_folders_alone_are_offered_no_bundles(place):
    assert offered(place, "reparse ") == ["studies/one", "studies/two"]
    assert offered(place, "run x.toml --study s") == ["studies/one", "studies/two"]


def test_what_can_be_opened_is_offered_with_archives(place):
    assert offered(place, "open ") == ["sent.tar.xz", "prod", "studies/one", "studies/two"]


def test_names_that_pgstrata_knows_are_offered(place):
    assert offered(place, "init p") == ["pages", "price"]
    assert offered(place, "try --workload oltp-point") == ["oltp-point-select"]
    assert {"select-only", "tpcc", "analytic"} <= set(offered(place, "floor -w "))
    assert "data" not in offered(place, "floor -w ")
    assert offered(place, "gate x --metric latency_p9") == ["latency_p90", "latency_p95", "latency_p99"]
    assert offered(place, "bisect x.toml --factor check") == ["checksums"]
    assert offered(place, "floor --server maven:1")[0] == "maven:10"
    assert "17" in offered(place, "servers fetch 1")


def test_an_assignment_is_completed_level_by_level(place):
    assert offered(place, "try ser") == offered(place, "try server=") != []
    assert offered(place, "try c")[0].endswith("=")
    assert offered(place, "try cpu.q") == ["cpu.quota="]
    assert offered(place, "try shared_b") == ["shared_buffers="]
    assert offered(place, "try pages=") == ["pages=4kB", "pages=2MB", "pages=1GB"]
    assert offered(place, "try pages=2MB,") == ["pages=2MB,4kB", "pages=2MB,1GB"]
    assert offered(place, "try connection=t") == ["connection=tcp", "connection=tls"]
    assert offered(place, "try server=16,maven:9") == ["server=16,maven:9.6"]
    assert offered(place, "try nonsense=") == []


QUESTION = """
question = "Which?"
blocks = 2
[factors]
server = ["16", "18"]
"settings.work_mem" = ["4MB", "8MB", "16MB"]
[[cells]]
workload = "select-only"
scale = 1
clients = [1, 2]
run = "1s"
"""


def test_axes_of_the_study_on_the_command_line_are_offered(place):
    write_study(place, QUESTION, lambda plan, run: None)
    assert offered(place, "report study --along ") == ["server", "work_mem", "clients"]
    assert offered(place, "report --along th") == ["thp"]
    assert offered(place, "report study --along clients --along s") == ["server"]
    assert offered(place, "report study --along sc") == []
    assert offered_in_bash(place, "pgstrata", "report", "study", "--along", "cl") == ["clients"]
    assert "clients" in offered(place, "report nowhere --along ")
    (place / "study/plan.json").write_text("{")
    assert offered(place, "report study --along ") == []


def test_levels_of_the_study_on_the_command_line_are_offered(place):
    write_study(place, QUESTION, lambda plan, run: None)
    assert offered(place, "show study --filter ") == ["server=", "work_mem=", "workload=", "scale=", "clients="]
    assert offered(place, "show study --filter server=") == ["server=16", "server=18"]
    assert offered(place, "show study --filter work_mem=8MB,") == ["work_mem=8MB,4MB", "work_mem=8MB,16MB"]
    assert offered(place, "show study --filter pages=") == []
    assert offered(place, "show study --filter se") == ["server=16", "server=18"]
    assert offered(place, "show study --by w") == ["work_mem", "workload"]
    filtered = ("pgstrata", "show", "study", "--filter", "server", "=")
    assert offered_in_bash(place, *filtered, "1") == ["16", "18"]
    assert offered_in_bash(place, *filtered, "16,") == ["16,18"]
    assert offered_in_bash(place, "pgstrata", "show", "study", "--filter", "=", "server", "=", "1") == ["16", "18"]
    assert offered(place, "show nowhere --filter pages=2") == ["pages=2MB"]
    assert "clients" in offered(place, "show nowhere --by ")
    (place / "study/plan.json").write_text("{")
    assert offered(place, "show study --filter server=") == []
    assert offered(place, "show study --by ") == []


def test_environments_and_cells_of_the_study_on_the_command_line_are_offered(place):
    plan = write_study(place, QUESTION, lambda plan, run: None)
    names = [each.name for each in plan.experiment.environments]
    assert offered(place, "explain study --environment ") == names
    assert offered(place, "explain study --environment x --against ") == names
    assert offered(place, "explain study --cell select") == [cell.identity for cell in plan.experiment.cells]
    assert offered(place, "explain prod --environment ") == []


def test_words_that_an_option_takes_are_offered(place):
    assert offered(place, "show --sort ") == ["effect", "name", "cell"]
    assert offered(place, "show --format m") == ["markdown"]


def test_bash_gets_only_what_follows_its_own_break_of_the_word(place):
    assert offered_in_bash(place, "pgstrata", "try", "pages", "=") == ["4kB", "2MB", "1GB"]
    assert offered_in_bash(place, "pgstrata", "try", "pages", "=", "2MB,4") == ["2MB,4kB"]
    assert offered_in_bash(place, "pgstrata", "try", "server", "=", "16,maven", ":", "9") == ["9.6"]
    assert offered_in_bash(place, "pgstrata", "servers", "fetch", "maven", ":", "9") == ["9.6"]
    assert offered_in_bash(place, "pgstrata", "show", "studies/o") == ["studies/one"]
    assert offered_in_bash(place, "pgstrata", "gate", "x", "--metric", "=", "latency_p95") == ["latency_p95"]
    assert offered_in_bash(place, "pgstrata", "try", "pages", "=", "2MB", "--workload", "oltp-p") == [
        "oltp-point-select"
    ]


@pytest.mark.parametrize("factor", _LEVELS)
def test_levels_that_are_offered_are_levels(factor, tmp_path):
    text = compose_try([f"{factor}={','.join(_LEVELS[factor])}"], Wishes(blocks=2)).text
    plan = plan_text(text, "x.toml", builtin_workloads(), folder=tmp_path)
    assert len(plan.experiment.environments) == len(_LEVELS[factor])


def test_settings_that_are_offered_are_no_factors():
    assert compose_try([f"{name}=1,2" for name in _SETTINGS]).text.count('"settings.') == len(_SETTINGS)


def test_a_folder_with_very_many_files_does_not_keep_the_shell_waiting(place, monkeypatch):
    monkeypatch.setattr("pgstrata.cli.completion._MOST_FILES", 20)
    for number in range(100):
        (place / f"a{number}").mkdir()
    looked = []
    listed = os.scandir
    monkeypatch.setattr("pgstrata.cli.completion.os.scandir", lambda path: (looked.append(path), listed(path))[1])
    offered(place, "show ")
    assert len(looked) <= 2


@pytest.fixture
def program(place):
    """A folder for PATH in which the program has its name."""
    (place / "bin").mkdir()
    file = place / "bin" / "pgstrata"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c \'import sys; sys.argv[0] = "pgstrata"; '
                    'from pgstrata.__main__ import main; main()\' "$@"\n')  # fmt: skip
    file.chmod(0o755)
    return place


def run_shell(program, shell, script):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    environ = {**os.environ, "PATH": f"{program}/bin:{os.environ['PATH']}", "HOME": str(program)}
    done = subprocess.run([shell, "-c", script], cwd=program, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


SHOW = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 pgstrata --show-completion"


def test_bash_completes(program):
    script = f"""
    eval "$({SHOW} bash)"
    COMP_WORDS=(pgstrata init pr) COMP_CWORD=2
    $(complete -p pgstrata | sed 's/.*-F //; s/ .*//') pgstrata
    echo "${{COMPREPLY[@]}}"
    """
    assert run_shell(program, "bash", script)[-2] == "price"


def test_fish_completes(program):
    script = f"{SHOW} fish | source; complete -C 'pgstrata init pr'; complete -C 'pgstrata try server=16,maven:9'"
    assert [line.split("\t")[0] for line in run_shell(program, "fish", script) if line] == [
        "price",
        "server=16,maven:9.6",
    ]


def test_zsh_takes_the_script(program):
    script = f'autoload -U compinit; compinit -u; eval "$({SHOW} zsh)"; print $_comps[pgstrata]'
    assert run_shell(program, "zsh", script)[-2] == "_pgstrata_completion"
