"""Doubts in sentences without a full stop: the words of `model.doubts`, which are made nowhere else."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, assert_never

from pgstrata.model import doubts
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_environment, say_on
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.units import render_apart, render_bytes, render_duration, render_names, render_percent_change

_LONGEST_VALUE: Final = 60
_CONTEXT: Final = 20
_MOST_NAMED: Final = 3
_NAMES: Final = frozenset({"alone", "baseline", "control", "environment", "environments", "holders", "names", "of"})
"""Fields of doubts that may have identities of environments in them."""

_PLAIN: Final = {
    "small_and_early": "found early, where effects below 3 % come out larger than they are: confirm in a fresh study",
    "baseline_collapsed": "the baseline collapsed at this load: nothing to compare with",
    "both_collapsed": "both environments collapsed at this load: nothing to compare with",
    "thp_always": "transparent huge pages are always on: the kernel may stop a process to find or make a huge page",
}
# Of servers that have the same settings that others lack: more are counted together.
_MOST_GROUPS: Final = 3
_NO_BLOCKS: Final = (
    "there is no column block, so values cannot be paired. A machine that drifts from one environment to the next "
    "looks like a difference, and noise that both shared is not removed. Each value must come from a run of its own. "
    "Better: let the environments take turns, and number the turns in a column block"
)
_ONE_AFTER_ANOTHER: Final = (
    "the environments were measured one after another: a machine that drifts from one to the next looks like a "
    "difference, and noise that both shared is not removed. Each value must come from a run of its own. Better: let "
    "the environments take turns, and number the turns in a column block"
)
_NO_BLOCKS_ORDERED: Final = (
    ". Along ordered levels such a drift looks like a step or hides one, and there is no test for a trend"
)
_NAMED: Final = {
    "built_with_assertions": "{names} is built with assertions, which cost more than most differences",
    "cells_left_out": "without the cells in which the baseline collapsed: {names}",
    "checkpoint_free": "checkpoint-free: no run of {names} contained a checkpoint, so that neither its writes nor the "
    "full-page images after it are in the figures",
    "clock_source": "the clock source is {names}: each reading of the clock is a system call, in client and server",
    "collapsed_cells": "{of} collapsed in {number}: {names}",
    "cpu_governor": "the CPU's frequency governor is {names}: light load may run at a lower frequency than heavy load",
    "cut_cycles": "fewer than two checkpoint cycles in runs of {names}: the figures depend on where in a cycle a run "
    "begins and ends",
    "direction_assumed": "higher values of {names} are taken as better; --lower-is-better if they are not",
    "few_samples": "no {percentile} of {names}: fewer than 100 sampled transactions lie beyond it in any run; longer "
    "runs have more",
    "identical": "the same values in every block of {both}: is it one series of results twice?",
    "ignored_columns": "columns that are not used: {some}",
    "measured_once": "measured only once, so its scatter is unknown: {some}",
    "repeated_cells": "{both} have the same values in every environment, digit for digit: two measurements hardly ever "
    "agree like that, and one may be a copy of the other",
    "repeated_environments": "{both} have the same values in every cell, digit for digit: two measurements hardly ever "
    "agree like that, and one may be a copy of the other",
    "these_instances": "the answer is about running instances ({both}), not about all starts of such servers: they "
    "were never restarted, so that a lasting difference between two starts is in every block. A command in [restart] "
    "would restart them before each run",
    "these_machines": "the answer is about these machines ({both}), not about machines like them: one of each was "
    "measured, and its network path from the client is part of the difference",
    "turns_contradicted": "the time stamps contradict the blocks: all runs of {some} were measured before, or after, "
    "all runs of the baseline, so the environments did not take turns",
}
_COUNTED: Final = {
    "collapsed_runs": "{number} of {runs} of {environment} collapsed and {verb} not in the estimate",
    "equivalences_uncorrected": '"no difference" is claimed {number} times, each at its own level: the chance that one '
    "of these claims is wrong grows with their number",
    "imbalance": "{number} of {runs} of {environment} {verb} invalid: the others may be a biased selection",
    "incomplete": "stopped early: {number} of {of} planned blocks {past} measured",
    "measured_apart": "in {blocks} the two environments did not take turns with each other, for example after an "
    "interruption: these are not in the estimate",
    "neighbours_differ": "in {blocks} other processes used the CPU during one of the two environments only: they stay "
    "in the estimate, because random order exposes both to background load",
    "suspect_runs": "{number} of {runs} of {environment} {verb} suspect and in the estimate",
}
_WAL_DIFFERS: Final = (
    "WAL per transaction: {} in {}, {} in {}. After a checkpoint the first change of each page is logged whole, which "
    "weighs more on fewer transactions. Over whole checkpoint cycles the difference may be another"
)


def say_doubt(doubt: doubts.Doubt) -> str:
    """What is doubted and why, and what to do where something can be done."""
    match doubt:
        case doubts.PlainDoubt():
            return _PLAIN[doubt.code]
        case doubts.NamedDoubt():
            return _say_named(doubt)
        case doubts.CountedDoubt(number=number, of=of):
            runs, blocks = count(of, "run"), count(number, "block")
            verb, past = ("is", "was") if number == 1 else ("are", "were")
            return _COUNTED[doubt.code].format(
                number=number, of=of, runs=runs, blocks=blocks, environment=doubt.environment, verb=verb, past=past
            )
        case doubts.SidesDiffer():
            return _say_sides(doubt)
        case _ if isinstance(doubt, doubts.VerdictDoubt):
            return _say_of_verdict(doubt)
        case _:
            return _say_of_study(doubt)


def say_doubt_of(doubt: doubts.Doubt, experiment: Experiment) -> str:
    """As `say_doubt`, with environments called as they are everywhere in an answer."""
    names = {each.name: name_environment(each, experiment) for each in experiment.environments}
    named = {field.name: _rename(getattr(doubt, field.name), names) for field in fields(doubt) if field.name in _NAMES}
    return say_doubt(replace(doubt, **named))


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            return names.get(value, value)
        case tuple():
            return tuple(_rename(each, names) for each in value)
        case Mapping():
            return {key: _rename(each, names) for key, each in value.items()}
        case _:
            return value


def _say_named(doubt: doubts.NamedDoubt) -> str:
    names = ", ".join(doubt.names)
    if doubt.code == "no_blocks":
        return f"{_ONE_AFTER_ANOTHER if doubt.of else _NO_BLOCKS}{_NO_BLOCKS_ORDERED if names else ''}"
    if doubt.code == "huge_pages_fallback":
        silent = f"huge_pages = {doubt.of}, and servers before 17 do not show whether they got huge pages"
        return f"{silent if doubt.of else 'huge pages were asked for, and the server got none'}: {names}"
    return _NAMED[doubt.code].format(
        names=names,
        both=" and ".join(doubt.names),
        some=_name_some(doubt.names),
        number=count(len(doubt.names), "cell"),
        of=doubt.of,
        percentile=doubt.of.removeprefix("latency_"),
    )


def _say_sides(doubt: doubts.SidesDiffer) -> str:
    (name, base), (ours, theirs) = doubt.environments, doubt.values
    match doubt.code:
        case "anomalies_differ":
            far = "runs far from the median of their environment"
            return f"{far}: {ours:.0f} of {doubt.of[0]} in {name}, {theirs:.0f} of {doubt.of[1]} in {base}"
        case "wal_differs":
            return _WAL_DIFFERS.format(render_bytes(ours), name, render_bytes(theirs), base)
        case "checkpoints_differ" | "autovacuums_differ":
            word = "checkpoints" if doubt.code == "checkpoints_differ" else "autovacuum runs"
            return f"{word} in a run: {ours:.1f} in {name}, {theirs:.1f} in {base}: the two were not affected alike"
        case _:
            assert_never(doubt.code)


# ------------------------------------------------------------------------------------------------ of a verdict


def _say_of_verdict(doubt: doubts.VerdictDoubt) -> str:
    match doubt:
        case doubts.TooFewBlocks():
            return _say_too_few(doubt)
        case doubts.TooFewValues(values=(ours, theirs), needed=needed):
            return (
                f"{ours} against {theirs} values are too few for an interval at this level, which needs {needed} "
                f"against {needed}"
            )
        case doubts.DependentValues():
            return _say_dependent(doubt)
        case doubts.Undecided():
            low, high = render_percent_change(doubt.low), render_percent_change(doubt.high)
            return f"the difference lies between {low} and {high}"
        case doubts.Unstable():
            return _say_unstable(doubt)
        case doubts.ControlDiffers():
            return (
                f"a control ({doubt.control}) must not differ, but came out {doubt.verdict}: do not trust the "
                "other differences"
            )
        case doubts.NotSteady():
            off, longer = render_percent_change(1 + doubt.opening), render_duration(doubt.seconds / 2)
            return (
                f"throughput of {doubt.environment} is not steady: {off} in the first fifth of its runs, compared with "
                "the rest. The difference includes this. Give the cell a longer warm-up (warmup, by "
                f"{longer} or more) or longer runs"
            )
        case _:
            assert_never(doubt)


def _say_too_few(doubt: doubts.TooFewBlocks) -> str:
    if doubt.needed is None:
        return "too many comparisons for any interval: compare fewer environments"
    text = f"{count(doubt.blocks, 'usable block')}, {doubt.needed - doubt.blocks} more needed for an interval"
    if doubt.level is not None:
        text += f" at the level of {doubt.level:g}, because several headlines share the error probability"
    return text if doubt.planned is None else f"{text}; the plan has only {doubt.planned}"


def _say_dependent(doubt: doubts.DependentValues) -> str:
    like = f"are correlated ({doubt.correlation:.2f}), like the seconds of one run or those of a drifting machine"
    if doubt.blocks:
        one, other = doubt.environments
        return (
            f"the differences of {one} and {other} in {doubt.blocks} blocks {like}, so they count as only a few: "
            "give one value per run"
        )
    named = _name_some(doubt.environments)
    return f"the values of {named} {like}, so they count as one each: give one value per run"


def _say_unstable(doubt: doubts.Unstable) -> str:
    said = _say_groups(doubt)
    return f"{said}; effect and interval describe the middle of all blocks" if doubt.estimated else said


def _say_groups(doubt: doubts.Unstable) -> str:
    far = f"lie more than {doubt.limit * 100:.0f} % from their median"
    if doubt.one_look:
        blocks = f"blocks of {doubt.environments[0]} against {doubt.environments[1]}"
        if not doubt.groups:
            return f"{doubt.strays / doubt.blocks * 100:.0f} % of the {blocks} {far}"
        larger = max(share for share, _ in doubt.groups)
        sizes = f"{larger * 100:.0f} and {(1 - larger) * 100:.0f} %"
        return f"the {blocks} fall into two groups of {sizes}: look for what differs between them"
    text = f"{doubt.strays} of {doubt.blocks} blocks {far}"
    if doubt.groups:
        low, high = (f"around {render_percent_change(middle)}" for _, middle in doubt.groups)
        lower, upper = (f"{share * 100:.0f} %" for share, _ in doubt.groups)
        text = f"the blocks fall into two groups, {lower} of them {low} and {upper} {high}"
    return text if doubt.alone is None else f"{text}; only the runs of {doubt.alone} do so by themselves"


# ------------------------------------------------------------------------------------------------ of tables and studies


def _say_of_study(doubt: doubts.StudyDoubt) -> str:
    match doubt:
        case doubts.OrderOfFile():
            return (
                f"the levels are taken in the order of the file, {_name_some(doubt.levels)}; by number it would be "
                f"{_name_some(doubt.by_number)}: begin the file with a block in the order that you mean"
            )
        case doubts.BlocksLeftOut():
            return _say_left_out(doubt)
        case doubts.Outliers(environments=(name, base)):
            named = _name_some([f"block {block}" for block in doubt.blocks])
            head = f"far from the other blocks of {name} against {base}: {named}"
            return f"{head}; they are kept with limited weight: see what happened there"
        case doubts.ColdStart():
            return _say_cold(doubt)
        case doubts.InSequence() | doubts.DriftingRepeats():
            return _say_order(doubt)
        case doubts.BuildsDiffer():
            return _say_builds(doubt)
        case doubts.UndeclaredDifference():
            values = _render_holders(doubt.holders)
            return f"{doubt.fact} differs, and nothing that the experiment varies explains it: {values}"
        case doubts.DefaultsDiffer():
            return _say_defaults(doubt)
        case doubts.FewClients():
            return (
                f"fewer clients than CPUs ({doubt.cpus}) on a virtual machine ({doubt.machine}): waking up an idle CPU "
                f"may cost more than the work: {', '.join(doubt.cells)}"
            )
        case doubts.Unseen():
            runs = f"{doubt.number} of {count(doubt.of, 'run')}"
            told = f"{doubt.environment}: in {runs} {say_reason(doubt.reason)} ({doubt.first})"
            return f"{doubt.kinds} more kinds of missing samples" if doubt.kinds else told
        case _:
            assert_never(doubt)


def _say_cold(doubt: doubts.ColdStart) -> str:
    change = render_percent_change(doubt.change)
    remedy = "did it run with cold caches? Leave out the first run of each, or warm up before it"
    if doubt.of:
        return (
            f"the first value is the worst in {doubt.worst} of {doubt.of} series, typically {change} against the "
            f"others: {remedy}"
        )
    return f"the first value of {_name_some(doubt.environments)} is far worse than the others ({change}): {remedy}"


def _say_order(doubt: doubts.InSequence | doubts.DriftingRepeats) -> str:
    """The sentence on a doubt about the order in which environments or repeats were measured."""
    if isinstance(doubt, doubts.InSequence):
        number = len(doubt.environments)
        some = "" if number == doubt.of else f" ({number} of {doubt.of})"
        return (
            f"measured one after the other by their time stamps: all runs of {_name_some(doubt.environments)}{some} "
            f"before, or after, all runs of {doubt.baseline}. A drift of the machine is in the difference, too"
        )
    reason = "the machine or the data changed during the measurements, and repeats are not independent values"
    if not doubt.timed:
        reason = f"either the file is sorted by its values, or {reason}"
    return (
        f"repeats {'rise' if doubt.change > 1 else 'fall'} in {doubt.alike} of {doubt.of} series, by "
        f"{'their time stamps' if doubt.timed else 'the order of the file'}, typically "
        f"{render_percent_change(doubt.change)} from the first to the last: {reason}"
    )


def _say_left_out(doubt: doubts.BlocksLeftOut) -> str:
    parts = []
    for lacks, blocks in doubt.lacking.items():
        rows = _name_some([name if cell is None else name + say_on(cell, name) for name, cell in lacks])
        have = f"block {blocks[0]} has" if len(blocks) == 1 else f"blocks {_name_some(blocks)} have"
        parts.append(f"{have} no row of {rows}")
    left = sum(len(blocks) for blocks in doubt.lacking.values())
    head = f"{left:,} of {left + doubt.used:,} blocks {'is' if left == 1 else 'are'} left out"
    return (
        f"{head} of {' against '.join(doubt.environments)}: {'; '.join(parts[:_MOST_NAMED])}"
        f"{', and so on' if len(parts) > _MOST_NAMED else ''}"
        f"{'. What is left may be a biased selection' if doubt.many else ''}"
    )


def _name_some(names: Sequence[str]) -> str:
    return render_names(names, _MOST_NAMED)


def _say_builds(doubt: doubts.BuildsDiffer) -> str:
    made = [
        " ".join((f"{name} by {maker or 'an unknown compiler'}", *(("with", system) if system else ()), *flags))
        for name, maker, system, flags in zip(doubt.environments, doubt.makers, doubt.systems, doubt.flags, strict=True)
    ]
    if doubt.code == "suppliers_differ":
        return f"{', '.join(made)}: how they were packaged is in the difference too"
    return f"built in different ways, whose effect is in the difference too: {', '.join(made)}"


def _say_defaults(doubt: doubts.DefaultsDiffer) -> str:
    """Those that differ by name, those that only some servers have by number."""
    differing = ", ".join(f"{name} ({_render_holders(holders)})" for name, holders in doubt.settings.items())
    parts = [f"different between the servers: {differing}"] if differing else []
    only = [(number, f"only in {' and '.join(servers)}") for servers, number in doubt.exclusive.items()]
    if len(only) > _MOST_GROUPS:
        parts.append(f"{sum(doubt.exclusive.values())} settings exist only in some of them")
    elif only:
        (number, where), *others = only
        exist = "setting exists" if number == 1 else "settings exist"
        parts.append(", ".join([f"{number} {exist} {where}", *(f"{more} {there}" for more, there in others)]))
    return f"not set by the experiment{', and ' if differing else ': '}{'; '.join(parts)}"


def _render_holders(holders: Mapping[str, Sequence[str]]) -> str:
    """Each value with those that have it: 4MB in a, b; 8MB in c."""
    values = render_apart(tuple(holders), _LONGEST_VALUE, _CONTEXT)
    return "; ".join(f"{value} in {', '.join(names)}" for value, names in zip(values, holders.values(), strict=True))
