"""A machine that is lost while servers are sent there, without one: what is done with it is a script of losses."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pgstrata.app.rig_hosts import RigHosts
from pgstrata.conduct.losses import PAUSES
from pgstrata.errors import HostLostError
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.ports.events import EventKind
from pgstrata.testing import RecordingEvents

FAR = HostSpec(kind=HostKind.SSH, destination="db1")


class Hosts:
    """The machines of a study, of which one is opened again."""

    def __init__(self, said):
        self.said = said

    def reopen(self, spec):
        self.said.append(("reopen", spec.text))


class Clock:
    def __init__(self, said):
        self.said = said

    def sleep(self, seconds):
        self.said.append(("sleep", seconds))


@dataclass(frozen=True, kw_only=True)
class Losing(RigHosts):
    """Each attempt to make a machine loses it, as long as there are losses left."""

    said: list
    losses: list

    def make(self, spec, builds, *, again=False):
        self.said.append(("make", spec.text))
        if self.losses:
            raise self.losses.pop()
        return spec.text


def homes(losses, *, spec=FAR, hosts=Hosts):
    said = []
    plan = SimpleNamespace(experiment=SimpleNamespace(hosts=(spec,)))
    return Losing(
        plan=plan,
        machine=SimpleNamespace(clock=Clock(said)),
        client=None,
        sql=None,
        tools=None,
        events=RecordingEvents(),
        study="s",
        facts={},
        hosts=hosts(said),
        said=said,
        losses=losses,
    )


def lost():
    return HostLostError("the shell has ended", where="db1")


def test_a_machine_that_is_lost_meanwhile_is_opened_again_and_made_anew():
    made = homes([lost()])
    assert made.make_all({}) == {FAR: "ssh:db1"}
    assert made.said == [("make", "ssh:db1"), ("sleep", PAUSES[0]), ("reopen", "ssh:db1"), ("make", "ssh:db1")]
    told = [event.text for event in made.events.of_kind(EventKind.WARNING)]
    assert told[0] == "the connection to ssh:db1 broke in sending servers there: the shell has ended"
    assert "is there again" in told[-1]


def test_one_that_is_lost_each_time_ends_the_command():
    made = homes([lost() for _ in range(9)])
    with pytest.raises(HostLostError) as caught:
        made.make_all({})
    assert "sending servers there has lost its host 4 times" in caught.value.remedy
    assert made.said.count(("make", "ssh:db1")) == 4


def test_what_is_lost_on_this_machine_is_not_waited_for():
    made = homes([lost()], spec=HostSpec())
    with pytest.raises(HostLostError):
        made.make_all({})
    assert made.said == [("make", "local")]
