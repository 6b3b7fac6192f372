"""What the benchmark of a newcomer types, where it keeps things, and which answers it takes for decided."""

import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def newcomer():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module("newcomer")


def test_it_types_what_stands_in_the_readme(newcomer):
    assert newcomer.read_quick_start(README.read_text()) == (["make demo"], "demo/study/report.html")


def test_output_that_is_shown_is_not_typed(newcomer):
    text = "```text\n$ no\n```\n```console\n$ make demo\nready\n$ open it\n```\nThis writes `a/b.html`.\n"
    assert newcomer.read_quick_start(text) == (["make demo", "open it"], "a/b.html")


@pytest.mark.parametrize("text", ["# Nothing", "```console\n$ make demo\n```\nNo report.\n"])
def test_a_readme_without_a_way_to_a_report_is_a_wrong_turn(newcomer, text):
    with pytest.raises(newcomer.WrongTurnError):
        newcomer.read_quick_start(text)


def test_nothing_is_found_or_left_outside_of_its_folder(newcomer, tmp_path):
    ours = f"{sys.prefix}/bin"
    given = {
        "PATH": f"{ours}:/usr/bin", "HOME": "/root", "XDG_CACHE_HOME": "/c", "PGSTRATA_DATA": "/d", "PIP_CACHE_DIR": "/p",
        "PIP_INDEX_URL": "https://mirror", "VIRTUAL_ENV": "/v", "MAKEFLAGS": "k", "ARGS": "-x", "PGSTRATA_LOCK": "/l",
    }  # fmt: skip
    assert newcomer.own_environment(given, tmp_path) == {
        "PATH": "/usr/bin", "HOME": f"{tmp_path}/home", "PIP_INDEX_URL": "https://mirror", "PGSTRATA_LOCK": "/l",
        "PGSTRATA_CACHE": f"{tmp_path}/cache", "PGSTRATA_STATE": f"{tmp_path}/state", "PGSTRATA_DATA": f"{tmp_path}/data",
    }  # fmt: skip


def test_a_path_that_ends_early_is_no_figure(newcomer, monkeypatch):
    def walk(self):
        self.took.append(("git clone", 2.0))
        raise newcomer.WrongTurnError("`make demo` ended with 2: no network")

    monkeypatch.setattr(newcomer.Newcomer, "walk", walk)
    (figure,) = newcomer.measure_newcomer()
    assert not figure.reached
    assert list(figure.notes) == ["git clone: 2.0 s", "`make demo` ended with 2: no network"]
    monkeypatch.setattr(
        newcomer.Newcomer, "walk", lambda self: self.took.extend([("git clone", 2.0), ("make demo", 200.0)])
    )
    (figure,) = newcomer.measure_newcomer()
    assert (figure.value, figure.reached) == (202.0, True)


def test_a_study_without_the_verdicts_of_the_demo_is_not_the_answer(newcomer, tmp_path):
    importlib.import_module("synthetic").write_little_study(tmp_path / "study")
    with pytest.raises(newcomer.WrongTurnError, match=r"18-more-work: no verdict, .*18-control: no verdict"):
        newcomer.judge(tmp_path / "study")
