"""How two servers were built, where it was not what was compared: a doubt about every comparison of the two.

An experiment that allows mixed compilers, suppliers or assertions has them in all of its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.model.answer import Comparison
from pgstrata.model.doubts import BuildsDiffer, Doubt, NamedDoubt
from pgstrata.model.experiment import Environment, ServerKind
from pgstrata.model.study import Study

# Of the flags only these change what the compiler makes; warnings differ between majors, and paths between packages.
_LEVEL: Final = "-O"
_MATTERING: Final = (_LEVEL, "-m", "-f")
_PATHS: Final = "prefix-map="


def doubt_builds(comparisons: Iterable[Comparison], study: Study) -> tuple[Comparison, ...]:
    """The comparisons, each with what is to be said of how its two servers were built.

    Args:
        comparisons: of environments of the study.
        study: what was asked for, and the facts of its environments; one without facts is not doubted.
    """
    experiment = study.plan.experiment
    known: dict[tuple[str, str], tuple[Doubt, ...]] = {}
    found: list[Comparison] = []
    for comparison in comparisons:
        names = (comparison.environment, comparison.reference or experiment.baseline)
        if names not in known:
            sides = [(experiment.environment(name), _facts(study, name)) for name in names]
            known[names] = tuple(_differences(*sides))
        found.append(replace(comparison, warnings=(*comparison.warnings, *known[names])))
    return tuple(found)


def _facts(study: Study, name: str) -> Mapping[str, str]:
    fingerprint = study.environments.get(name)
    return fingerprint.facts if fingerprint is not None else {}


_Side = tuple[Environment, Mapping[str, str]]


def _differences(ours: _Side, theirs: _Side) -> Iterator[Doubt]:
    if not _is_factor(ours[0], theirs[0]):
        yield from _compilers_differ(ours, theirs)
    names, suppliers = (ours[0].name, theirs[0].name), _both(ours, theirs, "server.supplier")
    if ours[0].server.kind is not theirs[0].server.kind and all(suppliers):
        yield BuildsDiffer(code="suppliers_differ", environments=names, makers=suppliers)
    for environment, facts in (ours, theirs):
        if facts.get("server.assertions") == "on":
            yield NamedDoubt(code="built_with_assertions", names=(environment.name,))


def _is_factor(ours: Environment, theirs: Environment) -> bool:
    """Whether compiler or flags are what is compared: the same sources, and something else asked of their build."""
    one, other = ours.server, theirs.server
    return one.kind is other.kind is ServerKind.BUILD and one.value == other.value and one.build != other.build


def _compilers_differ(ours: _Side, theirs: _Side) -> Iterator[Doubt]:
    compilers, systems = (_both(ours, theirs, fact) for fact in ("server.compiler", "server.system"))
    one, other = map(_mattering, _both(ours, theirs, "server.cflags"))
    other_tools = any(all(names) and names[0] != names[1] for names in (compilers, systems))
    if other_tools or (one and other and set(one) != set(other)):
        names, flags = (ours[0].name, theirs[0].name), (_own(one, other), _own(other, one))
        yield BuildsDiffer(code="compilers_differ", environments=names, makers=compilers, systems=systems, flags=flags)


def _both(ours: _Side, theirs: _Side, fact: str) -> tuple[str, str]:
    return ours[1].get(fact, ""), theirs[1].get(fact, "")


def _mattering(flags: str) -> tuple[str, ...]:
    """Flags that matter: the last level of optimisation, and all others in any order."""
    words = [word for word in flags.split() if word.startswith(_MATTERING) and _PATHS not in word]
    levels = [word for word in words if word.startswith(_LEVEL)]
    return (*levels[-1:], *dict.fromkeys(word for word in words if not word.startswith(_LEVEL)))


def _own(flags: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The level of optimisation, and what the other side has not."""
    return tuple(flag for flag in flags if flag.startswith(_LEVEL) or flag not in others)
