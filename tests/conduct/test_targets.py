"""Machines are entered by each visit, below the layers, and released after it."""

from dataclasses import replace

import pytest

import fakes
from little_plan import carry_out, make_plan
from pgstrata.conduct.loop import Conduct, Ending
from pgstrata.conduct.targets import targets_entered
from pgstrata.errors import HostNotFitError
from pgstrata.model.experiment import HostSpec
from pgstrata.model.server import Fingerprint

LIFE = {"boot", "ready", "release", "measure"}


def lived(world):
    return [entry[:2] for entry in world.log if entry[0] in LIFE]


def test_each_visit_boots_its_machine_for_its_own_environments_and_releases_it():
    world = fakes.World()
    ending, _ = carry_out(make_plan(blocks=1), world)
    assert ending is Ending.COMPLETE
    preflight = [("boot", "a"), ("ready",), ("release",), ("boot", "b"), ("ready",), ("release",)]
    visits = [step for name in "ab" for step in (("boot", name), ("ready",), ("measure", name), ("release",))]
    assert lived(world) == preflight + visits


def test_residents_of_one_machine_enter_it_together():
    world = fakes.World()
    carry_out(make_plan(blocks=1, together=True), world)
    assert [entry for entry in world.log if entry[0] == "boot"][-1] == ("boot", "a", "b")


class Booting(fakes.FakeTarget):
    """A machine that has another kernel in each boot, and belongs to nothing in between."""

    kernel = 0

    def boot(self, environments, *, fresh):
        super().boot(environments, fresh=fresh)
        self.kernel += 1

    def observe(self):
        facts = {"host.kernel": f"7.{self.kernel}"}
        return replace(
            self.home, fingerprint=Fingerprint(facts=facts), facts={"host.txt": facts["host.kernel"].encode()}
        )


def test_the_facts_of_a_run_are_those_of_its_boot():
    world, plan = fakes.World(), make_plan(blocks=1)
    rig = fakes.make_rig(world, plan)
    rig.targets[HostSpec()] = Booting(world, fakes.home_of(rig))
    Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert [rig.store.headers[run.identity].facts["host.kernel"] for run in plan.runs] == ["7.3", "7.4"]
    # what the baseline's machine was when it was first entered stays
    assert rig.store.fingerprint("host").facts == {"host.kernel": "7.1"}


def test_a_machine_that_does_not_boot_is_released_and_ends_the_study():
    world, plan = fakes.World(), make_plan(blocks=1)
    rig = fakes.make_rig(world, plan)

    def boot(environments, *, fresh):
        raise HostNotFitError("there is no such kernel")

    rig.targets[HostSpec()].boot = boot
    with pytest.raises(HostNotFitError, match="no such kernel"):
        Conduct(rig=rig, plan=plan, budget=None).carry_out()
    assert lived(world) == [("release",)]
    assert not rig.server_hosts


def test_a_machine_that_is_entered_already_stays_as_it_is():
    world, plan = fakes.World(), make_plan()
    rig = fakes.make_rig(world, plan)
    first, second = plan.experiment.environments
    with targets_entered(rig, [first]):
        with targets_entered(rig, [second]):
            assert rig.server_host(second) is rig.server_host(first)
        assert rig.server_hosts
    assert not rig.server_hosts
    assert lived(world) == [("boot", "a"), ("ready",), ("release",)]
