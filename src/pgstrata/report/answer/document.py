"""The report of a study as one document, for every emitter."""

from collections.abc import Sequence

from pgstrata.compare.headlines import headline_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer
from pgstrata.model.metrics import METRICS
from pgstrata.report.answer.causes import causes_section, flames_section, plans_section
from pgstrata.report.answer.charts import how_it_went, step_section
from pgstrata.report.answer.environment_rows import (
    CellRows,
    arrange_cells,
    arrange_pairs,
    comparison_row,
)
from pgstrata.report.answer.matrix import effects_matrix
from pgstrata.report.answer.notes import cell_notes, floor_note, say_values
from pgstrata.report.answer.projections import along_axes
from pgstrata.report.answer.room import MOST_PANELS, drawable_cells, opens_details
from pgstrata.report.answer.statements import make_profile
from pgstrata.report.answer.surroundings import (
    measured_where,
    reproduction,
    settings_section,
    summarise_runs,
    time_section,
    unusual_section,
)
from pgstrata.report.answer.tables import (
    cell_table,
    contrast_table,
    headline_table,
    pair_table,
    percentile_table,
    statement_table,
)
from pgstrata.report.answer.worth import worth_section
from pgstrata.report.blocks.model import (
    Block,
    Details,
    Document,
    Listing,
    OnPage,
    Paragraph,
    Remark,
    Section,
    Tone,
    begin,
    end,
)
from pgstrata.report.figures.effects import draw_effects
from pgstrata.report.figures.percentiles import draw_quantiles
from pgstrata.report.sentences.answer import Sentence, anomaly_sentences, answer_sentences
from pgstrata.report.sentences.causes import cause_sentences
from pgstrata.report.sentences.doubts import sum_up_doubts
from pgstrata.report.sentences.factors import primary_effects
from pgstrata.report.sentences.limits import unmeasured
from pgstrata.report.sentences.load import ladder_sentences
from pgstrata.report.sentences.names import count, name_cell, name_place
from pgstrata.report.sentences.reasons import say_order, say_outgrown
from pgstrata.report.sentences.verdicts import name_baseline, render_threshold

_BAND = "The grey band is the threshold of {}: differences inside it do not matter here."
_PERCENTILES = (
    "The upper chart shows latency itself, the lower one its differences from the baseline. Percentiles are those of "
    "single runs, compared block by block like throughput. Exploratory: each percentile has a threshold of its own. "
    "The intervals form one band, which holds for all percentiles together; for eleven percentiles it needs twelve "
    "blocks. A percentile is shown only if at least 100 sampled transactions lie on either side of it."
)
_ANOMALIES = (
    "Points that do not fit with the other points of their curve, and runs far from the median of their environment. "
    "They stay in every estimate, and nothing is measured because of them."
)
_CONTRASTS = (
    "What each factor does on average over all combinations of the others, and by how much that changes with another "
    "factor: contrasts within the blocks, judged by the same rule. Exploratory."
)


def make_document(answer: Answer, along: Sequence[str] = ()) -> Document:
    """Everything that is to be said and shown of a study, in the order in which it is read.

    `along` names axes all of whose charts a page has, in the place of some of each axis.
    """
    study = answer.study
    sections = (
        _headlines(answer),
        OnPage(lambda: along_axes(answer, along)),
        _anomalies(answer),
        _cells(answer),
        worth_section(answer),
        causes_section(answer),
        flames_section(answer),
        plans_section(answer),
        _pairs(answer),
        _contrasts(answer),
        step_section(answer),
        OnPage(lambda: how_it_went(answer)),
        Section("What this does not say", (Listing(unmeasured(answer)),)),
        measured_where(study),
        settings_section(answer),
        unusual_section(study),
        time_section(study),
        reproduction(study),
    )
    return Document(
        name=f"Study {study.name}",
        title=study.plan.experiment.question,
        summary=summarise_runs(study),
        answer=(
            *map(_say, answer_sentences(answer)),
            *(Paragraph(end(text), Tone.MINOR) for text in cause_sentences(answer)),
        ),
        matrix=effects_matrix(answer),
        doubts=tuple(Remark(each.text, each.cases) for each in sum_up_doubts(answer)),
        sections=tuple(section for section in sections if section is not None),
        colophon=(
            f"Study {study.name} · plan {study.plan.identity} · created {study.created} · pgstrata {study.version}"
        ),
    )


def _say(sentence: Sentence) -> Paragraph:
    return Paragraph(end(sentence.text), _tone(sentence))


def _tone(sentence: Sentence) -> Tone:
    if sentence.alarm:
        return Tone.ALARM
    if sentence.control:
        return Tone.CONTROL
    return Tone.MINOR if sentence.minor else Tone.PLAIN


def _help(text: str) -> Paragraph:
    return Paragraph(text, Tone.HELP)


def _notes(texts: tuple[str, ...]) -> tuple[Paragraph, ...]:
    return tuple(Paragraph(end(text), Tone.NOTE) for text in texts if text)


def _band(answer: Answer) -> str:
    return _BAND.format(render_threshold(answer.study.plan.experiment.threshold))


def _headlines(answer: Answer) -> Section | None:
    """The environments over all cells together, where there are several."""
    rows = [comparison_row(answer, item) for item in headline_comparisons(answer)]
    if not rows:
        return None
    experiment = answer.study.plan.experiment
    baseline = name_baseline(experiment)
    cells = len(experiment.cells)
    explained = (
        f"The geometric mean over the {cells} cells, block by block, against {baseline}. These are the headlines: "
        f"corrected for their number, so that none of them loses its verdict afterwards. {_band(answer)}"
    )
    chart = draw_effects(answer, ALL_CELLS)
    blocks: tuple[Block, ...] = (
        _help(explained),
        *([chart] if chart else []),
        headline_table(rows),
        *_notes((floor_note(answer, ALL_CELLS),)),
    )
    return Section(f"All {count(cells, 'cell')} together (geometric mean), against {baseline}", blocks, brief=True)


def _anomalies(answer: Answer) -> Section | None:
    found = tuple(end(text) for text in anomaly_sentences(answer))
    return Section("What looked wrong", (_help(_ANOMALIES), Listing(found)), brief=True) if found else None


def _cells(answer: Answer) -> Section:
    explored = bool(headline_comparisons(answer))
    metric = METRICS[answer.study.plan.experiment.metric].title
    explained = (
        f"{begin(metric)} and its cost per transaction over the usable runs. Effects are differences from the "
        f"baseline, block by block, with the interval that their verdict rests on. {_band(answer)}"
    )
    if explored:
        explained += " Single cells are exploratory; adjusted p allows for their number."
    experiment = answer.study.plan.experiment
    drawn = drawable_cells(answer, marks=len(experiment.cells) * len(experiment.environments), most=MOST_PANELS)
    rows = arrange_cells(answer)
    notes = [_say_measured(answer, cell) for cell in rows]
    shared = [text for text in notes[0] if len(notes) > 1 and all(text in each for each in notes)] if notes else []
    cells = [
        _cell(answer, cell, [text for text in said if text not in shared], drawn=cell.cell in drawn)
        for cell, said in zip(rows, notes, strict=True)
    ]
    title = "Cell by cell" if explored else "What was measured"
    plan = answer.study.plan
    noted = _notes((*say_order(plan), *ladder_sentences(answer.study), *say_outgrown(plan), *shared))
    return Section(title, (_help(explained), *noted, *cells), brief=True)


def _say_measured(answer: Answer, cell: CellRows) -> list[str]:
    """How a cell was measured."""
    plan = answer.study.plan
    values = begin(f"{METRICS[plan.experiment.metric].title}: {say_values(plan, cell.cell)}")
    return [text for text in (values, *cell_notes(answer, cell.cell)) if text]


def _cell(answer: Answer, cell: CellRows, notes: Sequence[str], *, drawn: bool) -> Section:
    """The comparison, its chart if `drawn`, notes of its own; percentiles and statements where they were asked."""
    experiment = answer.study.plan.experiment
    name = name_cell(cell.cell, experiment)
    chart = draw_effects(answer, cell.cell.identity) if drawn else None
    title = f"{name} (exploratory)" if headline_comparisons(answer) else name
    blocks: tuple[Block, ...] = (
        *([chart] if chart else []),
        cell_table(answer, cell),
        *_notes(tuple(notes)),
        OnPage(lambda: _percentiles(answer, cell, name, drawn=drawn)),
        *_statements(answer, cell, name),
    )
    return Section(title, blocks)


def _percentiles(answer: Answer, cell: CellRows, name: str, *, drawn: bool) -> tuple[Block, ...]:
    table = percentile_table(answer, cell.cell, cell.rows)
    if table is None:
        return ()
    figure = draw_quantiles(answer, cell.cell.identity, "") if drawn else None
    blocks: tuple[Block, ...] = (_help(_PERCENTILES), *([figure] if figure else []), table)
    is_open = figure is not None and opens_details(answer)
    return (Details(f"Latency by percentile: {name}", blocks, open=is_open),)


def _statements(answer: Answer, cell: CellRows, name: str) -> tuple[Block, ...]:
    profile = make_profile(answer, cell.cell.identity)
    if not profile.rows:
        return ()
    blocks = (Paragraph(profile.note, Tone.NOTE), statement_table(cell, profile.rows))
    return (Details(f"Statements: {name}", blocks, open=opens_details(answer)),)


def _pairs(answer: Answer) -> Section | None:
    rows = arrange_pairs(answer)
    if not rows:
        return None
    explained = _help("Of each pair the first is compared with the second.")
    title = f"Environments against each other: {name_place(answer.pairs[0].cell, answer.study.plan.experiment)}"
    number = count(len(answer.pairs), "pair")
    note = f"Exploratory: each pair by itself; adjusted p allows for their number ({number})"
    return Section(title, (explained, pair_table(rows), *_notes((note,))), brief=True)


def _contrasts(answer: Answer) -> Section | None:
    effects = primary_effects(answer)
    if not effects:
        return None
    table = contrast_table(effects, answer.study.plan.experiment)
    return Section("Factors and what they depend on (exploratory)", (_help(_CONTRASTS), table))
