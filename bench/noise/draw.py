"""The picture of docs/noise.md: `PYTHONPATH=bench .venv/bin/python -m noise.draw docs/noise.svg`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import vl_convert
from noise.analyse import IMPLIED, SEED, WINDOWS
from noise.recorded import CELLS, LENGTHS, Runs, dead_seconds, find_pairs, load_runs
from noise.structure import fit_cell
from noise.tables import rms
from noise.within import block_seconds, window_differences

# Okabe and Ito: told apart with every kind of colour vision; shapes say the same.
COLOURS = ("#0072b2", "#d55e00")
SHAPES = ("circle", "triangle-up")


def draw(target: Path) -> None:
    """Equal runs over the hour, and how much two of them differ by run length."""
    runs = load_runs()
    chart = (_hour(runs) | _lengths(runs)).configure(background="white", font="sans-serif", padding=8)
    chart = chart.configure_view(stroke=None).configure_title(fontSize=12, fontWeight="normal", anchor="start")
    chart = chart.configure_legend(orient="bottom", title=None)
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    target.write_text(_shorten(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version)) + "\n")


def _shorten(svg: str) -> str:
    """Without what the renderer says of each mark, and with numbers as fine as anybody sees."""
    svg = re.sub(r' (?:class|role|aria-[a-z]+|pointer-events|stroke-miterlimit)="[^"]*"', "", svg)
    svg = re.sub(r'(?<= d=")[^"]*|(?<=translate\()[^)]*', lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), svg)
    return svg.strip()


def _marks() -> dict[str, Any]:
    """Colour and shape of a cell."""
    colour = alt.Color("cell:N", sort=None).scale(domain=list(CELLS), range=list(COLOURS))
    return {"color": colour, "shape": alt.Shape("cell:N", sort=None).scale(domain=list(CELLS), range=list(SHAPES))}


def _rows(rows: list[dict[str, Any]]) -> Any:
    return alt.Chart(alt.InlineData(values=rows), height=210)


def _hour(runs: Runs) -> Any:
    rows = []
    for cell in CELLS:
        here = np.flatnonzero(runs.cell == cell)
        logs = runs.logs("tps")[here]
        for minute, log in zip(runs.columns["started"][here] / 60, logs - np.median(logs), strict=True):
            rows.append({"cell": cell, "minute": round(float(minute), 1), "change": round(float(np.expm1(log)), 3)})
    chart = _rows(rows).properties(width=400, title="600 equal runs against their median, over the minutes")
    x = alt.X("minute:Q", title=None).scale(domain=[0, 61], nice=False)
    y = alt.Y("change:Q", title=None).axis(format="+%")
    return chart.mark_point(size=9, filled=True, opacity=0.7).encode(x=x, y=y, **_marks())


def _lengths(runs: Runs) -> Any:
    """Points as recorded, from the beginning of runs of each length; lines of the model."""
    points, lines = [], []
    dead = dead_seconds(runs, LENGTHS[0])
    for cell in CELLS:
        structure, _ = fit_cell(runs, cell, np.random.default_rng(SEED))
        lines += [{"cell": cell, "run": length, "sd": round(structure.block_sd(length, dead), 4)} for length in IMPLIED]
        for length in LENGTHS:
            blocks = block_seconds(runs, find_pairs(runs, cell, length))
            points += [
                {"cell": cell, "run": end, "sd": round(rms(window_differences(blocks, begin, end)), 4)}
                for begin, end in WINDOWS
                if begin == 0 and 1 < end <= length
            ]
    x = alt.X("run:Q", title=None).scale(type="log", base=2, nice=False, domain=[1.8, 130]).axis(values=list(IMPLIED))
    y = alt.Y("sd:Q", title=None).scale(domainMin=0).axis(format="%")
    title = "SD of the difference of two, by seconds of a run (lines: model)"
    dots = _rows(points).properties(width=330, title=title).mark_point(size=40, filled=True)
    curve = _rows(lines).mark_line(strokeWidth=1.2).encode(x=x, y=y, color=_marks()["color"])
    return dots.encode(x=x, y=y, **_marks()) + curve


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
