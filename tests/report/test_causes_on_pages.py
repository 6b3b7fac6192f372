from __future__ import annotations

import dataclasses
import re

import pytest

from attributed import CELL, account, attribution, contribution
from pgstrata.model.answer import Answer
from pgstrata.model.attribution import Obstacle, Unattributed
from pgstrata.report.answer.causes import causes_section
from pgstrata.report.blocks.model import Details, Figure, Paragraph
from rendering import render_html


@pytest.fixture(scope="module")
def answer(module_desk) -> Answer:
    desk = module_desk
    environments = (
        desk.environment("pg16", (("server", "16"),)),
        desk.environment("pg18", (("server", "18"),)),
    )
    found = desk.answer(environments=environments, effects=(1.0, 1.04), blocks=3, cells=(desk.cell(),))
    return dataclasses.replace(
        found,
        attributions=(attribution(),),
        axes=(desk.axis(),),
        accounts=(account("pg16", 4e-4), account("pg18", 3.6e-4)),
        unattributed=(
            Unattributed(
                environment="pg18", reference="pg16", cell=CELL, obstacle=Obstacle.FEW_BLOCKS, blocks=1, sampled=1
            ),
        ),
    )


def test_a_difference_has_its_sentence_its_waterfall_and_its_tables(answer):
    page = render_html(answer).replace("\xa0", " ")
    why = page.split("<h2>Why</h2>")[1]
    assert "18 saves 39 ± 1 µs per transaction" in why
    assert "First cause: IO/WalSync in END" in why
    for words in ("18 against 16: simple-update", "part and statement", "WAL", "resolved", "3,600 samples"):
        assert words in why
    assert "<details open><summary>18 against 16" in why


def test_statements_are_foreign_text(answer):
    page = render_html(answer)
    assert "<script" not in page
    assert "\x1b" not in page
    assert 'title="SELECT &#39;&lt;script&gt;' in page
    cells = [re.sub("<[^>]*>", "", each) for each in re.findall(r'<th scope="row" title="[^"]*">(.*?)</th>', page)]
    assert cells
    assert max(map(len, cells)) < 100


def test_levels_of_an_ordered_factor_are_stacked(answer):
    blocks = causes_section(answer).blocks
    assert [block.title for block in blocks if isinstance(block, Figure)] == [
        "Along server: simple-update, scale 10, 2 clients (means over 9 blocks)"
    ]
    assert blocks[-1].blocks[0].items == (
        "18: the difference cannot be split: 1 of the 2 blocks that are needed; measure more: `pgstrata run` resumes.",
    )


def test_of_many_differences_the_largest_come_first_and_the_rest_are_folded(answer):
    many = tuple(
        attribution(total=contribution(None, reference=900, difference=difference)) for difference in range(70)
    )
    blocks = causes_section(dataclasses.replace(answer, attributions=many, unattributed=())).blocks
    parts = [block for block in blocks if isinstance(block, Details)]
    assert len(parts) == 60
    assert any("10 smaller differences" in block.plain for block in blocks if isinstance(block, Paragraph))
    assert [part.open for part in parts].count(True) == 4
    assert [any(isinstance(block, Figure) for block in part.blocks) for part in parts].count(True) == 12
    assert "69" in parts[0].blocks[0].plain


def test_without_attributions_nothing_is_said(desk):
    assert "<h2>Why</h2>" not in render_html(desk.answer(blocks=2))
