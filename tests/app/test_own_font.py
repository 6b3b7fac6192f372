"""Charts are laid out by the font that the renderer brings along."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import vl_convert

from pgstrata.app.charts import measure_texts_in_own_font

FONTS = "FONTCONFIG_FILE"


@pytest.fixture
def seen(monkeypatch):
    """What the first drawing finds: the file that names folders of fonts, and what is in it."""
    found = {}

    def draw(_: str) -> bytes:
        found["place"] = Path(os.environ[FONTS])
        found["content"] = found["place"].read_text()
        return b""

    monkeypatch.setattr(vl_convert, "svg_to_png", draw)
    return found


@pytest.mark.parametrize("before", [None, "/etc/fonts/mine.conf"])
def test_the_first_drawing_finds_no_fonts_of_the_system_and_later_programs_do(monkeypatch, seen, before):
    monkeypatch.delenv(FONTS, raising=False)
    if before is not None:
        monkeypatch.setenv(FONTS, before)
    measure_texts_in_own_font()
    assert "<dir>/nonexistent</dir>" in seen["content"]
    assert not seen["place"].exists()
    assert os.environ.get(FONTS) == before


def test_without_a_place_for_temporary_files_all_stays_as_it_was(monkeypatch, seen, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    monkeypatch.delenv(FONTS, raising=False)
    measure_texts_in_own_font()
    assert not seen
    assert FONTS not in os.environ


DRAW = """
import sys
import vl_convert
from pgstrata.app.charts import measure_texts_in_own_font
if sys.argv[1:]:
    measure_texts_in_own_font()
bars = {"x": {"field": "name", "type": "nominal"}, "y": {"field": "tps", "type": "quantitative"}}
rows = [{"name": f"version {number}", "tps": number} for number in range(14, 19)]
chart = {"data": {"values": rows}, "mark": "bar", "encoding": bars, "config": {"font": "sans-serif"}}
print(vl_convert.vegalite_to_svg(chart, vl_version="6.4"))
"""


def test_what_is_drawn_is_the_same_with_it():
    """Each in a process of its own: fonts are looked for once."""
    usual, own = (
        subprocess.run([sys.executable, "-c", DRAW, *words], capture_output=True, text=True, check=True).stdout
        for words in ([], ["own"])
    )
    assert "version 18" in usual
    assert own == usual
