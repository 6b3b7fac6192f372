"""From a file to an experiment: the files that it names."""

from __future__ import annotations

import pytest

from pgstrata.app import question
from pgstrata.errors import ExperimentError, UsageError
from pgstrata.model import sizes
from pgstrata.model.plan import HostCapacity
from pgstrata.workloads import builtin_workloads

CAPACITY = HostCapacity(memory=32 << 30, cpus=4, free_disk=100 << 30)


def parse(folder, *scripts):
    cells = (f'[[cells]]\nscripts = [{{ file = "{name}" }}]\nscale = {n}\nclients = 2\n' for n, name in scripts)
    text = '[factors]\nserver = ["16", "18"]\n' + "".join(cells)
    return question.parse_text(text, "e.toml", builtin_workloads(), CAPACITY, folder=folder)


def test_a_script_is_read_once_however_often_it_is_named(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(question, "read_regular", lambda path, *, most: read.append(path) or b"SELECT 1;")
    assert len(parse(tmp_path, *((n, "s.sql") for n in range(1, 10))).cells) == 9
    assert read == [tmp_path / "s.sql"]


def test_scripts_that_are_too_large_together_are_refused_with_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "SCRIPTS", 1 << 20)
    for name in "ab":
        (tmp_path / name).write_text("SELECT 1;\n" * 60_000)
    with pytest.raises(
        ExperimentError, match="the file 'b' cannot be read: all scripts together are larger than 1 MiB"
    ):
        parse(tmp_path, (1, "a"), (2, "b"))


@pytest.mark.parametrize("server", ["prefix:~nobody-of-that-name/pg", "build:~nobody-of-that-name/src"])
def test_a_home_folder_that_does_not_exist_is_a_message(tmp_path, server):
    text = (
        f'[factors]\nserver = ["{server}", "{server}2"]\n[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
    )
    with pytest.raises(UsageError, match="there is no home folder for ~nobody-of-that-name"):
        question.parse_text(text, "e.toml", builtin_workloads(), CAPACITY, folder=tmp_path)
