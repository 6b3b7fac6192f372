"""The gate of a run: each guard on captures of pgbench and of /proc, and the forces of what it says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import records
from guard_book import observe
from pgstrata.collectors.hostfacts.parse import parse_host_facts
from pgstrata.collectors.procfs.sampler import ProcfsCollector
from pgstrata.conduct.derive import begun_apart, derive_record
from pgstrata.conduct.judge import judge_run, lag_growth
from pgstrata.drivers.pgbench.parse import PgbenchParser, parse_result
from pgstrata.model.experiment import Allow
from pgstrata.model.guards import GUARDS, Force
from pgstrata.model.metrics import SCHEDULE_LAG, Series
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.clients import STARTS, FurtherClient, render_start
from pgstrata.report.sentences.reasons import say_reason

CAPTURES = Path(__file__).parents[1] / "captures"
FACTS = {"host.cpus": "2", "client.threads": "2"}
HEADER = records.make_header(seconds=10.0, client_cpu=7.0, facts=FACTS)
RESULT = records.make_result(transactions=1_000_000, tps=100_000.0, latency_mean=2e-5)
QUIET = {"client_cpu": 0.7, "foreign_cpu": 0.02, "neighbour_share": 0.01, "steal_cpu": 0.0, "pages_swapped_in": 0.0}


def judge(header=HEADER, result=RESULT, allow=Allow(), facts=(), **measured):  # noqa: B008 - a constant
    header = replace(header, facts={**header.facts, **dict(facts)})
    return judge_run(header, result, {**QUIET, **measured}, allow)


def codes(judged):
    return [reason.code for reason in judged[2]]


def of_pgbench(case):
    """A result as pgbench 18.6 wrote it."""
    folder = CAPTURES / "pgbench" / "18.6" / case
    return parse_result(
        {"pgbench.out": (folder / "output.txt").read_bytes(), "pgbench.err": (folder / "stderr.txt").read_bytes()}
    )


def record_beside(change):
    """A run whose captures of /proc, real ones, were changed by `change` afterwards."""
    folder = CAPTURES / "procfs" / "6.18" / "select-only"
    window = json.loads((folder / "window.json").read_text())
    header = replace(
        HEADER,
        seconds=window["seconds"],
        client_cpu=window["client_cpu"],
        postmaster_pid=window["postmaster_pid"],
        door_pids=tuple(window["transport_pids"]),
    )
    driver = CAPTURES / "pgbench" / "18.6" / "select-only"
    evidence = {
        "pgbench.out": (driver / "output.txt").read_bytes(),
        "procfs.before": (folder / "before.txt").read_bytes(),
        "procfs.after": change((folder / "after.txt").read_bytes()),
    }
    return derive_record(header, evidence, PgbenchParser(), (ProcfsCollector(),), Allow())


def test_a_quiet_run_is_valid_and_says_nothing():
    assert judge() == (RunStatus.COMPLETED, Validity.VALID, ())
    record = record_beside(lambda after: after)
    assert (record.validity, record.reasons) == (Validity.VALID, ())


# ------------------------------------------------------------------------------------------------ client


def test_a_client_whose_threads_are_busy_all_the_time_measures_itself():
    assert codes(judge(client_cpu=1.85)) == ["client_saturated"]
    assert judge(client_cpu=1.85)[1] is Validity.INVALID
    assert not codes(judge(client_cpu=1.75))


def test_one_thread_can_use_one_cpu_only():
    assert codes(judge(facts={"client.threads": "1"}, client_cpu=0.95)) == ["client_saturated"]


def test_more_threads_than_cpus_can_use_the_cpus_only():
    assert codes(judge(facts={"client.threads": "8"}, client_cpu=1.9)) == ["client_saturated"]
    assert not codes(judge(facts={"client.threads": "8", "host.cpus": "16"}, client_cpu=1.9))


def test_without_facts_of_the_client_nothing_is_said_of_it():
    assert not codes(judge_run(replace(HEADER, facts={}), RESULT, {"client_cpu": 9.0}, Allow()))


def test_a_run_near_the_ceiling_of_select_1_is_suspect(request):
    near = judge(facts={"client.ceiling": "110000.0"})
    assert (codes(near), near[1]) == (["near_ceiling"], Validity.SUSPECT)
    observe(request.node.nodeid, "near_ceiling", say_reason(near[2][0]))
    assert not codes(judge(facts={"client.ceiling": "120000.0"}))


def test_slices_without_an_unlogged_stretch_are_held_against_no_ceiling():
    assert not codes(judge(replace(HEADER, stretched=False), facts={"client.ceiling": "110000.0"}))


def test_a_run_above_its_ceiling_shows_that_the_ceiling_is_wrong(request):
    above = judge(facts={"client.ceiling": "64000.0"})
    assert (codes(above), above[1]) == (["above_ceiling"], Validity.VALID)
    observe(request.node.nodeid, "above_ceiling", say_reason(above[2][0]))


@pytest.mark.parametrize("text", ["", "nan", "0", "-3", "inf", "much"])
def test_a_ceiling_that_is_no_figure_is_none(text):
    assert not codes(judge(facts={"client.ceiling": text}))


# ------------------------------------------------------------------------------------------------ host


def test_a_machine_that_is_emulated_gives_no_verdicts(request):
    """The capture is of a virtual machine that QEMU emulated: it pretends to have a Haswell."""
    files = (CAPTURES / "hostfacts" / "qemu-tcg-haswell").glob("host.*.txt")
    judged = judge(facts=parse_host_facts({path.name: path.read_bytes() for path in files}).facts)
    assert (codes(judged), judged[1]) == (["emulated"], Validity.INVALID)
    observe(request.node.nodeid, "emulated", say_reason(judged[2][0]))


def test_foreign_work_leaves_a_run_suspect():
    judged = judge(foreign_cpu=1.5)
    assert (codes(judged), judged[1]) == (["foreign_cpu"], Validity.SUSPECT)


def test_foreign_work_and_theft_on_the_clients_machine_leave_a_run_suspect():
    apart = {"client.cpus": "4"}
    judged = judge(facts=apart, client_foreign_cpu=1.5, client_steal_cpu=0.5)
    assert set(codes(judged)) == {"foreign_cpu", "steal"}
    assert all(reason.how == "client" for reason in judged[2])


def test_a_client_on_another_machine_is_saturated_by_its_own_cpus():
    facts = {"host.cpus": "1", "client.threads": "8"}
    assert codes(judge(facts=facts, client_cpu=3.0)) == ["client_saturated"]
    assert codes(judge(facts={**facts, "client.cpus": "8"}, client_cpu=3.0)) == []


def test_of_several_machines_of_the_client_each_is_judged_by_its_own_threads_and_cpus():
    facts = {"client.threads": "4", "client.cpus": "4", "host.cpus": "16"}

    def of_two(first, second):
        """CPUs that the clients used on a machine with four and on one with two, in 10 s."""
        further = FurtherClient(cpu=10 * second, transport_pids=(), threads=4, cpus=2)
        header = replace(HEADER, client_cpu=10 * (first + second), further_clients=(further,))
        return codes(judge(header, facts=facts, client_cpu=first + second))

    assert of_two(3.0, 1.5) == []
    assert of_two(3.9, 0.5) == ["client_saturated"]
    assert of_two(0.5, 1.95) == ["client_saturated"]


def test_a_further_machine_of_the_client_that_is_emulated_is_told():
    assert codes(judge(facts={"client.2.host.emulation": "QEMU"})) == ["emulated"]


def test_machines_that_began_apart_make_a_run_suspect():
    def begun(*delays):
        lines = "".join(render_start(f"far{n}", 100.0, f"{100.0 + delay}") for n, delay in enumerate(delays))
        return [each.code for each in begun_apart(HEADER, {STARTS: lines.encode()})]

    assert begun(0.05, 0.1) == []
    assert begun(0.0, 0.2) == ["began_apart"]


def test_the_limit_of_foreign_cpu_grows_with_the_host():
    assert codes(judge(facts={"host.cpus": "128"}, foreign_cpu=2.5)) == []
    assert codes(judge(facts={"host.cpus": "128"}, foreign_cpu=2.6)) == ["foreign_cpu"]


def test_stolen_time_is_seen_in_the_counters_of_the_host(request):
    def steal(after):
        head, _, rest = after.partition(b"cpu  ")
        words = rest.split(b"\n", 1)[0].split()
        words[7] = str(int(words[7]) + 60).encode()  # 0.6 s of two CPUs in three seconds
        return head + b"cpu  " + b" ".join(words) + b"\n" + rest.split(b"\n", 1)[1]

    record = record_beside(steal)
    assert (record.validity, [reason.code for reason in record.reasons]) == (Validity.SUSPECT, ["steal"])
    observe(request.node.nodeid, "steal", say_reason(record.reasons[0]))


def test_pages_that_come_back_from_swap_are_counted(request):
    record = record_beside(lambda after: after.replace(b"pswpin 0\n", b"pswpin 1800\n"))
    assert (record.validity, [reason.code for reason in record.reasons]) == (Validity.SUSPECT, ["swapped_in"])
    observe(request.node.nodeid, "swapped_in", say_reason(record.reasons[0]))


def test_a_clock_that_jumps_makes_a_run_suspect(request):
    judged = judge(header=replace(HEADER, wall_drift=-3600.2))
    assert (codes(judged), judged[1]) == (["clock_jump"], Validity.SUSPECT)
    observe(request.node.nodeid, "clock_jump", say_reason(judged[2][0]))


# ------------------------------------------------------------------------------------------ transactions


def test_retried_transactions_are_reported(request):
    judged = judge(result=of_pgbench("retries"), allow=Allow(failed_transactions=True))
    assert (codes(judged), judged[1]) == (["retried"], Validity.SUSPECT)
    observe(request.node.nodeid, "retried", say_reason(judged[2][0]))


def test_failed_transactions_make_a_run_invalid():
    judged = judge(result=of_pgbench("failures"))
    assert (codes(judged), judged[1]) == (["failed_transactions"], Validity.INVALID)
    assert judged[2][0].value / judged[2][0].of == pytest.approx(0.6572, abs=1e-4)


def test_skipped_transactions_cost_the_latencies_of_the_others(request):
    judged = judge(result=of_pgbench("rate-limit"))
    assert (codes(judged), judged[1]) == (["skipped"], Validity.SUSPECT)
    observe(request.node.nodeid, "skipped", say_reason(judged[2][0]))
    driver = CAPTURES / "pgbench" / "18.6" / "rate-limit"
    evidence = {
        "pgbench.out": (driver / "output.txt").read_bytes(),
        "pgbench.err": (driver / "stderr.txt").read_bytes(),
    }
    record = derive_record(HEADER, evidence, PgbenchParser(), (), Allow())
    assert record.value("tps") == pytest.approx(230.193069)
    assert record.value("latency_mean") is None


def test_a_run_without_a_transaction_is_invalid(request):
    judged = judge(result=replace(RESULT, transactions=0, tps=0.0))
    assert (codes(judged), judged[1]) == (["no_transactions"], Validity.INVALID)
    observe(request.node.nodeid, "no_transactions", say_reason(judged[2][0]))


def test_evidence_of_an_unknown_shape_is_kept_and_not_guessed_at(request):
    driver = CAPTURES / "pgbench" / "18.6" / "select-only"
    strange = (driver / "output.txt").read_bytes().replace(b"latency average = 0.014", b"latency average = some")
    record = derive_record(HEADER, {"pgbench.out": strange}, PgbenchParser(), (), Allow())
    assert (record.status, record.validity) == (RunStatus.FAILED, Validity.INVALID)
    assert record.reasons[0].code == "unreadable"
    observe(request.node.nodeid, "unreadable", say_reason(record.reasons[0]))


# ---------------------------------------------------------------------------------------------- the lag


def lagging(*values):
    series = Series(metric=SCHEDULE_LAG, times=tuple(float(n + 1) for n in range(len(values))), values=tuple(values))
    return replace(RESULT, series=(series,))


def test_a_lag_that_grows_without_end_is_a_collapse_without_latencies():
    judged = judge(result=lagging(*(0.1 * n for n in range(12))))
    assert (judged[0], judged[1], codes(judged)) == (RunStatus.COLLAPSED, Validity.INVALID, ["rate_not_kept"])
    assert judged[2][0].value == pytest.approx(100)


def test_a_lag_beside_background_load_is_not_the_servers_end():
    judged = judge(result=lagging(*(0.1 * n for n in range(12))), neighbour_share=0.5)
    assert (judged[0], judged[1]) == (RunStatus.COMPLETED, Validity.INVALID)


def test_one_stall_that_is_made_up_for_is_no_growth():
    assert not codes(judge(result=lagging(*([0.001] * 10), 2.0, 0.5, *([0.001] * 3))))


def test_a_lag_of_few_seconds_says_nothing():
    assert lag_growth(lagging(0.1, 0.2, 0.3)) is None
    assert lag_growth(RESULT) is None


@given(st.floats(0, 1), st.floats(0, 10), st.integers(6, 60))
def test_the_growth_of_a_straight_lag_is_its_slope(slope, start, seconds):
    assert lag_growth(lagging(*(start + slope * n for n in range(seconds)))) == pytest.approx(slope, abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=6, max_size=40), st.floats(0.1, 10))
def test_the_growth_scales_with_the_lag(values, scale):
    grown = lag_growth(lagging(*(value * scale for value in values)))
    assert grown == pytest.approx(lag_growth(lagging(*values)) * scale, abs=1e-6)


# ----------------------------------------------------------------------------------------------- forces


def test_remarks_have_the_force_of_the_catalogue():
    remark = Reason(code="fingerprint_changed", names=("host.kernel 6.1 -> 6.12",))
    judged = judge(header=replace(HEADER, remarks=(remark,)))
    assert (judged[1], judged[2]) == (Validity.INVALID, (remark,))
    mild = judge(header=replace(HEADER, remarks=(Reason(code="capture_failed", said="x"),)))
    assert mild[1] is Validity.SUSPECT


def test_the_hardest_reason_comes_first():
    judged = judge(header=replace(HEADER, wall_drift=2.0), result=of_pgbench("failures"), client_cpu=1.9)
    assert codes(judged) == ["failed_transactions", "client_saturated", "clock_jump"]
    forces = [GUARDS[code].force for code in codes(judged)]
    assert forces == sorted(forces, key=lambda force: force is not Force.INVALID)


def test_a_failure_is_told_with_what_was_noticed_before_it():
    remark = Reason(code="no_checkpoint")
    judged = judge(
        header=replace(
            HEADER, failure=Reason(code="failed", said="the server died"), failure_kind="failed", remarks=(remark,)
        )
    )
    assert (judged[0], codes(judged)) == (RunStatus.FAILED, ["failed", "no_checkpoint"])


def test_a_failure_that_a_former_version_kept_as_a_sentence_is_said_as_it_stands():
    former = Reason(code="", text="the server died during the run: PANIC")
    judged = judge(header=replace(HEADER, failure=former, failure_kind="failed"))
    assert judged[2] == (Reason(code="failed", said=former.text),)


def test_running_out_of_a_resource_is_a_result_of_its_own():
    judged = judge(
        header=replace(
            HEADER, failure=Reason(code="collapsed", said="FATAL: too many clients already"), failure_kind="collapsed"
        )
    )
    assert (judged[0], judged[1], codes(judged)) == (RunStatus.COLLAPSED, Validity.INVALID, ["collapsed"])
