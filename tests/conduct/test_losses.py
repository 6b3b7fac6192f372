"""Connections that break in the middle, with fakes on every port."""

from dataclasses import replace

import pytest

import fakes
from little_plan import make_plan
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.conduct.losses import PAUSES
from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError
from pgstrata.model.clocks import ClockOffset
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.ports.events import EventKind
from pgstrata.ports.target import Link

FAR = HostSpec(kind=HostKind.SSH, destination="db1")
OTHER = replace(FAR, destination="db2")
AN_HOUR = ClockOffset(offset_seconds=3600.0, uncertainty=0.001, round_trip=0.05)


def far_plan(**more):
    """Environment a is here, b on the other machine."""
    plan = make_plan(**more)
    here, there = plan.experiment.environments
    there = replace(there, host=FAR)
    return replace(plan, experiment=replace(plan.experiment, environments=(here, there)))


class Cut(fakes.FakeControl):
    """The connection breaks when a server is started for a run, or in the preflight; `broken` says how, the last first."""

    def __init__(self, world, broken, *, early=False):
        super().__init__(world)
        self.broken, self.early = broken, early

    def start(self, environment, build, clone, launch=None):
        if ("preflight" in clone.folder) is self.early and self.broken:
            raise self.broken.pop()
        return super().start(environment, build, clone, launch)


def far_rig(world, plan, *, broken=(), absent=(), early=False):
    """`broken` are errors of starts over there, `absent` those of the attempts to connect again, the last first."""
    rig = fakes.make_rig(world, plan)
    here = fakes.home_of(rig)
    supply = replace(here.supplies["b"], control=Cut(world, list(broken), early=early))
    there = replace(here, supplies={"b": supply}, links={"b": Link(clocks=AN_HOUR)})
    waiting = list(absent)

    class Far(fakes.FakeTarget):
        """A machine that comes back when nothing is waiting any more."""

        def __init__(self, text):
            super().__init__(world, there)
            self.text = text

        def reopen(self):
            world.log.append(("reopen", self.text))
            if waiting:
                raise waiting.pop()

    targets = {HostSpec(): fakes.FakeTarget(world, here), FAR: Far("ssh:db1"), OTHER: Far("ssh:db2")}
    return replace(rig, targets=targets)


def carry_out(rig, plan):
    ending = Conduct(rig=rig, plan=plan, budget=None).carry_out()
    return ending, [step for step in rig.here.host.world.log if step[0] in {"measure", "reopen"}]


def lost():
    return HostLostError("the shell has ended", where="db1")


def test_a_lost_visit_is_repeated_when_its_host_is_there_again():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan, broken=[lost()], absent=[lost()])
    ending, steps = carry_out(rig, plan)
    assert ending is Ending.COMPLETE
    assert [step[:2] for step in steps] == [
        ("measure", "a"),
        ("reopen", "ssh:db1"),
        ("reopen", "ssh:db1"),
        ("measure", "b"),
    ]
    assert not any(record.reasons for record in rig.store.kept.values())
    said = [event.text for event in rig.events.events if event.kind is EventKind.WARNING]
    assert any("broke in b01/b" in text for text in said)
    assert any("again in 5 s" in text for text in said)
    assert any("is connected again" in text for text in said)


def test_the_other_host_goes_on_meanwhile():
    plan, world = far_plan(blocks=1, names=("a", "b")), fakes.World()
    block = plan.blocks[0]
    plan = replace(plan, blocks=(replace(block, visits=tuple(reversed(block.visits))),))
    _, steps = carry_out(far_rig(world, plan, broken=[lost()]), plan)
    assert [step[:2] for step in steps] == [("measure", "a"), ("reopen", "ssh:db1"), ("measure", "b")]


def test_a_failure_on_a_host_that_has_gone_is_a_lost_connection():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan, broken=[HostNotFitError("1 change of this host could not be undone")])

    class Gone(fakes.FakeHost):
        def clock(self):
            raise lost()

    rig.targets[FAR].home = replace(rig.targets[FAR].home, host=Gone(world))
    ending, steps = carry_out(rig, plan)
    assert ending is Ending.COMPLETE
    assert ("reopen", "ssh:db1") in steps


def test_a_failure_on_a_host_that_is_there_ends_the_study():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan, broken=[HostNotFitError("1 change of this host could not be undone")])
    with pytest.raises(HostNotFitError, match="could not be undone"):
        carry_out(rig, plan)


def test_a_host_that_does_not_come_back_ends_the_study_and_keeps_what_was_measured():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan, broken=[lost()], absent=[lost() for _ in PAUSES])
    begun = world.now
    with pytest.raises(HostLostError, match="the shell has ended") as caught:
        carry_out(rig, plan)
    assert "what was measured is kept" in caught.value.remedy
    assert set(rig.store.kept) == {"b01/a/select-only-s1-c2"}
    assert world.now - begun >= sum(PAUSES)


def test_a_visit_that_always_loses_its_host_is_given_up():
    plan, world = far_plan(blocks=1), fakes.World()
    with pytest.raises(HostLostError):
        carry_out(far_rig(world, plan, broken=[lost() for _ in range(4)]), plan)


class TestInThePreflight:
    def test_a_lost_environment_is_tried_again_when_its_host_is_there_again(self):
        plan, world = far_plan(blocks=1), fakes.World()
        rig = far_rig(world, plan, broken=[lost()], absent=[lost()], early=True)
        ending, steps = carry_out(rig, plan)
        assert ending is Ending.COMPLETE
        assert [step[:2] for step in steps] == [
            ("reopen", "ssh:db1"),
            ("reopen", "ssh:db1"),
            ("measure", "a"),
            ("measure", "b"),
        ]
        said = [event.text for event in rig.events.events if event.kind is EventKind.WARNING]
        assert any("broke in the preflight of b" in text for text in said), said
        assert not any(record.reasons for record in rig.store.kept.values())
        tried = [entry for entry in world.log if entry == ("clone", "preflight-a")]
        assert len(tried) == 1, "the other environment is not tried again"

    def test_a_host_that_does_not_come_back_ends_it_with_what_to_do(self):
        plan, world = far_plan(blocks=1), fakes.World()
        with pytest.raises(HostLostError) as caught:
            carry_out(far_rig(world, plan, broken=[lost()], absent=[lost() for _ in PAUSES], early=True), plan)
        assert "give the same command again" in caught.value.remedy

    def test_an_environment_that_always_loses_its_host_is_given_up_by_name(self):
        plan, world = far_plan(blocks=1), fakes.World()
        with pytest.raises(HostLostError) as caught:
            carry_out(far_rig(world, plan, broken=[lost() for _ in range(4)], early=True), plan)
        assert "the preflight of b has lost its connection 4 times" in caught.value.remedy

    def test_what_fails_on_a_host_that_is_there_ends_it(self):
        plan, world = far_plan(blocks=1), fakes.World()
        with pytest.raises(HostNotFitError, match="no room"):
            carry_out(far_rig(world, plan, broken=[HostNotFitError("no room")], early=True), plan)


def test_a_third_machine_that_is_needed_too_is_opened_again():
    plan, world = far_plan(blocks=1), fakes.World()
    here, there = plan.experiment.environments
    plan = replace(plan, experiment=replace(plan.experiment, environments=(replace(here, host=OTHER), there)))
    rig = far_rig(world, plan, broken=[HostNotFitError("it has no answer")])

    class Gone(fakes.FakeHost):
        def clock(self):
            if not any(step[0] == "reopen" for step in world.log):
                raise lost()
            return super().clock()

    rig.targets[OTHER].home = replace(fakes.home_of(fakes.make_rig(world, plan)), host=Gone(world))
    ending, steps = carry_out(rig, plan)
    assert ending is Ending.COMPLETE
    assert ("reopen", "ssh:db2") in steps


def test_clocks_an_hour_apart_are_recorded_and_do_no_harm():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan)
    carry_out(rig, plan)
    here, there = (rig.store.headers[f"b01/{name}/select-only-s1-c2"] for name in "ab")
    assert there.facts["network.clock_offset"] == "3600.000000"
    assert there.facts["network.round_trip"] == "0.050000"
    assert there.apart
    assert there.client_door_pids == (1,)
    assert there.facts["client.kernel"] == "6.1"
    assert not there.remarks
    assert "network.clock_offset" not in here.facts
    assert not here.apart


def test_a_kernel_that_crashed_ends_the_study_at_once():
    plan, world = far_plan(blocks=1), fakes.World()
    crashed = BootFailedError("it crashed: Kernel panic", asked="6.9")
    rig = far_rig(world, plan, broken=[HostLostError("gone", where="ssh:db1")], absent=[crashed])
    with pytest.raises(BootFailedError) as caught:
        carry_out(rig, plan)
    assert caught.value.asked == "6.9"
    assert [step for step in world.log if step[0] == "reopen"] == [("reopen", "ssh:db1")]


def test_a_machine_that_is_down_because_of_its_kernel_is_not_waited_for():
    plan, world = far_plan(blocks=1), fakes.World()
    rig = far_rig(world, plan, broken=[BootFailedError("it does not come up", asked="6.9")])
    with pytest.raises(BootFailedError):
        carry_out(rig, plan)
    assert [step for step in world.log if step[0] == "reopen"] == []
