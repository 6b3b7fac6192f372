"""A load generator that can do little, for tests of everything that works with any driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pgstrata.errors import ParseError
from pgstrata.model.driver import Capabilities
from pgstrata.ports.driver import DriverResult, Load, ProgressPoint, Statement
from pgstrata.ports.host import Clock, CpuTime, Process, ProcessExit, StopSignal
from pgstrata.ports.steps import Steps

PLAIN: Final = "plain"
"""Its key."""
PLAIN_CAPABILITIES: Final = Capabilities(
    pausable=False, transaction_log=False, fixed_rate=False, scripts=False, loads_data=True
)
_OUTPUT: Final = "plain.json"


class PlainDriver:
    """Implements `ports.Driver` without pauses, log, rate and scripts; it runs for as long as it is asked to.

    Args:
        clock: by which its executions end.
        tps: transactions per second of all its clients.
    """

    name = PLAIN
    capabilities = PLAIN_CAPABILITIES

    def __init__(self, clock: Clock, tps: float = 100.0) -> None:
        self._clock = clock
        self._tps = tps
        self.loads: list[Load] = []
        self._left: dict[str, float] = {}

    def facts(self) -> Mapping[str, str]:
        return {"version": "1"}

    def statements(self, load: Load) -> tuple[Statement, ...]:
        return ()

    def least_load(self, load: Load) -> Load | None:
        return None

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> Process:
        assert load.sampling_rate is None, "it was asked for a log"
        self.loads.append(load)
        self._left[folder] = load.seconds
        return _Running(self._clock, self._clock.monotonic() + load.seconds)

    def end(self, process: Process) -> None:
        raise AssertionError("it was asked to end a paused client")

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:
        raise AssertionError("it was asked to count slices")

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        return (), offset

    def collect(self, folder: str) -> Mapping[str, bytes]:
        if folder not in self._left:
            return {}
        return {_OUTPUT: json.dumps({"transactions": self._tps * self._left[folder], "tps": self._tps}).encode()}

    def ran(self, evidence: Mapping[str, bytes]) -> bool:
        return _OUTPUT in evidence

    def parse(self, evidence: Mapping[str, bytes]) -> DriverResult:
        try:
            said = json.loads(evidence.get(_OUTPUT, b"{}"))
        except ValueError as error:
            raise ParseError(str(error), where=_OUTPUT) from error
        return DriverResult(
            complete="tps" in said,
            transactions=int(said.get("transactions", 0)),
            tps=said.get("tps"),
            version="1",
        )

    def messages(self, evidence: Mapping[str, bytes]) -> tuple[str, ...]:
        return ()


class _Running:
    """A process that ends by itself, at a time of the clock."""

    pid = 4711

    def __init__(self, clock: Clock, ends: float) -> None:
        self._clock = clock
        self._ends = ends

    def poll(self) -> ProcessExit | None:
        return self.wait(0.0) if self._clock.monotonic() >= self._ends else None

    def wait(self, timeout: float) -> ProcessExit:
        return ProcessExit(code=0, cpu=CpuTime(user=1.0, system=0.0))

    def signal(self, signal: StopSignal, *, group: bool = False) -> None:
        assert signal is not StopSignal.STOP, "it cannot be paused"
        self._ends = self._clock.monotonic()
