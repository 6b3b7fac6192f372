"""A machine that is lost while servers are sent there, without one: what is done with it is a script of losses."""

from types import SimpleNamespace

import pytest

import fakes
from fake_clock import RecordingEvents
from pgstrata.app import targets
from pgstrata.app.targets import MachineTarget
from pgstrata.conduct.losses import PAUSES
from pgstrata.errors import HostLostError
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.ports.events import EventKind

FAR = HostSpec(kind=HostKind.SSH, destination="db1")


class Hosts:
    """The machines of a study, of which one is opened again."""

    def __init__(self, said):
        self.said = said

    def reopen(self, spec, *, keep):
        self.said.append(("reopen", spec.text))


class Clock:
    def __init__(self, said):
        self.said = said

    def sleep(self, seconds):
        self.said.append(("sleep", seconds))


class Losing(MachineTarget):
    """Each attempt to find a server there loses the machine, as long as there are losses left."""

    def _resolve(self, environment, server):
        self.hosts.said.append(("send", self.spec.text))
        if self.losses:
            raise self.losses.pop()
        return "build"

    def _servers_there(self):
        return SimpleNamespace(client_tools=self._find_tools)

    def _find_tools(self, *, tls):
        self.hosts.said.append(("tools", self.spec.text))
        return f"tools, tls {tls}"

    def _look(self):
        self.hosts.said.append(("look", self.spec.text))
        return len(self.hosts.said)


def target(losses=(), *, spec=FAR):
    said = []
    here = SimpleNamespace(environments=(fakes.environment("a", host=spec), fakes.environment("b", host=spec)))
    plan = SimpleNamespace(experiment=SimpleNamespace(on_host=lambda spec: here, cells=()))
    made = Losing(
        spec=spec,
        plan=plan,
        machine=SimpleNamespace(clock=Clock(said)),
        client=None,
        sql=None,
        tools=None,
        events=RecordingEvents(),
        store=None,
        study="s",
        facts={},
        sources={},
        hosts=Hosts(said),
    )
    made.losses = list(losses)
    return made


def lost():
    return HostLostError("the shell has ended", where="db1")


def test_a_machine_that_is_lost_meanwhile_is_opened_again_and_has_the_tools_of_clients():
    made = target([lost()])
    assert made.provision() == {"a": "build", "b": "build"}
    sent = [("send", "ssh:db1"), ("sleep", PAUSES[0]), ("reopen", "ssh:db1"), ("send", "ssh:db1"), ("tools", "ssh:db1")]
    assert made.hosts.said == sent
    told = [event.text for event in made.events.of_kind(EventKind.WARNING)]
    assert told[0] == "the connection to ssh:db1 broke in sending servers there: the shell has ended"
    assert "is connected again" in told[-1]


def test_one_that_is_lost_each_time_ends_the_command():
    made = target([lost() for _ in range(9)])
    with pytest.raises(HostLostError) as caught:
        made.provision()
    assert "sending servers there has lost its connection 4 times" in caught.value.remedy
    assert made.hosts.said.count(("send", "ssh:db1")) == 4


def test_what_is_lost_on_this_machine_is_not_waited_for():
    made = target([lost()], spec=HostSpec())
    with pytest.raises(HostLostError):
        made.provision()
    assert made.hosts.said == [("send", "local")]


def test_a_machine_is_looked_at_once_as_long_as_it_is_connected():
    made = target(spec=HostSpec())
    for _ in range(3):
        made.boot((), fresh=True)
        made.ready()
        made.observe()
        made.release()
    assert made.hosts.said == [("look", "local")]


def test_one_that_was_lost_is_looked_at_again():
    made = target()
    made.ready()
    made.observe()
    made.reopen()
    made.ready()
    made.observe()
    assert made.hosts.said == [("look", "ssh:db1"), ("reopen", "ssh:db1"), ("look", "ssh:db1")]


def test_the_tools_of_clients_are_sent_once_whatever_is_lost_or_booted_later():
    made = target()
    made.provision()
    made.reopen()
    assert made.client_tools() == made._tools_there() == "tools, tls False"
    made.tls = True
    assert made.client_tools() == "tools, tls True"
    assert made.client_tools() == "tools, tls True"
    assert made.hosts.said.count(("tools", "ssh:db1")) == 2


def test_a_word_that_the_kernel_does_not_know_is_warned_of_once(monkeypatch):
    made = target()
    opened = SimpleNamespace(transport="far", site=SimpleNamespace(privilege=("sudo", "-n")))
    monkeypatch.setattr(Hosts, "__getitem__", lambda _, __: opened, raising=False)
    monkeypatch.setattr(targets, "find_unknown", lambda host, _, words: words[:1] if host == "far" else ())
    made._boots = SimpleNamespace(boot=lambda *_, **__: None)
    layers = {"kernel": "6.1", "boot.options": "mitigatons=off isolcpus=1"}
    for _ in range(2):
        made.boot([fakes.environment("a", host=FAR, layers=layers)], fresh=True)
    (event,) = made.events.events
    assert event.kind is EventKind.WARNING
    assert "the kernel of ssh:db1 does not know the option mitigatons=off of its command line" in event.text
