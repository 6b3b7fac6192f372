"""The key `host`: what it may say, and what cannot go together with a server on another machine."""

from __future__ import annotations

import pytest

from pgstrata.experiment.hosts import parse_host
from pgstrata.experiment.keys import WrongValueError
from pgstrata.model.experiment import ConnectionKind, HostKind, HostSpec

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
TWO = '[factors]\nserver = ["16", "18"]\n'
FAR = HostSpec(kind=HostKind.SSH, destination="db1")


@pytest.mark.parametrize(
    ("text", "destination"),
    [("ssh:db1", "db1"), ("ssh: me@db1", "me@db1"), ("ssh://me@db1:2222", "ssh://me@db1:2222")],
)
def test_a_host_is_what_ssh_takes(text, destination):
    spec = parse_host(text)
    assert (spec.kind, spec.destination) == (HostKind.SSH, destination)
    assert parse_host(spec.text) == spec


def test_this_machine_is_local():
    assert parse_host("local") == HostSpec()
    assert HostSpec().text == "local"
    assert not HostSpec().remote


@pytest.mark.parametrize("text", ["db1", "", "ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:$(x)", "tcp:db1", "5"])
def test_anything_else_is_refused_with_what_to_write(text):
    with pytest.raises(WrongValueError) as caught:
        parse_host(text)
    assert "ssh:db1" in caught.value.remedy


def test_a_bare_name_is_taken_for_what_it_was_meant_to_be():
    with pytest.raises(WrongValueError) as caught:
        parse_host("me@db9")
    assert 'did you mean "ssh:me@db9"' in caught.value.remedy


def test_without_a_host_everything_is_on_this_machine(parse):
    experiment = parse(TWO + CELL)
    assert experiment.hosts == (HostSpec(),)
    assert not experiment.apart
    assert {environment.connection for environment in experiment.environments} == {ConnectionKind.SOCKET}


def test_two_machines_are_a_factor_and_all_clients_use_tcp(parse):
    experiment = parse('[factors]\nhost = ["local", "ssh:db1"]\n' + CELL)
    assert [environment.name for environment in experiment.environments] == ["local", "db1"]
    assert experiment.hosts == (HostSpec(), FAR)
    assert {environment.connection for environment in experiment.environments} == {ConnectionKind.TCP}
    assert experiment.environments[1].title == "host = ssh:db1"
    assert experiment.on_host(FAR).environments == experiment.environments[1:]


def test_a_common_host_is_that_of_all(parse):
    experiment = parse(TWO + '[common]\nhost = "ssh:db1"\nconnection = "tls"\n' + CELL)
    assert experiment.hosts == (FAR,)
    assert {environment.connection for environment in experiment.environments} == {ConnectionKind.TLS}


def test_a_listed_environment_has_a_host_of_its_own(parse):
    text = '[[environments]]\nname = "here"\n[[environments]]\nname = "there"\nhost = "ssh:db1"\n'
    experiment = parse(text + CELL)
    assert experiment.factors == ("host",)
    assert [environment.host for environment in experiment.environments] == [HostSpec(), FAR]


@pytest.mark.parametrize(
    ("text", "line", "key", "remedy"),
    [
        ('[factors]\nhost = ["local", "ssh:db1"]\n[common]\nconnection = "socket"\n', 4, "common.connection", "tcp"),
        ('[common]\nhost = "ssh:db1"\n[factors]\nconnection = ["socket", "tcp"]\n', 4, "factors.connection", "tcp"),
        (
            '[[environments]]\nname = "a"\n[[environments]]\nname = "b"\nhost = "ssh:db1"\nconnection = "socket"\n', 6,
            "environments[2].connection", "tcp",
        ),
        ('[factors]\nserver = ["dsn:a", "dsn:b"]\n[common]\nhost = "ssh:db1"\n', 4, "common.host", "take the host out"),
        (
            '[factors]\nserver = ["dsn:a", "dsn:b"]\n[common]\nclient = "ssh:load1"\n', 4, "common.client",
            "take the client out",
        ),
        (
            '[factors]\nclient = ["same", "ssh:load1"]\n[common]\nconnection = "socket"\n', 4, "common.connection", "tcp",
        ),
        ('[factors]\nclient = ["same", "local"]\n', 2, "factors.client", "take one out"),
        (TWO + '[common]\nclient = "load1"\n', 4, "common.client", "same"),
        (TWO + '[common]\nclient = ["ssh:load1", "ssh:load1"]\n', 4, "common.client", "name each machine once"),
        (TWO + '[common]\nclient = ["local", "ssh:load2"]\n', 4, "common.client", "without the server"),
        (TWO + '[common]\nclient = ["same", "ssh:load2"]\n', 4, "common.client", "other than the server"),
        (TWO + '[common]\nclient = "vm:deb12"\n', 4, "common.client", "that is always up"),
        ('[factors]\nhost = ["local", "db1"]\n', 2, "factors.host", "ssh:db1"),
        ('[factors]\nhost = ["ssh:a", "ssh: a"]\n', 2, "factors.host", "take one out"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_with_its_place(problems, text, line, key, remedy):
    found = problems(text + CELL)
    assert {(problem.line, problem.key.removesuffix("[2]")) for problem in found} == {(line, key)}
    assert remedy in found[0].remedy
