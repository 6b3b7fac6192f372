"""`pgstrata open`: the report of a study, a bundle or an archive, and the browser that it is shown in."""

import shutil
import stat
from pathlib import Path

import pytest

from archives import Second, make_archive, session
from program import pgstrata
from stored import write_study

QUESTION = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "16"
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("open")
    write_study(place, QUESTION, lambda *_: {"tps": 1000.0})
    assert pgstrata(place, "bundle", "study", "-o", "sent.tar.xz").returncode == 0
    make_archive(place / "prod", 120, lambda _: Second({session("77"): 1}))
    return place


def open_(place, *arguments, **environ):
    nowhere = {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", "SSH_CONNECTION": ""}
    return pgstrata(place, "open", *arguments, environ=nowhere | environ)


def written(done):
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return line.removeprefix("report: ")


def test_the_report_of_a_study_lies_in_its_folder_and_its_browser_gets_it_as_one_word(place):
    folder = place / "a $(touch x) b"
    shutil.copytree(place / "study", folder)
    (place / "browse").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{place}/given\n')
    (place / "browse").chmod(0o755)
    done = open_(place, folder.name, BROWSER=str(place / "browse"))
    assert written(done) == f"{folder.name}/report.html"
    assert done.stderr == ""
    assert (place / "given").read_text() == f"{(folder / 'report.html').as_uri()}\n"
    assert not (place / "x").exists()


@pytest.mark.parametrize("name", ["sent.tar.xz", "prod"])
def test_the_report_of_a_bundle_or_an_archive_lies_where_nobody_else_reads_it(place, name):
    page = Path(written(open_(place, name)))
    assert page.parent == place / "cache" / "reports"
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert page.read_text().startswith("<!doctype html>")
    assert written(open_(place, name)) == str(page), "the same file each time"


def test_another_place_can_be_named(place):
    assert written(open_(place, "prod", "-o", "prod.html")) == "prod.html"
    assert (place / "prod.html").is_file()


def test_without_a_browser_it_says_so_and_over_ssh_how_to_fetch_the_page(place):
    done = open_(place, "study")
    assert done.stderr.startswith("not opened: ")
    assert "scp" not in done.stderr
    done = open_(place, "study", SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22")
    assert f":{place}/study/report.html" in done.stderr.splitlines()[1]
    assert done.stderr.splitlines()[1].startswith("fetch it on your own machine: scp ")


def test_what_is_no_study_is_refused(place):
    done = open_(place, "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no study here" in done.stderr
