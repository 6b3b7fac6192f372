from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.report.blocks.layout import TIE, tie, untie


@pytest.mark.parametrize(
    ("text", "tied"),
    [
        ("by 3 %.", f"by 3{TIE}%."),
        ("1 min 20 s, 250 ms", f"1{TIE}min 20{TIE}s, 250{TIE}ms"),
        ("-3.1 % [-4.2, -1.9] at", f"-3.1{TIE}% [-4.2,{TIE}-1.9] at"),
        ("8 GB and 7 blocks", f"8{TIE}GB and 7 blocks"),
        ("3 servers, 2 minutes", "3 servers, 2 minutes"),
    ],
)
def test_a_number_and_its_unit_stay_together(text, tied):
    assert tie(text) == tied


@given(st.text(st.characters(exclude_characters=TIE)))
def test_untying_gives_the_text_again(text):
    assert untie(tie(text)) == text
