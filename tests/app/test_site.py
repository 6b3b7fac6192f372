"""A machine is asked who we are there and where our folders are; this one and another one answer alike."""

import pytest

from pgstrata.app.site import named_destination, observe_site, site_here
from pgstrata.errors import ParseError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.model.changes import restore_command


@pytest.fixture(params=["direct", "shell"])
def transport(request):
    host = LocalHost() if request.param == "direct" else ShellHost(name="far1")
    yield host
    host.close()


def test_a_machine_that_is_asked_says_what_this_process_knows_of_it(transport):
    here, asked = site_here(transport), observe_site(transport)
    assert (asked.uid, asked.places, asked.machine) == (here.uid, here.places, here.machine)
    assert (asked.lock, asked.ledger, asked.privilege) == (here.lock, here.ledger, here.privilege)
    assert asked.server_user() == here.server_user()


def test_folders_and_lock_are_those_of_the_environment_over_there(monkeypatch):
    for name, text in {"STATE": "/their/state", "LOCK": "/their lock", "USER": "nobody"}.items():
        monkeypatch.setenv(f"PGSTRATA_{name}", text)
    transport = ShellHost(name="far1")
    monkeypatch.undo()
    site = observe_site(transport)
    transport.close()
    assert site.places.state == "/their/state"
    assert (site.lock, site.ledger) == ("/their lock", "/their/state/ledger")


def test_an_ordinary_user_changes_a_host_by_sudo_and_lies_in_a_home_of_its_own(monkeypatch):
    monkeypatch.delenv("PGSTRATA_LOCK")
    site = site_here(LocalHost())
    assert type(site)(**{**fields(site), "uid": 1000, "environ": {}}).privilege == ("sudo", "-n")
    assert type(site)(**{**fields(site), "uid": 0, "environ": {}}).privilege == ()


def fields(site):
    return {name: getattr(site, name) for name in ("transport", "uid", "places", "environ", "machine")}


def test_a_lock_without_a_place_is_a_mistake(monkeypatch):
    monkeypatch.setenv("PGSTRATA_LOCK", "here")
    with pytest.raises(UsageError, match="not an absolute path"):
        _ = site_here(LocalHost()).lock


def test_a_machine_that_does_not_say_who_we_are_is_no_use():
    class Silent(LocalHost):
        def run(self, command, **more):
            return super().run(type(command)(argv=("true",)), **more)

    with pytest.raises(ParseError, match="the user there cannot be identified"):
        observe_site(Silent())


def test_what_restores_a_host_names_it():
    assert restore_command("local") == "pgstrata host restore"
    assert restore_command("me@db1", "status") == "pgstrata host status --host me@db1"


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("db1", "db1"),
        ("ssh:db1", "db1"),
        ("user@db1", "user@db1"),
        ("ssh://user@db1:2222", "ssh://user@db1:2222"),
        ("vm", "vm"),
        ("ssh:local", "local"),
        ("local", None),
        (None, None),
    ],
)
def test_a_host_is_named_as_for_ssh_or_as_in_an_experiment(host, told):
    assert named_destination(host) == told


@pytest.mark.parametrize("host", ["", "ssh:", "-oProxyCommand=x", "ssh:-x", "a b", "vm:bookworm"])
def test_what_names_no_machine_that_ssh_reaches_is_refused_with_an_example(host):
    with pytest.raises(UsageError) as caught:
        named_destination(host)
    assert (caught.value.where, "user@db1" in caught.value.remedy) == ("--host", True)
