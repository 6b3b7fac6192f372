"""The gallery: reports that are small and name nobody, pictures that stand alone, and the page that leads to them."""

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from desk import Desk
from pgstrata.errors import PgstrataError
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.model import Figure, OnPage, Section
from pgstrata.report.blocks.page import emit_page

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
PUBLISHED = sorted(path.parent for path in GALLERY.glob("*/report.html"))


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


gallery = load("gallery", "scripts/gallery.py")


@pytest.fixture(scope="module")
def document():
    return make_document(Desk().answer(blocks=3, seconds=10))


def exhibit(name="one", **changes):
    fields = {
        "question": "Is it faster?", "answer": "18 is faster.", "summary": "12 runs", "page": "<p>page", "picture": "<svg/>",
        "left_out": (),
    }  # fmt: skip
    return gallery.Exhibit(name=name, **{**fields, **changes})


def test_a_report_that_is_small_enough_stays_whole(document):
    page, left = gallery.fit_page(document, 10_000_000)
    assert left == ()
    assert page.split() == emit_page(document).split()


def test_a_larger_one_loses_charts_of_the_course_first_and_says_so(document):
    whole = len(emit_page(document).encode())
    page, left = gallery.fit_page(document, whole - 1000)
    assert len(page.encode()) <= whole - 1000
    assert set(left) < {
        "Block by block",
        "Over time",
        "What host and server did meanwhile",
        "How the verdicts came about",
    }
    assert f"it lacks: {', '.join(left)}." in page
    for title in left:
        assert f"<h2>{title}" not in page
    assert "<h2>Cell by cell" in page or "<h2>What was measured" in page


def test_a_report_whose_answer_alone_is_too_large_is_refused(document):
    with pytest.raises(PgstrataError, match="too large"):
        gallery.fit_page(document, 1000)


def test_the_first_chart_is_found_wherever_it_lies():
    figure = Figure(title="t", label="l", draw=lambda: "<svg></svg>")
    assert gallery.find_figure((Section("a", ()), OnPage(lambda: (Section("b", (figure,)),)))) is figure
    assert gallery.find_figure(()) is None


def test_a_picture_is_a_file_of_its_own_that_follows_a_dark_page(document):
    figure = gallery.find_figure(document.sections)
    picture = gallery.stand_alone(figure.svg, 'a < b & "c"')
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width")
    assert root[0].text == 'a < b & "c"'
    assert "prefers-color-scheme:dark" in root[1].text
    assert not re.search("https?:(?!//www.w3.org/2000/svg)", picture)
    with pytest.raises(ValueError, match="no SVG"):
        gallery.stand_alone("<p>", "x")


def test_names_are_found_as_words_and_nowhere_else():
    assert gallery.names_in("on db7, by kim", ("db7", "kim", "ki")) == ("db7", "kim")
    assert gallery.names_in("db71 kimono", ("db7", "kim")) == ()


def test_of_the_command_line_of_a_kernel_only_what_bears_on_performance_is_shown():
    line = (
        "BOOT_IMAGE=/vmlinuz root=UUID=1 mitigations=off transparent_hugepage=never quiet -- --token=secret hugepages=1"
    )
    assert gallery.keep_parameters(line) == "mitigations=off transparent_hugepage=never"
    study = Desk().answer(blocks=1).study
    study = replace(study, host=replace(study.host, facts={**study.host.facts, "host.cmdline": line}))
    assert (
        gallery.shorten_command_lines(study).host.facts["host.cmdline"] == "mitigations=off transparent_hugepage=never"
    )
    assert gallery.shorten_command_lines(study).host.facts["host.cpus"] == "2"


def test_the_index_has_question_answer_picture_and_report_of_each_study():
    text = gallery.render_index(
        [exhibit(left_out=("Over time",)), exhibit("two", picture="", question="<b> *or* [c]?")]
    )
    assert "## Is it faster?\n\n18 is faster.\n" in text
    assert "![18 is faster.](one/picture.svg)" in text
    assert "[The whole report](one/report.html). It lacks Over time, to stay small." in text
    assert "two/picture.svg" not in text
    assert r"## \<b\> \*or\* \[c\]?" in text


def test_the_gallery_holds_the_given_studies_and_no_former_ones(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("x")
    gallery.write_gallery([exhibit("one"), exhibit("two")], tmp_path)
    gallery.write_gallery([exhibit("two", picture="")], tmp_path)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "README.md", "mine", "mine/notes.txt", "two", "two/report.html"
    ]  # fmt: skip


def test_studies_have_names_of_their_own(tmp_path):
    studies = [tmp_path / "Kernels of 2026", tmp_path / "a/study", tmp_path / "b/study", tmp_path / "c.tar.xz"]
    assert gallery.name_exhibits(studies) == ("kernels-of-2026", "study", "study-2", "c")


def test_a_real_study_becomes_an_exhibit_without_names(tmp_path):
    kept = load("kept_studies", "tests/kept/kept.py")
    study = kept.unpack("causes", tmp_path)
    (tmp_path / "made").mkdir()
    found = gallery.make_exhibit(study, tmp_path / "made", "causes")
    assert found.name == "causes"
    assert len(found.page.encode()) <= gallery.LARGEST
    assert found.question == "Why is the injected one slower? (dropped-index)"
    assert found.answer
    ET.fromstring(found.picture)
    assert gallery.names_in(found.page + found.picture, gallery.own_names()) == ()
    assert not re.search(r"/(?:home|root|work)/", found.page)


def test_names_that_are_left_are_an_error(tmp_path, monkeypatch):
    kept = load("kept_studies", "tests/kept/kept.py")
    study = kept.unpack("causes", tmp_path)
    monkeypatch.setattr(gallery, "names_in", lambda text, names: ("db7",))
    (tmp_path / "made").mkdir()
    with pytest.raises(PgstrataError, match="the report names 'db7'") as caught:
        gallery.make_exhibit(study, tmp_path / "made", "causes")
    assert "--hide db7" in caught.value.remedy


def test_a_folder_without_a_study_is_told_without_a_traceback(tmp_path, capsys):
    assert gallery.main([str(tmp_path)]) != 0
    assert capsys.readouterr().err.startswith("gallery: ")


@pytest.mark.parametrize("place", PUBLISHED, ids=[place.name for place in PUBLISHED])
def test_what_is_published_is_small_and_names_no_place_of_a_machine(place):
    page = (place / "report.html").read_text()
    assert len(page.encode()) <= gallery.LARGEST
    assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp)/", page)
    for line in re.findall(r"<dt>cmdline</dt><dd>(.*?)</dd>", page):
        assert gallery.keep_parameters(line) == line
    picture = place / "picture.svg"
    assert not picture.exists() or len(picture.read_bytes()) <= gallery.LARGEST


def test_the_index_leads_to_every_report_and_to_nothing_else():
    index = (GALLERY / "README.md").read_text()
    assert set(re.findall(r"\]\(([\w-]+)/report\.html\)", index)) == {place.name for place in PUBLISHED}
    for target in re.findall(r"\]\(([\w-]+/[\w.]+)\)", index):
        assert (GALLERY / target).is_file()
    assert "docs/gallery/README.md" in (ROOT / "mkdocs.yml").read_text()
