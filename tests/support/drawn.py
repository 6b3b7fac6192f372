"""What stands in drawings: their texts, where these are, and names that are too long for a line."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

from pgstrata.report.figures.labels import text_box

LONG = "prefix:/opt/builds/postgresql/with-a-patch-of-our-own-whose-name-is-longer-than-a-line/bin"


def drawings(svg):
    """The drawings of a figure, the wide one first."""
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", svg, flags=re.DOTALL)]


def texts(root):
    """All texts of a drawing, each line by itself."""
    return [line for element in root.iter("text") for line in element.itertext()]


def boxes(root):
    """Of all texts that are not turned, wherever their group has been moved to."""
    moved = {
        text: float(group.get("transform").split()[1][:-1])
        for group in root.iter("g")
        if group.get("transform")
        for text in group.iter("text")
    }
    return [
        text_box(
            each.text,
            float(each.get("x")),
            float(each.get("y")) - 4 + moved.get(each, 0.0),
            anchor=each.get("text-anchor", "start"),
        )
        for each in root.iter("text")
        if each.get("transform") is None
    ]


def lengthen(answer):
    """The answer with names of environments that are too long for a line."""
    plan = answer.study.plan
    environments = tuple(
        replace(each, levels=tuple(replace(level, value=f"{place}-{LONG}") for level in each.levels))
        for place, each in enumerate(plan.experiment.environments)
    )
    experiment = replace(plan.experiment, environments=environments)
    return replace(answer, study=replace(answer.study, plan=replace(plan, experiment=experiment)))
