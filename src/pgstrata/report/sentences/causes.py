"""Why environments differ: where the time of a transaction went, in sentences, and how its parts are named."""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from pgstrata.diagnosis.attribution import FEWEST_BLOCKS
from pgstrata.model.activity import ACTIVITY_HERTZ
from pgstrata.model.answer import Answer, Verdict
from pgstrata.model.attribution import (
    Attribution,
    Contribution,
    LevelAccount,
    Method,
    Obstacle,
    Part,
    SampleSource,
    Unattributed,
    ValueInterval,
)
from pgstrata.model.metrics import METRICS, TPS
from pgstrata.report.sentences.names import count, name_environment, name_where, say_on
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.units import Unit, render_bytes, render_duration, render_value, shorten

PART_NAMES: Final = {
    Part.CLIENT: "client and network",
    Part.CPU: "CPU",
    Part.QUEUE: "run queue",
    Part.RUNNING: "CPU and run queue",
    Part.WAIT: "other waits",
    Part.REST: "rest: off the CPU, no event",
    Part.CONNECT: "connecting",
}
_QUERY_WIDTH: Final = 44
_LOPSIDED: Final = 0.05
"""Maximum asymmetry of an interval, as a share of its half-width."""
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def name_part(item: Contribution) -> str:
    """IO/WalSync, CPU, client and network. Names of events come from the server."""
    if item.part is None:
        return "all"
    return readable(item.event) or PART_NAMES[item.part]


def name_row(item: Contribution) -> str:
    """IO/WalSync in END; Lock/transactionid in UPDATE t, behind UPDATE t; rest in END, in the kernel's do_select.

    Of other processes than sessions: checkpointer: IO/DataFileSync.
    """
    if item.process:
        return f"{readable(item.process)}: {name_part(item)}"
    name = f"{name_part(item)} in {name_query(item.query)}" if item.query else name_part(item)
    if item.place:
        return f"{name}, in the kernel's {readable(item.place)}"
    return f"{name}, behind {name_query(item.blocker)}" if item.query and item.blocker else name


def name_query(text: str, width: int = _QUERY_WIDTH) -> str:
    """A statement in one line of so many characters; what cannot be printed is a question mark."""
    return shorten(readable(text).rstrip("; "), width)


def readable(text: str) -> str:
    """In one line, with a question mark for what cannot be printed."""
    if not text.isprintable():
        text = "".join(mark if mark.isprintable() or mark.isspace() else "?" for mark in text)
    return " ".join(text.split())


def readable_lines(lines: Sequence[str], most: int) -> list[str]:
    """Lines whose indentation tells something, without what cannot be printed; of many the first."""
    shown = [
        "".join(mark if mark.isprintable() else " " if mark == "\t" else "?" for mark in line) for line in lines[:most]
    ]
    left = len(lines) - most
    return [*shown, f"... and {count(left, 'line')} more"] if left > 0 else shown


def choose_unit(seconds: float) -> tuple[float, str]:
    """Seconds in a unit in which a time is readable, and its name."""
    return next(((size, name) for size, name in _UNITS if abs(seconds) >= size), _UNITS[-1])


def half_of(span: ValueInterval | None) -> float:
    """What stands behind the ±."""
    return 0.0 if span is None else (span.high - span.low) / 2


def render_half(item: Contribution, size: float, digits: int) -> str:
    """0.17; where what is said is not the middle of its interval, -0.11 +0.24; in a unit of `size` seconds."""
    half = half_of(item.interval) / size
    if item.interval is None or not is_lopsided(item):
        return f"{half:.{digits}f}"
    low, high = (item.interval.low - item.difference) / size, (item.interval.high - item.difference) / size
    return f"{render_signed(low, digits)} {render_signed(high, digits)}"


def is_lopsided(item: Contribution) -> bool:
    """Whether the interval reaches farther to one side, as where a value is known between bounds only."""
    if item.interval is None:
        return False
    middle = (item.interval.high + item.interval.low) / 2
    return abs(middle - item.difference) > _LOPSIDED * half_of(item.interval)


def choose_decimals(half: float) -> int:
    """Digits behind the point that so wide an interval leaves a meaning: at most two."""
    return 0 if half >= 0.95 or half == 0 else 1 if half >= 0.095 else 2  # noqa: PLR2004


def render_change(item: Contribution, size: float) -> str:
    """-310 ± 20, or -310 [-370, -300], in a unit of `size` seconds."""
    half = half_of(item.interval) / size
    digits = choose_decimals(half)
    change = render_signed(item.difference / size, digits)
    if item.interval is None or not is_lopsided(item):
        return f"{change} ± {half:.{digits}f}"
    low, high = (render_signed(bound / size, digits) for bound in (item.interval.low, item.interval.high))
    return f"{change} [{low}, {high}]"


def render_signed(value: float, digits: int) -> str:
    """A change with its sign; nothing has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


METHOD_NOTES: Final = {
    Method.COUNTED: "waits are sampled. CPU and run queue are counted by the kernel, without the time in waits. Client "
    "and network is the remainder, so nothing stays unexplained",
    Method.ASLEEP: "waits are sampled, and so is the rest, in which sessions slept without an event that the server "
    "names. CPU and run queue are counted by the kernel, without the time in these. Client and network is what remains",
    Method.UNNAMED: "waits are sampled, CPU and run queue are counted by the kernel. The rest is time in statements "
    "that was neither on a CPU nor in an event that the server names",
    Method.SAMPLED: "all parts are sampled. The kernel did not count CPU and run queue here, so they are one part",
}
_MOST_ROWS: Final = 12
_MOST_SAID: Final = 5
_OF_NO_STATEMENT: Final = frozenset({Part.CLIENT, Part.CONNECT})


def say_attribution(answer: Answer, item: Attribution) -> str:
    """One sentence: what is saved or added per transaction, and by which parts."""
    experiment = answer.study.plan.experiment
    name = name_environment(experiment.environment(item.environment), experiment)
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    before, after = item.total.reference / size, item.total.value / size
    digits = choose_decimals(half_of(item.total.interval) / size)
    blocks = count(item.blocks, "block")
    if not item.total.resolved:
        return (
            f"{name}: no difference in the time of a transaction is certain, {render_change(item.total, size)} {unit} "
            f"of {before:.{digits}f} ({blocks})"
        )
    verb = "saves" if item.total.difference < 0 else "costs"
    amount = f"{abs(item.total.difference) / size:.{digits}f} ± {half_of(item.total.interval) / size:.{digits}f} {unit}"
    head = f"{name} {verb} {amount} per transaction ({before:.{digits}f} -> {after:.{digits}f}, {blocks})"
    return f"{head}: {_say_parts(item, size)}"


def _say_parts(item: Attribution, size: float) -> str:
    """The parts that are certain, then those that are not, then the sum of what is left."""
    shown = sorted(item.parts, key=lambda part: (not part.resolved, -abs(part.difference)))[:_MOST_SAID]
    sure = [f"{render_change(part, size)} {name_part(part)}" for part in shown if part.resolved]
    open_ = [f"{render_change(part, size)} {name_part(part)}" for part in shown if not part.resolved]
    left = item.total.difference - sum(part.difference for part in shown)
    texts = [", ".join(sure)] if sure else []
    if open_:
        texts.append(f"unresolved {', '.join(open_)}")
    if len(shown) < len(item.parts):
        texts.append(f"{render_signed(left / size, 1)} in {count(len(item.parts) - len(shown), 'smaller part')}")
    return "; ".join(texts)


def say_causes(item: Attribution) -> str:
    """What is certain to have a part in it and in which statement, the first cause first; empty without any.

    Where no statements are told apart the figures are those of the parts, which stand there already.
    """
    if not item.causes:
        return ""
    if len({row.query for row in item.rows if row.part not in _OF_NO_STATEMENT}) <= 1:
        return f"first cause: {name_row(item.causes[0])}"
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    texts = [f"{name_row(cause)} ({render_change(cause, size)} {unit})" for cause in item.causes[:_MOST_SAID]]
    return f"first cause: {texts[0]}" + (f"; then {'; '.join(texts[1:])}" if texts[1:] else "")


def cause_sentences(answer: Answer) -> list[str]:
    """The first cause of each difference in throughput that a verdict has found, for few of them; nothing else.

    Controls have none, nor has a difference that goes the other way in the account.
    """
    experiment = answer.study.plan.experiment
    found = {(item.environment, item.cell): item for item in answer.attributions if item.causes}
    texts = []
    for comparison in answer.comparisons:
        item = found.get((comparison.environment, comparison.cell))
        signs = {Verdict.BETTER: -1.0, Verdict.WORSE: 1.0}
        sign = signs.get(comparison.verdict) if comparison.metric == TPS.name and not comparison.control else None
        if item is not None and sign is not None and item.total.difference * sign > 0:
            name = name_environment(experiment.environment(item.environment), experiment)
            size, unit = choose_unit(max(item.total.value, item.total.reference))
            where = say_on(name_where(item.cell, experiment), name) if len(experiment.cells) > 1 else ""
            texts.append(
                f"{name}{where}: the first cause is {name_row(item.causes[0])}, "
                f"{render_change(item.causes[0], size)} of {render_change(item.total, size)} {unit} per transaction"
            )
    return texts[:_MOST_SAID]


def say_levels(accounts: Mapping[str, LevelAccount]) -> str:
    """How the time of a transaction changes from the first level to the last, and in which part most.

    `accounts` are by level, in their order; they are means, without intervals.
    """
    levels = list(accounts.items())
    (first, before), (last, after) = levels[0], levels[-1]
    old, new = ({(row.part, row.event): row.seconds for row in each.account.rows} for each in (before, after))
    changes = {key: new.get(key, 0.0) - old.get(key, 0.0) for key in (*old, *new)}
    head = (
        f"A transaction takes {render_duration(before.account.seconds)} with {first} and "
        f"{render_duration(after.account.seconds)} with {last}"
    )
    if not changes:
        return f"{head}."
    part, event = max(changes, key=lambda key: abs(changes[key]))
    most, sign = changes[part, event], "-" if changes[part, event] < 0 else "+"
    name = readable(event) or PART_NAMES[part]
    return f"{head}. The part that changes most is {name}: {sign}{render_duration(abs(most))}."


def say_missing(answer: Answer, item: Unattributed) -> str:
    """Why there is nothing, with what would help."""
    experiment = answer.study.plan.experiment
    name = name_environment(experiment.environment(item.environment), experiment)
    return f"{name}: the difference cannot be split: {'; '.join(say_obstacle(item))}"


def say_obstacle(item: Unattributed) -> tuple[str, str]:
    """Why a difference cannot be split, and what would help."""
    match item.obstacle:
        case Obstacle.FIXED_RATE:
            why = (
                "at a fixed rate, pauses are told apart by mean latency and mean lag, which are missing, do not fit "
                "the throughput, or leave no sample of a transaction"
            )
            return why, "measure longer runs or a higher rate; or leave out `rate`, and sessions have no pauses"
        case Obstacle.SEARCHED:
            why = "a run with an objective tries many rates, each with its own time per transaction"
            return why, "leave out `objective`, and the clients run at full speed"
        case Obstacle.FEW_BLOCKS:
            lack = f"{item.blocks} of the {FEWEST_BLOCKS} blocks that are needed"
            return lack, "measure more: `pgstrata run` resumes"
        case Obstacle.SAMPLER_LOST:
            why = f"no sessions were sampled: {'' if item.lost is None else say_reason(item.lost)}"
            return why, "see the runs' reasons, fix the cause, then measure again"
        case Obstacle.NO_SESSIONS:
            why = "no sessions were sampled: `diagnosis = false`, or measured by a pgstrata that did not sample yet"
            return why, "measure again with `diagnosis = true`, the default"
        case Obstacle.FEW_SAMPLED:
            why = f"sessions were sampled in {item.sampled} of {item.blocks} blocks, and {FEWEST_BLOCKS} are needed"
            return why, "measure more blocks, or longer runs: the runs' reasons say where samples were lost"
        case _:
            assert_never(item.obstacle)


def say_samples(item: Attribution) -> str:
    """How many samples there are, and who took them."""
    origin = item.origin
    text = (
        f"{count(item.samples, 'sample')} of sessions in {count(item.blocks, 'block')}, by {origin.source.value} at "
        f"{origin.hertz:.0f} Hz"
    )
    if origin.statement_samples is None:
        return text
    few = count(origin.statement_samples, "sample")
    return f"{text} (statements told apart by {few} of {SampleSource.ACTIVITY.value} at {ACTIVITY_HERTZ:.0f} Hz)"


def choose_rows(rows: Sequence[Contribution], most: int = _MOST_ROWS) -> tuple[list[Contribution], list[Contribution]]:
    """Rows that are shown, the resolved ones and the largest, the largest first; and those that are left."""
    first = sorted(rows, key=lambda row: (not row.resolved, -abs(row.difference)))
    shown = sorted(first[:most], key=lambda row: -abs(row.difference))
    return shown, first[most:]


def name_among_rows(item: Contribution) -> str:
    """As `name_row`, beside rows of the same part in named statements."""
    return name_row(item) if item.query or item.part in _OF_NO_STATEMENT else f"{name_part(item)} in other statements"


def say_left(left: Sequence[Contribution], size: float, unit: str) -> str:
    """How many rows are not shown, and what they add together."""
    rest = sum(row.difference for row in left) / size
    return f"and {count(len(left), 'smaller row')}, {render_signed(rest, 1)} {unit} together"


def render_amount(value: float, metric: str) -> str:
    """A mean without "per transaction", which the name of the metric says; of counts with a digit."""
    unit = METRICS[metric].unit
    match unit:
        case Unit.BYTES_PER_TRANSACTION:
            return render_bytes(value)
        case Unit.COUNT:
            return f"{value:.1f}"
        case _:
            return render_value(value, unit).removesuffix("/tx")
