"""Writes docs/verdicts: a picture of each verdict, for the tables of docs/concepts.md."""

# ruff: noqa: INP001  a script, not a package

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.model.answer import Verdict

FOLDER: Final = Path(__file__).parents[1] / "docs" / "verdicts"
_THRESHOLD: Final = 3.0
_MOST: Final = 8.0
"""Percent at either end of the axis; what lies beyond is cut off there."""
_WIDTH, _HEIGHT, _AXIS = 240, 48, 32
_MIDDLE, _PERCENT = _WIDTH / 2, 14.0
"""Where zero is, and how wide a percent is, in pixels."""
_STYLE: Final = """
    text { font: 11px sans-serif; text-anchor: middle; fill: #57606a }
    .band { fill: #d0d7de; opacity: .6 }
    .zero { stroke: #57606a }
    .mark { fill: #0969da; stroke: #0969da; stroke-width: 2 }
    .lost { stroke: #cf222e; stroke-width: 3 }
    @media (prefers-color-scheme: dark) {
      text { fill: #9198a1 }
      .band { fill: #656c76 }
      .zero { stroke: #9198a1 }
      .mark { fill: #4493f8; stroke: #4493f8 }
      .lost { stroke: #f85149 }
    }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn, in percent: an interval with its estimate, differences of single blocks, or a cross."""

    interval: tuple[float, float, float] | None = None
    blocks: tuple[float, ...] = ()


PICTURES: Final[Mapping[Verdict, Picture]] = {
    Verdict.BETTER: Picture(interval=(4.9, 6.2, 7.6)),
    Verdict.WORSE: Picture(interval=(-5.7, -4.5, -3.4)),
    Verdict.NEGLIGIBLE: Picture(interval=(0.5, 1.4, 2.2)),
    Verdict.EQUIVALENT: Picture(interval=(-1.4, 0.6, 2.8)),
    Verdict.INCONCLUSIVE: Picture(interval=(-4.3, 6.5, 18.6)),
    Verdict.INSUFFICIENT: Picture(blocks=(-0.6, 1.1, 2.0, 2.9, 4.4)),
    Verdict.UNSTABLE: Picture(blocks=(-6.6, -6.2, -5.7, 0.4, 0.9, 1.2, 1.8)),
    Verdict.COLLAPSED: Picture(),
}


def draw(picture: Picture) -> str:
    """An SVG with colours for light and dark pages."""
    low, high = _place(-_THRESHOLD), _place(_THRESHOLD)
    parts = (
        f'<rect class="band" x="{low:g}" y="4" width="{high - low:g}" height="{_AXIS - 4}"/>',
        f'<line class="zero" x1="{_MIDDLE:g}" y1="4" x2="{_MIDDLE:g}" y2="{_AXIS}"/>',
        *_marks(picture),
        *(
            f'<text x="{_place(percent):g}" y="{_HEIGHT - 4}">{text}</text>'
            for percent, text in ((-_THRESHOLD, "-3 %"), (0, "0"), (_THRESHOLD, "+3 %"))
        ),
    )
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    lines = "".join(f"  {part}\n" for part in parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n  <style>{_STYLE}  </style>\n{lines}</svg>\n'


def _marks(picture: Picture) -> Iterator[str]:
    height = _AXIS / 2 + 2
    if picture.interval is not None:
        low, estimate, high = map(_place, picture.interval)
        yield f'<line class="mark" x1="{low:g}" y1="{height:g}" x2="{high:g}" y2="{height:g}"/>'
        yield f'<circle class="mark" cx="{estimate:g}" cy="{height:g}" r="4"/>'
    elif picture.blocks:
        for block in picture.blocks:
            yield f'<circle class="mark" cx="{_place(block):g}" cy="{height:g}" r="2"/>'
    else:
        for end in (-6, 6):
            yield f'<line class="lost" x1="14" y1="{height - end:g}" x2="26" y2="{height + end:g}"/>'


def _place(percent: float) -> float:
    return round(_MIDDLE + _PERCENT * max(-_MOST, min(_MOST, percent)), 1)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for verdict, each in PICTURES.items():
        (FOLDER / f"{verdict}.svg").write_text(draw(each), encoding="utf-8")
