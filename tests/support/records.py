"""The experiment, the header and the result of a driver that tests begin with; each says only what it has otherwise."""

from pgstrata.model.experiment import Allow, Experiment, Interleave, Reset
from pgstrata.ports.driver import DriverResult
from pgstrata.ports.store import RunHeader


def make_experiment(environments, **changes):
    """Of those environments, the first of which is the baseline."""
    fields = {
        "question": "?",
        "metric": "tps",
        "threshold": 0.03,
        "blocks": 12,
        "budget": None,
        "reset": Reset.CLONE,
        "interleave": Interleave.RUNS,
        "seed": 1,
        "baseline": environments[0].name,
        "environments": tuple(environments),
        "cells": (),
        "factors": ("server",),
        "allow": Allow(),
        "text": "",
    }
    return Experiment(**{**fields, **changes})


def make_header(run=None, **changes):
    """Of that run of a plan, or of some run."""
    fields = {
        "identity": "b01/pg16/select-only-s1-c2",
        "plan": "p",
        "block": 1,
        "environment": "pg16",
        "cell": "select-only-s1-c2",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "wall_drift": 0.0,
        "client_cpu": 1.0,
        "postmaster_pid": 4,
        "door_pids": (),
        "server_version": 180000,
        "sampling_rate": None,
        "warmup_seconds": 0.0,
        "failure": None,
        "failure_kind": "",
        "remarks": (),
        "dead_time": {},
        "facts": {},
        "version": "0.1.0",
    }
    if run is not None:
        fields |= {name: getattr(run, name) for name in ("identity", "block", "environment", "cell")}
    return RunHeader(**{**fields, **changes})


def make_result(**changes):
    """Of a run that came to its summary."""
    fields = {"complete": True, "transactions": 1000, "tps": 100.0, "latency_mean": 0.01, "version": "18.6"}
    return DriverResult(**{**fields, **changes})


class Parser:
    """A driver's parser that has the same result of all evidence."""

    name = "made up"

    def __init__(self, result):
        self.result = result

    def ran(self, evidence):
        return bool(evidence)

    def parse(self, evidence):
        return self.result
