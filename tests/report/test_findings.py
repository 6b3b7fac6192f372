"""Every doubt has its sentence, and each sentence is pinned here and nowhere else."""

from dataclasses import replace

import pytest

from pgstrata.model import doubts
from pgstrata.model.attribution import Obstacle, Unattributed
from pgstrata.model.doubts import CountedDoubt, NamedDoubt, PlainDoubt
from pgstrata.model.guards import GUARDS, Force
from pgstrata.model.reasons import Reason
from pgstrata.report.sentences.causes import say_obstacle
from pgstrata.report.sentences.doubts import SummedUp, sum_up_kind
from pgstrata.report.sentences.findings import say_doubt, say_doubt_of
from pgstrata.report.sentences.reasons import say_reason

BOTH = ("b", "a")
LOST = Reason(code="sampler_lost", names=("seconds",), how="ended", said="Killed")
MISSING = Reason(code="samples_missing", how="sessions", value=0.2)
RESET = Reason(code="counters_reset", names=("io",))
UNSEEN = doubts.Unseen(code=LOST.code, environment="18", number=1, of=4, reason=LOST, first="b02/pg18/c1")
STRAYS = {"environments": BOTH, "strays": 4, "blocks": 12, "limit": 0.05}
NO_BLOCKS = (
    "there is no column block, so values cannot be paired. A machine that drifts from one environment to the next "
    "looks like a difference, and noise that both shared is not removed. Each value must come from a run of its own. "
    "Better: let the environments take turns, and number the turns in a column block"
)
SENTENCES = [
    (
        PlainDoubt(code="small_and_early"),
        "found early, where effects below 3 % come out larger than they are: confirm in a fresh study",
    ),
    (
        PlainDoubt(code="baseline_collapsed"),
        "the baseline collapsed at this load: nothing to compare with",
    ),
    (
        PlainDoubt(code="both_collapsed"),
        "both environments collapsed at this load: nothing to compare with",
    ),
    (
        PlainDoubt(code="thp_always"),
        "transparent huge pages are always on: the kernel may stop a process to find or make a huge page",
    ),
    (
        NamedDoubt(code="built_with_assertions", names=("b",)),
        "b is built with assertions, which cost more than most differences",
    ),
    (
        NamedDoubt(code="cells_left_out", names=("c8", "c16")),
        "without the cells in which the baseline collapsed: c8, c16",
    ),
    (
        NamedDoubt(code="checkpoint_free", names=("c8", "c16")),
        (
            "checkpoint-free: no run of c8, c16 contained a checkpoint, so that neither its writes nor the full-page images "
            "after it are in the figures"
        ),
    ),
    (
        NamedDoubt(code="clock_source", names=("hpet",)),
        "the clock source is hpet: each reading of the clock is a system call, in client and server",
    ),
    (
        NamedDoubt(code="cpu_governor", names=("powersave",)),
        "the CPU's frequency governor is powersave: light load may run at a lower frequency than heavy load",
    ),
    (
        NamedDoubt(code="cut_cycles", names=("c8", "c16")),
        (
            "fewer than two checkpoint cycles in runs of c8, c16: the figures depend on where in a cycle a run begins "
            "and ends"
        ),
    ),
    (
        NamedDoubt(code="direction_assumed", names=("pauses",)),
        "higher values of pauses are taken as better; --lower-is-better if they are not",
    ),
    (
        NamedDoubt(code="identical", names=("b", "a")),
        "the same values in every block of b and a: is it one series of results twice?",
    ),
    (
        NamedDoubt(code="repeated_cells", names=("read-only", "read-only with checksums")),
        (
            "read-only and read-only with checksums have the same values in every environment, digit for digit"
            ": two measurements hardly ever agree like that, and one may be a copy of the other"
        ),
    ),
    (
        NamedDoubt(code="repeated_environments", names=("a", "b")),
        (
            "a and b have the same values in every cell, digit for digit"
            ": two measurements hardly ever agree like that, and one may be a copy of the other"
        ),
    ),
    (
        NamedDoubt(code="ignored_columns", names=("host", "date", "x", "y")),
        "columns that are not used: host, date, x and 1 more",
    ),
    (
        NamedDoubt(code="measured_once", names=("17", "18")),
        "measured only once, so its scatter is unknown: 17, 18",
    ),
    (
        NamedDoubt(code="these_instances", names=("dsn:staging", "dsn:candidate")),
        (
            "the answer is about running instances (dsn:staging and dsn:candidate), not about all starts of such "
            "servers: they were never restarted, so that a lasting difference between two starts is in every block"
            ". A command in [restart] would restart them before each run"
        ),
    ),
    (
        NamedDoubt(code="these_machines", names=("local", "ssh:db1")),
        (
            "the answer is about these machines (local and ssh:db1), not about machines like them: one of each was "
            "measured, and its network path from the client is part of the difference"
        ),
    ),
    (
        doubts.TooFewBlocks(blocks=7, needed=9, level=0.01, planned=7),
        (
            "7 usable blocks, 2 more needed for an interval at the level of 0.01, because several headlines share the "
            "error probability; the plan has only 7"
        ),
    ),
    (doubts.TooFewBlocks(blocks=1, needed=7), "1 usable block, 6 more needed for an interval"),
    (
        doubts.TooFewBlocks(blocks=7, needed=None),
        "too many comparisons for any interval: compare fewer environments",
    ),
    (
        doubts.DependentValues(environments=("a", "b"), correlation=0.954),
        (
            "the values of a, b are correlated (0.95), like the seconds of one run or those of a drifting machine, so they "
            "count as one each: give one value per run"
        ),
    ),
    (
        doubts.DependentValues(environments=("b", "a"), correlation=0.9, blocks=60),
        (
            "the differences of b and a in 60 blocks are correlated (0.90), like the seconds of one run or those of a "
            "drifting machine, so they count as only a few: give one value per run"
        ),
    ),
    (
        doubts.TooFewValues(values=(3, 5), needed=4),
        "3 against 5 values are too few for an interval at this level, which needs 4 against 4",
    ),
    (doubts.Undecided(low=0.923, high=1.105), "the difference lies between -7.7 % and +10.5 %"),
    (
        doubts.Unstable(**STRAYS, groups=((0.375, 0.9), (0.625, 1.2)), one_look=False),
        "the blocks fall into two groups, 38 % of them around -10.0 % and 62 % around +20.0 %",
    ),
    (
        doubts.Unstable(**STRAYS, groups=((0.375, 0.9), (0.625, 1.2)), one_look=False, estimated=True),
        (
            "the blocks fall into two groups, 38 % of them around -10.0 % and 62 % around +20.0 %; effect and "
            "interval describe the middle of all blocks"
        ),
    ),
    (
        doubts.Unstable(**STRAYS, groups=((0.4, 0.9), (0.6, 1.2)), one_look=True),
        "the blocks of b against a fall into two groups of 60 and 40 %: look for what differs between them",
    ),
    (
        doubts.Unstable(**STRAYS, groups=(), one_look=False, alone="b"),
        "4 of 12 blocks lie more than 5 % from their median; only the runs of b do so by themselves",
    ),
    (
        doubts.Unstable(**STRAYS, groups=(), one_look=True),
        "33 % of the blocks of b against a lie more than 5 % from their median",
    ),
    (
        doubts.ControlDiffers(control="same", verdict="better"),
        "a control (same) must not differ, but came out better: do not trust the other differences",
    ),
    (CountedDoubt(code="incomplete", number=1, of=12), "stopped early: 1 of 12 planned blocks was measured"),
    (CountedDoubt(code="incomplete", number=9, of=12), "stopped early: 9 of 12 planned blocks were measured"),
    (
        CountedDoubt(code="measured_apart", number=1, of=12),
        (
            "in 1 block the two environments did not take turns with each other, for example after an interruption: "
            "these are not in the estimate"
        ),
    ),
    (
        CountedDoubt(code="neighbours_differ", number=2, of=12),
        (
            "in 2 blocks other processes used the CPU during one of the two environments only: they stay in the "
            "estimate, because random order exposes both to background load"
        ),
    ),
    (
        CountedDoubt(code="equivalences_uncorrected", number=3, of=4),
        (
            '"no difference" is claimed 3 times, each at its own level: the chance that one of these claims is wrong '
            "grows with their number"
        ),
    ),
    (
        CountedDoubt(code="imbalance", number=3, of=12, environment="b"),
        "3 of 12 runs of b are invalid: the others may be a biased selection",
    ),
    (
        CountedDoubt(code="suspect_runs", number=1, of=1, environment="b"),
        "1 of 1 run of b is suspect and in the estimate",
    ),
    (
        CountedDoubt(code="collapsed_runs", number=1, of=12, environment="b"),
        "1 of 12 runs of b collapsed and is not in the estimate",
    ),
    (NamedDoubt(code="collapsed_cells", names=("c8", "c16"), of="b"), "b collapsed in 2 cells: c8, c16"),
    (
        doubts.NotSteady(environment="b", opening=-0.12, seconds=60),
        (
            "throughput of b is not steady: -12.0 % in the first fifth of its runs, compared with the rest. The "
            "difference includes this. Give the cell a longer warm-up (warmup, by 30 s or more) or longer runs"
        ),
    ),
    (
        doubts.SidesDiffer(code="anomalies_differ", environments=BOTH, values=(4, 0), of=(12, 11)),
        "runs far from the median of their environment: 4 of 12 in b, 0 of 11 in a",
    ),
    (
        doubts.SidesDiffer(code="checkpoints_differ", environments=BOTH, values=(1, 0.25)),
        "checkpoints in a run: 1.0 in b, 0.2 in a: the two were not affected alike",
    ),
    (
        doubts.SidesDiffer(code="autovacuums_differ", environments=BOTH, values=(1, 0)),
        "autovacuum runs in a run: 1.0 in b, 0.0 in a: the two were not affected alike",
    ),
    (
        doubts.SidesDiffer(code="wal_differs", environments=BOTH, values=(2048, 512)),
        (
            "WAL per transaction: 2 kB in b, 512 B in a. After a checkpoint the first change of each page is logged "
            "whole, which weighs more on fewer transactions. Over whole checkpoint cycles the difference may be another"
        ),
    ),
    (NamedDoubt(code="no_blocks", names=()), NO_BLOCKS),
    (
        NamedDoubt(code="no_blocks", names=("9", "10")),
        (
            f"{NO_BLOCKS}. Along ordered levels such a drift looks like a step or hides one, and there is no test for "
            "a trend"
        ),
    ),
    (
        NamedDoubt(code="no_blocks", names=(), of="one-after-another"),
        (
            "the environments were measured one after another: a machine that drifts from one to the next looks like "
            "a difference, and noise that both shared is not removed. Each value must come from a run of its own. "
            "Better: let the environments take turns, and number the turns in a column block"
        ),
    ),
    (
        NamedDoubt(code="turns_contradicted", names=("b",)),
        (
            "the time stamps contradict the blocks: all runs of b were measured before, or after, all runs of the "
            "baseline, so the environments did not take turns"
        ),
    ),
    (
        doubts.InSequence(environments=("b", "c"), baseline="a", of=3),
        (
            "measured one after the other by their time stamps: all runs of b, c (2 of 3) before, or after, all runs of "
            "a. A drift of the machine is in the difference, too"
        ),
    ),
    (
        doubts.DriftingRepeats(change=1.05, alike=8, of=9, timed=True),
        (
            "repeats rise in 8 of 9 series, by their time stamps, typically +5.0 % from the first to the last: the machine "
            "or the data changed during the measurements, and repeats are not independent values"
        ),
    ),
    (
        doubts.DriftingRepeats(change=0.95, alike=8, of=9, timed=False),
        (
            "repeats fall in 8 of 9 series, by the order of the file, typically -5.0 % from the first to the last: either "
            "the file is sorted by its values, or the machine or the data changed during the measurements, and repeats "
            "are not independent values"
        ),
    ),
    (
        doubts.OrderOfFile(levels=("9", "14", "10", "16"), by_number=("9", "10", "14", "16")),
        (
            "the levels are taken in the order of the file, 9, 14, 10 and 1 more; by number it would be 9, 10, 14 and 1 "
            "more: begin the file with a block in the order that you mean"
        ),
    ),
    (
        doubts.BlocksLeftOut(
            environments=BOTH,
            lacking={(("b", None),): ("3",), (("a", "y"),): ("7", "9", "11", "12")},
            used=9,
            many=True,
        ),
        (
            "5 of 14 blocks are left out of b against a: block 3 has no row of b; blocks 7, 9, 11 and 1 more have no row of "
            "a on y. What is left may be a biased selection"
        ),
    ),
    (
        doubts.BlocksLeftOut(environments=BOTH, lacking={(("b", None), ("a", None)): ("3",)}, used=9, many=False),
        "1 of 10 blocks is left out of b against a: block 3 has no row of b, a",
    ),
    (
        doubts.BlocksLeftOut(environments=BOTH, lacking={(("jit on", "y"),): ("3",)}, used=9, many=False),
        "1 of 10 blocks is left out of b against a: block 3 has no row of jit on, on y",
    ),
    (
        doubts.Outliers(environments=BOTH, blocks=("9", "4")),
        (
            "far from the other blocks of b against a: block 9, block 4; they are kept with limited weight: see what "
            "happened there"
        ),
    ),
    (
        doubts.ColdStart(environments=("a",), change=0.6),
        (
            "the first value of a is far worse than the others (-40.0 %): did it run with cold caches? Leave out the "
            "first run of each, or warm up before it"
        ),
    ),
    (
        doubts.ColdStart(environments=BOTH, change=1.5, worst=41, of=43),
        (
            "the first value is the worst in 41 of 43 series, typically +50.0 % against the others: did it run with "
            "cold caches? Leave out the first run of each, or warm up before it"
        ),
    ),
    (
        doubts.BuildsDiffer(
            code="compilers_differ",
            environments=BOTH,
            makers=("gcc 7.5.0", ""),
            systems=("meson", ""),
            flags=(("-Os",), ()),
        ),
        (
            "built in different ways, whose effect is in the difference too: b by gcc 7.5.0 with meson -Os, a by an unknown "
            "compiler"
        ),
    ),
    (
        doubts.BuildsDiffer(code="suppliers_differ", environments=BOTH, makers=("jars", "prefix")),
        "b by jars, a by prefix: how they were packaged is in the difference too",
    ),
    (
        doubts.UndeclaredDifference(fact="host.cpu", holders={"x": ("a", "c"), "": ("b",)}),
        "host.cpu differs, and nothing that the experiment varies explains it: x in a, c; (empty) in b",
    ),
    (
        doubts.DefaultsDiffer(
            settings={"jit": {"off": ("16",), "on": ("18",)}}, exclusive={("18",): 1, ("14", "16"): 3}
        ),
        (
            "not set by the experiment, and different between the servers: jit (off in 16; on in 18); 1 setting exists only "
            "in 18, 3 only in 14 and 16"
        ),
    ),
    (
        doubts.DefaultsDiffer(settings={}, exclusive={("18",): 2}),
        "not set by the experiment: 2 settings exist only in 18",
    ),
    (
        doubts.DefaultsDiffer(settings={}, exclusive={("14",): 5, ("14", "16"): 3, ("17", "18"): 19, ("18",): 2}),
        "not set by the experiment: 29 settings exist only in some of them",
    ),
    (
        doubts.FewClients(cpus=4, machine="kvm", cells=("c1", "c2")),
        (
            "fewer clients than CPUs (4) on a virtual machine (kvm): waking up an idle CPU may cost more than the work: "
            "c1, c2"
        ),
    ),
    (
        NamedDoubt(code="huge_pages_fallback", names=("a", "b")),
        "huge pages were asked for, and the server got none: a, b",
    ),
    (
        NamedDoubt(code="huge_pages_fallback", names=("a", "b"), of="try"),
        "huge_pages = try, and servers before 17 do not show whether they got huge pages: a, b",
    ),
    (
        NamedDoubt(code="few_samples", names=("c1", "c2"), of="latency_p99"),
        "no p99 of c1, c2: fewer than 100 sampled transactions lie beyond it in any run; longer runs have more",
    ),
    (
        UNSEEN,
        f"18: in 1 of 4 runs {say_reason(LOST)} (b02/pg18/c1)",
    ),
    (
        replace(UNSEEN, code=MISSING.code, number=2, reason=MISSING),
        f"18: in 2 of 4 runs {say_reason(MISSING)} (b02/pg18/c1)",
    ),
    (
        replace(UNSEEN, code=RESET.code, number=4, reason=RESET),
        f"18: in 4 of 4 runs {say_reason(RESET)} (b02/pg18/c1)",
    ),
    (replace(UNSEEN, kinds=2), "2 more kinds of missing samples"),
]


@pytest.mark.parametrize(("doubt", "sentence"), SENTENCES, ids=lambda value: getattr(value, "code", ""))
def test_a_doubt_is_told_in_these_words(doubt, sentence):
    assert say_doubt(doubt) == sentence


def test_every_doubt_is_among_them():
    codes = {doubt.code for doubt, _ in SENTENCES}
    of_runs = {"above_ceiling", "synthetic"}
    assert codes == {guard.code for guard in GUARDS.values() if guard.force is Force.WARNING} - of_runs


def test_of_long_values_the_part_is_told_in_which_they_differ():
    common = "--with-something " * 20
    holders = {f"{common}--with-llvm": ("a",), f"{common}--without-llvm": ("b",)}
    text = say_doubt(doubts.UndeclaredDifference(fact="server.configure", holders=holders))
    assert text.endswith(": ...ith-something --with-llvm in a; ...ith-something --without-llvm in b")


@pytest.mark.parametrize(
    ("obstacle", "why", "remedy"),
    [
        (
            Obstacle.FIXED_RATE,
            (
                "at a fixed rate, pauses are told apart by mean latency and mean lag, which are missing, do not fit "
                "the throughput, or leave no sample of a transaction"
            ),
            "measure longer runs or a higher rate; or leave out `rate`, and sessions have no pauses",
        ),
        (
            Obstacle.SEARCHED,
            "a run with an objective tries many rates, each with its own time per transaction",
            "leave out `objective`, and the clients run at full speed",
        ),
        (Obstacle.FEW_BLOCKS, "4 of the 2 blocks that are needed", "measure more: `pgstrata run` resumes"),
        (
            Obstacle.SAMPLER_LOST,
            "no sessions were sampled: the sampler seconds ended before the run did: it was killed",
            "see the runs' reasons, fix the cause, then measure again",
        ),
        (
            Obstacle.NO_SESSIONS,
            "no sessions were sampled: `diagnosis = false`, or measured by a pgstrata that did not sample yet",
            "measure again with `diagnosis = true`, the default",
        ),
        (
            Obstacle.FEW_SAMPLED,
            "sessions were sampled in 1 of 4 blocks, and 2 are needed",
            "measure more blocks, or longer runs: the runs' reasons say where samples were lost",
        ),
    ],
)
def test_why_a_difference_cannot_be_split_is_told_with_what_helps(obstacle, why, remedy):
    arms = {"environment": "b", "reference": "a", "cell": "c1"}
    item = Unattributed(**arms, obstacle=obstacle, blocks=4, sampled=1, lost=replace(LOST, said="it was killed"))
    assert say_obstacle(item) == (why, remedy)


def test_doubts_call_environments_as_the_answer_does(desk):
    tuned = replace(desk.environment("18-tuned", (("server", "18"), ("jit", "on"))), label="18 tuned")
    plain = desk.environment("pg18", (("server", "18"),))
    experiment = desk.verdict_answer(environments=(plain, tuned)).study.plan.experiment
    both = ("18-tuned", "pg18")
    said = [
        say_doubt_of(doubt, experiment)
        for doubt in (
            CountedDoubt(code="suspect_runs", number=3, of=4, environment="18-tuned"),
            doubts.SidesDiffer(code="checkpoints_differ", environments=both, values=(2.0, 1.0)),
            NamedDoubt(code="cut_cycles", names=both),
            doubts.ControlDiffers(control="18-tuned", verdict="slower"),
            doubts.UndeclaredDifference(fact="kernel", holders={"6.1": ("18-tuned",), "6.2": ("pg18",)}),
            doubts.NotSteady(environment="18-tuned", opening=-0.1, seconds=10.0),
        )
    ]
    assert all("18 tuned" in text for text in said), said
    assert not [text for text in said if "18-tuned" in text or "pg18" in text]


def test_a_sentence_that_stands_for_others_is_no_case_of_its_own():
    assert sum_up_kind("sampler_lost", ["a", "b", "c"]) == SummedUp("a (and 2 more of this kind)", ("b", "c"))
    assert sum_up_kind("sampler_lost", ["a"]) == SummedUp("a")
