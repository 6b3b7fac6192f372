"""The charts of a report as files, and the figures of an answer as CSV and Markdown."""

import csv
import io
import re
import xml.etree.ElementTree as ET

import pytest

from program import pgstrata
from stored import ask_reads, noise_of, write_study

QUESTION = ask_reads("16", "17", "18", blocks=9)
LEVELS = {"pg16": 1000.0, "pg17": 1100.0, "pg18": 1000.0}
PNG = b"\x89PNG\r\n\x1a\n"


def values_of(plan, run):
    return {"tps": LEVELS[run.environment] * noise_of(run)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("charts")
    write_study(place, QUESTION, values_of)
    return place


def test_each_chart_of_a_report_becomes_an_svg_and_a_png(place):
    done = pgstrata(place, "report", "study", "-o", "out.html", "--charts", "drawn")
    assert (done.returncode, done.stdout) == (0, "report: out.html\ncharts: drawn\n")
    names = sorted(file.name for file in (place / "drawn").iterdir())
    drawn = [name.removesuffix(".svg") for name in names if name.endswith(".svg")]
    assert sorted(f"{name}{suffix}" for name in drawn for suffix in (".svg", ".png")) == names
    assert len(drawn) == (place / "out.html").read_text().count('role="img"')
    assert any(name.startswith("001-") for name in drawn)
    assert all(re.fullmatch(r"[\w.+-]+", name) for name in drawn)
    for name in drawn:
        root = ET.parse(place / "drawn" / f"{name}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert (place / "drawn" / f"{name}.png").read_bytes().startswith(PNG)


def test_charts_go_into_a_new_folder_alone(place):
    (place / "full").mkdir()
    (place / "full" / "mine").touch()
    done = pgstrata(place, "report", "study", "-o", "other.html", "--charts", "full")
    assert done.returncode == 2
    assert "full: there is something here already\n  -> name a new folder with --charts" in done.stderr
    assert not (place / "other.html").exists()
    done = pgstrata(place, "report", "study", "-o", "other.html", "--charts", "full/mine")
    assert "there is something here already" in done.stderr


def test_every_figure_is_a_row_of_a_table_with_all_its_digits(place):
    done = pgstrata(place, "show", "study", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    (faster,) = [
        row for row in rows if (row["kind"], row["environment"], row["metric"]) == ("comparison", "pg17", "tps")
    ]
    assert (faster["reference"], faster["verdict"], faster["exploratory"]) == ("pg16", "better", "false")
    assert float(faster["low"]) < float(faster["effect"]) < float(faster["high"])
    assert float(faster["effect"]) == pytest.approx(1.1, rel=0.01)
    assert len(faster["effect"]) > 10
    assert {row["kind"] for row in rows} >= {"comparison", "step"}
    pairs = csv.DictReader(io.StringIO(pgstrata(place, "show", "study", "--format", "csv", "--pairs").stdout))
    assert [row["reference"] for row in pairs if row["kind"] == "pair"]


def test_figures_cannot_be_selected(place):
    done = pgstrata(place, "show", "study", "--format", "csv", "--by", "server")
    assert done.returncode == 2
    assert "leave out --why, --pairs, --json and --format csv" in done.stderr


@pytest.mark.parametrize("name", ["md", "markdown"])
def test_markdown_has_a_short_name(place, name):
    assert pgstrata(place, "show", "study", "--format", name).stdout.startswith("# ?\n")


def test_a_format_that_there_is_not_is_refused_with_those_that_there_are(place):
    done = pgstrata(place, "show", "study", "--format", "pdf")
    assert done.returncode == 2
    assert "use --format text, --format markdown, --format csv, or --json" in done.stderr
    done = pgstrata(place, "decide", "x.csv", "--format", "pdf")
    assert "'pdf' is not a valid format" in done.stderr


def test_other_tools_results_have_the_same(place):
    lines = ["block,environment,value"]
    lines += [
        f"{block},{name},{level + block % 3}"
        for block in range(1, 13)
        for name, level in (("a", 1000), ("b", 1200), ("c", 1000))
    ]
    (place / "others.csv").write_text("\n".join(lines) + "\n")
    done = pgstrata(
        place, "decide", "others.csv", "--baseline", "a", "--metric", "tps", "--format", "md", "--charts", "theirs"
    )
    assert (done.returncode, done.stderr) == (0, "charts: theirs (2)\n")
    assert "## Difference in tps from a" in done.stdout
    assert "| b | " in done.stdout
    done = pgstrata(place, "decide", "others.csv", "--baseline", "a", "--metric", "tps", "--format", "csv")
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["better", "equivalent"]
