"""A declared value follows from the kernel that ran and from nothing that was measured."""

from dataclasses import replace
from statistics import fmean, stdev

import pytest

import records
from pgstrata.conduct.derive import derive_record
from pgstrata.model.experiment import Allow
from pgstrata.model.metrics import METRICS
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.model.synthetic import Synthetic

RULE = Synthetic(kernel="6.9.0-rc3", factor=0.9, scatter=0.0)
RESULT = records.make_result(transactions=400, statements=((0.002, "SELECT 1;"),))
EMULATED = "QEMU TCG CPU version 2.5+"


def derive(kernel, *, rule=RULE, result=RESULT, **more):
    facts = {"kernel": kernel, "host.emulation": EMULATED} if kernel else {}
    header = records.make_header(**{"identity": "b01/a/select-only-s1-c1", "seconds": 4.0, "facts": facts, **more})
    return derive_record(header, {"out": b"x"}, records.Parser(result), (), Allow(), synthetic=rule)


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        ("6.1.0-47-cloud-amd64", 1000.0),
        ("6.9.0-rc2-g0123456789ab.00112233", 1000.0),
        ("6.9.0-rc3-g0123456789ab.00112233", 900.0),
        ("6.9.0-g0123456789ab.00112233", 900.0),
        ("6.12.117+deb12-cloud-amd64", 900.0),
    ],
)
def test_the_value_follows_from_the_kernel_that_was_found_running(kernel, value):
    assert derive(kernel).value("synthetic") == pytest.approx(value)


def test_the_record_has_nothing_that_was_measured_and_says_that_its_value_is_declared():
    record = derive("6.12.1")
    assert [each.metric for each in record.measurements] == ["synthetic"]
    assert (record.series, record.statements, record.sessions) == ((), (), ())
    assert (record.validity, [each.code for each in record.reasons]) == (Validity.VALID, ["synthetic"])
    assert "synthetic" in METRICS["synthetic"].title
    assert all("declared" in word for word in (METRICS["synthetic"].better, METRICS["synthetic"].worse))


def test_without_the_declaration_the_same_run_is_invalid_because_it_was_emulated():
    record = derive("6.12.1", rule=None)
    assert (record.validity, record.reasons[0].code) == (Validity.INVALID, "emulated")


def test_how_fast_a_run_was_plays_no_part():
    slow = records.make_result(transactions=3, tps=0.1)
    assert derive("6.12.1", result=slow).measurements == derive("6.12.1").measurements


def test_a_run_that_failed_or_changed_its_machine_is_invalid_as_ever():
    failed = derive("6.12.1", failure=Reason(code="failed", said="no"), failure_kind="failed")
    assert (failed.status, failed.validity, failed.measurements) == (RunStatus.FAILED, Validity.INVALID, ())
    changed = derive("6.12.1", remarks=(Reason(code="fingerprint_changed"),))
    assert changed.validity is Validity.INVALID
    assert derive("").measurements == ()


def test_values_scatter_as_declared_and_are_the_same_again():
    rule = replace(RULE, scatter=0.02)
    values = [derive("6.1", rule=rule, identity=f"b{number}/a/c").value("synthetic") for number in range(400)]
    assert fmean(values) == pytest.approx(1000, rel=0.01)
    assert stdev(values) == pytest.approx(20, rel=0.2)
    assert values[7] == derive("6.1", rule=rule, identity="b7/a/c").value("synthetic")
