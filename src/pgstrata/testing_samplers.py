"""Conformance tests for people who add a sampler: what holds for every one of them, whatever it looks at.

Subclass a class in a test module and give it the fixtures that its tests name, as with `pgstrata.testing`.
"""

# ruff: noqa: PLR2004  expected figures are written where they are expected

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pgstrata.errors import ParseError
from pgstrata.model.activity import ProcessCount, SessionCount
from pgstrata.model.courses import COURSES, EVENTS
from pgstrata.model.guards import GUARDS, Force
from pgstrata.model.metrics import METRICS, Measurement
from pgstrata.ports.collector import CaptureSubject, Sampled, Sampler, Sampling, Window
from pgstrata.ports.host import Host, ProcessExit, StopSignal

Moments = Callable[[bytes], Sequence[float]]
"""Of what a sampler wrote: when it looked, in seconds of the wall clock; nothing where it does not say."""
_SLACK: Final = 0.4
"""Seconds that a first or a last sample may be late on a busy machine."""
_EARLY: Final = 0.5
"""Seconds by which a moment may be told too early: samplers that ask the kernel get hundredths, rounded down."""
_SOON: Final = 15.0
_ATTEMPTS: Final = 6


def holds_at_best(trial: Callable[[], bool], attempts: int = _ATTEMPTS) -> bool:
    """Whether something is as fast as it should be in one of several attempts: a busy machine spoils some of them.

    What is late by itself is late each time. What must hold whatever the machine does is asserted by the trial.
    """
    return any(trial() for _ in range(attempts))


class SamplerConformance:
    """A sampler at work beside a server.

    Fixtures: `sampler`; `subject` with a server that has at least one busy session of the driver; `folder`, an empty
    one on the host of the sampler; `moments` of what it writes (`Moments`), the last of which may lie `period` seconds
    before its end; `window` of some run.
    """

    def test_its_name_is_short_and_names_its_evidence(
        self, sampler: Sampler, subject: CaptureSubject, folder: str
    ) -> None:
        assert re.fullmatch("[a-z][a-z0-9_]{1,15}", sampler.name)
        sampling = _start(sampler, subject, folder)
        assert sampling.output == f"{folder}/{sampler.name}.samples"
        assert sampling.errors == f"{sampling.output}.err"
        assert sampling.host.name
        _end(sampling)

    def test_it_looks_at_once_and_until_it_is_told_to_end(
        self, sampler: Sampler, subject: CaptureSubject, folder: str, moments: Moments, period: float, window: Window
    ) -> None:
        def look() -> bool:
            begun = time.time()
            sampling = _start(sampler, subject, folder)
            time.sleep(0.9)
            told = time.time()
            _end(sampling)
            written = sampling.host.read(sampling.output)
            assert sampling.host.read(sampling.errors) == b""
            _forget(sampling)
            assert not written or written.endswith(b"\n")
            check_sampled(parse_purely(sampler, {f"{sampler.name}.samples": written}, window))
            found = moments(written)
            early = not found or (found[0] - begun < _SLACK and told - found[-1] < period + _SLACK)
            return bool(written) and early

        assert holds_at_best(look)

    def test_it_may_be_told_to_end_when_it_has_hardly_begun(
        self, sampler: Sampler, subject: CaptureSubject, folder: str, window: Window
    ) -> None:
        sampling = _start(sampler, subject, folder)
        _end(sampling)
        if sampling.host.exists(sampling.output):
            evidence = {f"{sampler.name}.samples": sampling.host.read(sampling.output)}
            check_sampled(parse_purely(sampler, evidence, window))

    def test_nothing_of_it_is_left_after_its_end(self, sampler: Sampler, subject: CaptureSubject, folder: str) -> None:
        sampling = _start(sampler, subject, folder)
        time.sleep(0.4)
        _end(sampling)
        assert _eventually(lambda: not _group(sampling.host, sampling.process.pid), _SLACK)

    def test_it_goes_on_after_a_pause_in_which_it_sees_nothing(
        self, sampler: Sampler, subject: CaptureSubject, folder: str, moments: Moments, period: float
    ) -> None:
        def pause() -> bool:
            sampling = _start(sampler, subject, folder)
            time.sleep(0.3)
            sampling.process.signal(StopSignal.STOP, group=True)
            time.sleep(1.0)  # where the CPUs are busy, whoever is to stop has to be given one before it does
            stopped = time.time()
            time.sleep(1.0)
            resumed = time.time()
            sampling.process.signal(StopSignal.CONT, group=True)
            time.sleep(_EARLY + 0.3 + 2 * period)
            _end(sampling)
            found = moments(sampling.host.read(sampling.output))
            _forget(sampling)
            # what lies between the wall clock and the first look makes all moments seem earlier, on busy CPUs by tenths
            assert not [moment for moment in found if stopped < moment < resumed - _EARLY]
            return not found or (found[0] < stopped and found[-1] > resumed)

        assert holds_at_best(pause)

    def test_it_ends_in_a_pause_too(self, sampler: Sampler, subject: CaptureSubject, folder: str) -> None:
        def end() -> bool:
            sampling = _start(sampler, subject, folder)
            time.sleep(0.3)
            sampling.process.signal(StopSignal.STOP, group=True)
            _end(sampling)
            written = sampling.host.read(sampling.output)
            _forget(sampling)
            assert not written or written.endswith(b"\n")
            return bool(written)  # where the CPUs are busy, some have not begun by then

        assert holds_at_best(end)

    def test_nothing_of_it_is_left_when_the_coordinator_is_killed(
        self, sampler: Sampler, subject: CaptureSubject, folder: str
    ) -> None:
        """The coordinator is a fork of this process, so that the sampler needs no recipe for another one."""
        reading, writing = os.pipe()
        coordinator = os.fork()
        if coordinator == 0:
            try:
                os.write(writing, b"%d\n" % _start(sampler, subject, folder).process.pid)
                time.sleep(_SOON)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as told:
            leader = int(told.readline())
        time.sleep(0.4)
        assert _eventually(lambda: bool(_group(subject.host, leader)))
        os.kill(coordinator, 9)
        os.waitpid(coordinator, 0)
        assert _eventually(lambda: not _group(subject.host, leader))

    def test_what_it_wrote_until_it_was_killed_can_be_read(
        self, sampler: Sampler, subject: CaptureSubject, folder: str, window: Window
    ) -> None:
        sampling = _start(sampler, subject, folder)
        time.sleep(0.4)
        sampling.process.signal(StopSignal.KILL, group=True)
        sampling.process.wait(_SOON)
        assert _eventually(lambda: not _group(sampling.host, sampling.process.pid))
        evidence = {f"{sampler.name}.samples": sampling.host.read(sampling.output)}
        check_sampled(parse_purely(sampler, evidence, window))


class SamplerParsing:
    """What is made of what a sampler left.

    Fixtures: `sampler`; `evidence`, everything that was kept of a run, real and unpacked; `window` of that run.
    """

    def test_a_real_run_has_values_and_no_doubts(
        self, sampler: Sampler, evidence: Mapping[str, bytes], window: Window
    ) -> None:
        found = parse_purely(sampler, evidence, window)
        check_sampled(found)
        assert found.measurements or found.series or found.sessions or found.waits
        assert found.remarks == ()

    def test_a_file_may_end_at_any_byte(self, sampler: Sampler, evidence: Mapping[str, bytes], window: Window) -> None:
        name = f"{sampler.name}.samples"
        whole = evidence[name]
        # the ends of lines and what is around them, and each byte of the first lines
        ends = {found.start() + near for found in re.finditer(rb"\n", whole) for near in (0, 1)}
        for end in sorted({*range(min(600, len(whole))), *sorted(ends)[:: max(1, len(ends) // 100)]}):
            check_sampled(sampler.parse({**evidence, name: whole[:end]}, window))

    def test_of_nothing_it_makes_nothing(self, sampler: Sampler, window: Window) -> None:
        found = parse_purely(sampler, {f"{sampler.name}.samples": b""}, window)
        check_sampled(found)
        assert (found.measurements, found.series, found.sessions, found.processes) == ((), (), (), ())
        assert found.waits is None

    def test_without_other_evidence_it_does_with_its_own(
        self, sampler: Sampler, evidence: Mapping[str, bytes], window: Window
    ) -> None:
        name = f"{sampler.name}.samples"
        check_sampled(parse_purely(sampler, {name: evidence[name]}, window))

    def test_garbage_is_refused_with_an_error_that_quotes_it(
        self, sampler: Sampler, evidence: Mapping[str, bytes], window: Window
    ) -> None:
        name = f"{sampler.name}.samples"
        whole = evidence[name]
        middle = whole.index(b"\n", len(whole) // 2) + 1
        for garbage in (b"gar\xffbage\n", b"\0\0\0\n", b"x" * 100_000 + b"\n"):
            said = ""
            try:
                sampler.parse({**evidence, name: whole[:middle] + garbage + whole[middle:]}, window)
            except ParseError as error:
                said = str(error)
            assert name in said
            assert garbage[:3].decode("utf-8", "replace") in said or repr(garbage[:3].decode())[1:-1] in said
            assert len(said) < 1000


def parse_purely(sampler: Sampler, evidence: Mapping[str, bytes], window: Window) -> Sampled:
    """What a sampler makes of evidence; AssertionError where it touches the world or has another answer next time."""
    kept = dict(evidence)
    first = sampler.parse(evidence, window)
    with without_io():
        again = sampler.parse(evidence, window)
    assert repr(first) == repr(again)  # NaN is not equal to itself
    assert kept == evidence
    return first


def check_sampled(found: Sampled) -> None:
    """Whether values are such that everything behind them can do with them."""
    check_measurements(found.measurements)
    for series in found.series:
        assert series.metric in {*METRICS, *COURSES, *EVENTS}
        assert len(series.times) == len(series.values)
        assert all(math.isfinite(at) for at in series.times), series
        assert not any(math.isinf(value) for value in series.values), series
    waits = found.waits.counts if found.waits is not None else ()
    assert found.waits is None or (math.isfinite(found.waits.hertz) and found.waits.hertz > 0)
    counts: tuple[SessionCount | ProcessCount, ...] = (*found.sessions, *found.processes, *waits)
    for count in counts:
        assert count.samples > 0
        assert bool(count.event) <= bool(count.wait_type)
    for remark in found.remarks:
        assert GUARDS[remark.code].force is Force.WARNING


def check_measurements(found: Iterable[Measurement]) -> None:
    """Whether each is of a known metric and a number that may be one of it."""
    for measured in found:
        assert measured.metric in METRICS
        assert math.isfinite(measured.value), measured
        assert measured.value >= 0, measured


_WATCHED: Final = re.compile(r"open|socket\..*|subprocess\..*|os\.(?:exec|fork|system|spawn|listdir|scandir|remove).*")
_audit: dict[str, Any] = {"on": False, "hooked": False, "seen": []}


@contextmanager
def without_io() -> Iterator[None]:
    """AssertionError where a file, a socket or a process is opened meanwhile. A hook stays for ever: there is one."""
    if not _audit["hooked"]:
        sys.addaudithook(_note)
        _audit["hooked"] = True
    _audit["seen"] = []
    _audit["on"] = True
    try:
        yield
    finally:
        _audit["on"] = False
    assert not _audit["seen"]


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _audit["on"] and _WATCHED.fullmatch(event):
        _audit["seen"].append((event, str(arguments[:1])))


def _start(sampler: Sampler, subject: CaptureSubject, folder: str) -> Sampling:
    sampling = sampler.start(subject, folder)
    assert sampling is not None
    return sampling


def _end(sampling: Sampling) -> ProcessExit:
    """As it is ended after a run."""
    sampling.process.signal(StopSignal.TERM)
    sampling.process.signal(StopSignal.CONT, group=True)
    return sampling.process.wait(sampling.patience)


def _forget(sampling: Sampling) -> None:
    """Remove what it wrote: another one would write on behind it."""
    for path in (sampling.output, sampling.errors):
        sampling.host.remove_tree(path)


def _group(host: Host, leader: int) -> list[int]:
    """Processes of a group that are alive, proc_pid_stat(5)."""
    found = []
    for line in host.read_matching("/proc/[0-9]*/stat").decode("utf-8", "replace").splitlines():
        head, _, rest = line.rpartition(") ")
        state, _, group, *_ = (*rest.split(), "", "", "")
        if group == str(leader) and state not in {"Z", "X"}:
            found.append(int(head.partition(" ")[0]))
    return found


def _eventually(condition: Callable[[], bool], seconds: float = _SOON) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
