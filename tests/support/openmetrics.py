"""A strict reader of OpenMetrics 1.0, from the grammar and the rules of its specification (gauges and counters only).

https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
ESCAPED = r'(?:[^"\\\n]|\\[\\n"])*'
REAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[iI]nf(?:inity)?|[nN]a[nN]"
DESCRIPTOR = re.compile(rf"# (?P<kind>TYPE|UNIT|HELP) (?P<name>{NAME}) (?P<text>.*)")
SAMPLE = re.compile(
    rf'(?P<name>{NAME})(?:\{{(?P<labels>(?:{LABEL}="{ESCAPED}"(?:,{LABEL}="{ESCAPED}")*)?)\}})? (?P<value>{REAL})'
)
PAIR = re.compile(rf'(?P<name>{LABEL})="(?P<value>{ESCAPED})"')
RESERVED = ("_total", "_created", "_bucket", "_count", "_sum", "_info", "_gcount", "_gsum")
SUFFIXES = {"gauge": "", "counter": "_total"}


class NotOpenMetricsError(AssertionError):
    """A line breaks the specification."""


@dataclass
class Read:
    """A family: `samples` by their labels, each a tuple of pairs."""

    name: str
    type: str = ""
    unit: str = ""
    help: str = ""
    samples: dict = field(default_factory=dict)


def demand(holds, line, rule):
    if not holds:
        raise NotOpenMetricsError(f"{rule}: {line!r}")


def read_openmetrics(text):
    """Families by name."""
    demand(text.endswith("# EOF\n"), text[-20:], "the exposition ends with EOF and a line feed")
    found, current = {}, None
    for line in text.removesuffix("# EOF\n").split("\n")[:-1]:
        if match := DESCRIPTOR.fullmatch(line):
            if current is None or current.name != match["name"]:
                demand(match["name"] not in found, line, "families do not interleave")
                current = found[match["name"]] = Read(match["name"])
            _describe(current, match, line)
        else:
            match = SAMPLE.fullmatch(line)
            demand(match, line, "neither a descriptor nor a sample")
            _add(current, match, line)
    for family in found.values():
        demand(family.samples, family.name, "a family has metrics")
    _compare_names(found)
    return found


def _describe(family, match, line):
    demand(not family.samples, line, "descriptors come before samples")
    kind, text = match["kind"].lower(), match["text"]
    demand(not getattr(family, kind), line, "a descriptor is given once")
    if kind == "type":
        demand(text in SUFFIXES, line, "a type that is not used here")
        demand(not family.name.endswith(RESERVED), line, "a name ends in a reserved suffix")
    elif kind == "unit":
        demand(re.fullmatch(r"[a-z]+", text) and family.name.endswith(f"_{text}"), line, "the unit ends the name")
    else:
        demand(re.fullmatch(ESCAPED, text), line, "the help is escaped")
        text = unescape(text)
    setattr(family, kind, text)


def _add(family, match, line):
    demand(family is not None and family.type, line, "a sample belongs to a family with a type")
    demand(match["name"] == family.name + SUFFIXES[family.type], line, "the name of a sample follows from its type")
    pairs = tuple((pair["name"], unescape(pair["value"])) for pair in PAIR.finditer(match["labels"] or ""))
    demand(len(dict(pairs)) == len(pairs), line, "a label is given once")
    demand(pairs not in family.samples, line, "a metric has one sample")
    value = float(match["value"])
    demand(family.type != "counter" or value >= 0, line, "a counter is neither negative nor NaN")
    family.samples[pairs] = value


def _compare_names(found):
    for name in found:
        for suffix in RESERVED:
            demand(name + suffix not in found, name, "names of samples must not be those of other families")


def unescape(text):
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)
