"""`pgstrata decide --report`: one page with the answer, tables and charts of other tools' results."""

import math
import re

import pytest

from program import pgstrata


def rows(levels, *, blocks=12, cells=("lookup",), paired=True):
    names = ["environment", "cell", "value"]
    yield ",".join(["block", *names] if paired else names)
    for block in range(1, blocks + 1):
        for cell in cells:
            for place, (name, level) in enumerate(levels.items()):
                value = level * math.exp(0.004 * math.sin(7 * block + 3 * place + len(cell)))
                words = [name, cell, f"{value:.2f}"]
                yield ",".join([str(block), *words] if paired else words)


def decide(place, lines, *options, code=0):
    (place / "results.csv").write_text("\n".join(lines) + "\n")
    done = pgstrata(place, "decide", "results.csv", "--report", "out.html", *options)
    assert done.returncode == code, done.stderr
    assert done.stderr.endswith("report: out.html\n")
    return done.stdout, (place / "out.html").read_text()


def test_the_page_says_what_the_text_says_and_draws_it(tmp_path):
    text, page = decide(tmp_path, rows({"main": 1000, "change": 1200}), "--metric", "tps")
    first = re.split(r"[.:]", text)[0]
    assert first in " ".join(re.sub("<[^>]+>", "", page).replace("\xa0", " ").split())
    assert page.count('role="img"') == 2
    assert "What was compared, against main" in page
    assert "Block by block" in page
    assert "What this does not say" in page
    assert re.search(r'<span class="verdict better">', page)


def test_cells_have_their_own_tables_and_charts(tmp_path):
    _, page = decide(
        tmp_path, rows({"main": 1000, "a": 1200, "b": 900}, cells=("lookup", "orders")), "--metric", "tps", code=1
    )
    assert "Over all cells together, against main" in page
    assert "a, cell by cell (exploratory)" in page
    assert "b, cell by cell (exploratory)" in page
    assert page.count('role="img"') == 5


def test_ordered_levels_are_drawn_with_their_steps(tmp_path):
    _, page = decide(tmp_path, rows({"15": 1000, "16": 1000, "17": 1100, "18": 1100}), "--ordered", "--metric", "tps")
    assert "Steps along the environments" in page
    assert page.count('role="img"') == 3


@pytest.mark.parametrize("options", [(), ("--ordered",)])
def test_values_without_blocks_are_drawn_in_their_order(tmp_path, options):
    _, page = decide(tmp_path, rows({"16": 1000, "17": 1000, "18": 1000}, paired=False), "--metric", "tps", *options)
    assert "Value by value" in page
    assert "a drift of the machine looks like a difference" in page


def test_foreign_names_are_escaped(tmp_path):
    _, page = decide(tmp_path, rows({"main": 1000, "<script>alert(1)</script>": 1010}), "--baseline", "main")
    assert "<script" not in page


def test_json_stays_json_and_a_place_that_cannot_be_written_is_named(tmp_path):
    text, _ = decide(tmp_path, rows({"main": 1000, "change": 1200}), "--json")
    assert text.startswith("{")
    done = pgstrata(tmp_path, "decide", "results.csv", "--report", "missing/out.html")
    assert (done.returncode, "give another place with --report" in done.stderr) == (1, True)
