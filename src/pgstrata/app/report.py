"""Write the report of a study as one HTML file, with the stacks of its runs from their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pgstrata.app.answer import load_answer
from pgstrata.app.charts import measure_texts_in_own_font, write_charts
from pgstrata.collectors.changed_settings import SETTINGS, parse_changed_settings
from pgstrata.collectors.perf.sampler import SAMPLES, Folded, parse_folded
from pgstrata.errors import ParseError, PgstrataError
from pgstrata.model.attribution import RunStacks
from pgstrata.model.experiment import ServerKind
from pgstrata.model.metrics import SAMPLED_CPU
from pgstrata.model.packed import unpack
from pgstrata.model.server import ChangedSetting
from pgstrata.model.study import Study
from pgstrata.ports.studies import StoredStudy
from pgstrata.report.answer.document import make_document
from pgstrata.report.blocks.model import Document
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.projections.choice import find_axes
from pgstrata.report.projections.design import find_projections, find_undrawn
from pgstrata.report.projections.model import PAIR
from pgstrata.sources.runs import may_enter
from pgstrata.system.files import PRIVATE, write_beside, write_error, writing_new

_STRANGER: Final = "perf follows servers that pgstrata started, and no running ones (`dsn:`)"
_NOTHING: Final = "perf left nothing that can be used; the reasons of the run may say why"
_MOST_WITHOUT_SETTINGS: Final = 30
"""At most so many runs of each environment have their settings read: those of a run are a file."""
_EARLY: Final = "sampling ended before the run did, as it does after 200 MB (20,000 samples): shorter runs have fewer"


def load_stacks(stored: StoredStudy, study: Study) -> tuple[RunStacks, ...]:
    """Stacks of all runs that may enter a comparison and have any; the study is read with the metric `SAMPLED_CPU`."""
    return tuple(_load(stored, study)) if study.plan.experiment.profile_cpu else ()


def _load(stored: StoredStudy, study: Study) -> Iterator[RunStacks]:
    environments = study.plan.experiment.environments
    strangers = {each.name for each in environments if each.server.kind is ServerKind.DSN}
    for run in study.runs:
        if not may_enter(run):
            continue
        folded = _read(stored.evidence(run.identity, f"{SAMPLES}.gz"))
        samples, seconds = sum(folded.stacks.values()), run.value(SAMPLED_CPU)
        whole = bool(folded.whole and samples and seconds)
        yield RunStacks(
            environment=run.environment,
            cell=run.cell,
            block=run.block,
            seconds=seconds / samples if samples and seconds else 0.0,
            stacks=folded.stacks if whole else {},
            user_only=folded.user_only,
            lacking="" if whole else folded.lacking or (_STRANGER if run.environment in strangers else _why(folded)),
        )


def _why(folded: Folded) -> str:
    return _EARLY if folded.stacks and not folded.whole else _NOTHING


def _read(packed: bytes) -> Folded:
    try:
        return parse_folded(unpack(packed, SAMPLES))
    except ParseError:
        return Folded(stacks={}, counts={}, lacking="the evidence cannot be read")


def load_changed_settings(stored: StoredStudy, study: Study) -> tuple[tuple[str, ChangedSetting], ...]:
    """Changed settings by environment, from the first of its first thirty runs that has any."""
    runs: dict[str, list[str]] = {}
    for run in study.runs:
        runs.setdefault(run.environment, []).append(run.identity)
    found: list[tuple[str, ChangedSetting]] = []
    for name, identities in runs.items():
        tables = (stored.evidence(each, SETTINGS) for each in identities[:_MOST_WITHOUT_SETTINGS])
        found += [(name, setting) for setting in next(filter(None, map(parse_changed_settings, tables)), ())]
    return tuple(found)


def write_report(
    study: StoredStudy,
    target: Path,
    *,
    pairs: bool,
    query_text: bool = True,
    prices: Path | None = None,
    along: Sequence[str] = (),
    charts: Path | None = None,
    new: bool = False,
) -> Path:
    """The file that was written; `charts` is a new folder for its charts as files of their own.

    PgstrataError where something cannot be written; UsageError where no axis is called as in `along`.
    """
    answer = load_answer(study, series=True, shifts=True, pairs=pairs, why=True, query_text=query_text, prices=prices)
    experiment = answer.study.plan.experiment
    axes = find_axes(find_projections(experiment, PAIR), along, find_undrawn(experiment)) if along else ()
    stacks, changed = load_stacks(study, answer.study), load_changed_settings(study, answer.study)
    document = make_document(replace(answer, stacks=stacks, changed_settings=changed), axes)
    if charts is not None:
        write_charts(document, charts)
    elif repr(experiment).isascii():
        measure_texts_in_own_font()
    return write_page(document, target, option="-o", new=new)


def write_page(document: Document, target: Path, *, option: str, new: bool = False, private: bool = False) -> Path:
    """Write a document as one HTML file; PgstrataError if it cannot be written, with `option` in its remedy.

    `new`: the user has not chosen the name, so no file of that name may exist. `private`: it tells of a live server.
    """
    content = emit_page(document).encode()
    try:
        if new:
            with writing_new(target, mode=PRIVATE if private else 0o666) as stream:
                stream.write(content)
        else:
            write_beside(target, content, mode=PRIVATE if private else None)
    except FileExistsError:
        remedy = f"remove it, or name another with {option}"
        raise PgstrataError("the file exists already", where=str(target), remedy=remedy) from None
    except OSError as error:
        remedy = f"give another place with {option}"
        raise write_error("the report cannot be written", error, where=target, remedy=remedy) from None
    return target
