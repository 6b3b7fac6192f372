"""A server says how much shared memory it will ask for, before it runs and without a change of its data."""

import re

import pytest

from pgstrata.errors import ServerFailedError
from pgstrata.layers.needs import find_needs
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.ports.host import Command

pytestmark = pytest.mark.server

MB = 1024**2


def environment(**settings):
    return Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), settings=settings)


def listing(host, folder):
    words = ("find", folder, "-printf", "%p %s %T@\\n")
    return host.run(Command(argv=words)).text


def requested(host, build, clone, **settings):
    """What a server that cannot have its memory says that it asked for, in whole pages of 2 MB from 14 on."""
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    argv = (
        build.program("postgres"),
        "-D",
        clone.location,
        "-c",
        "huge_pages=on",
        "-c",
        "listen_addresses=",
        "-c",
        f"unix_socket_directories={clone.folder}",
        *options,
    )
    done = host.run(Command(argv=argv, environment={**build.process_environment, "LC_ALL": "C"}), check=False)
    return int(re.search(rb"currently (\d+) bytes", done.stderr).group(1))


@pytest.mark.parametrize("level", ["14", "16", "embedded"])
def test_what_a_server_needs_is_what_it_asks_for(server_host, cluster, level):
    build, clone = cluster(level)
    for buffers in ("16MB", "200MB"):
        settings = {"shared_buffers": buffers, "max_connections": "50", "unix_socket_permissions": "0700"}
        needs = find_needs(server_host, environment(**settings), build, clone.dataset)
        assert needs.version == build.version.number
        asked = requested(server_host, build, clone, **settings)
        assert asked - 2 * MB < needs.shared_memory <= asked


def test_the_data_are_left_as_they_are(server_host, cluster):
    build, clone = cluster("embedded")
    before = listing(server_host, clone.location)
    find_needs(server_host, environment(), build, clone.dataset)
    assert listing(server_host, clone.location) == before
    assert [name for name in server_host.list_folder("/tmp") if name.startswith("pgstrata-needs-")] == []


def test_what_a_killed_one_left_is_removed_by_the_next(server_host, cluster):
    build, clone = cluster("embedded")
    server_host.make_folder("/tmp/pgstrata-needs-stale")
    server_host.run(Command(argv=("touch", "-d", "1 hour ago", "/tmp/pgstrata-needs-stale")))
    find_needs(server_host, environment(), build, clone.dataset)
    assert not server_host.exists("/tmp/pgstrata-needs-stale")


@pytest.mark.parametrize("level", ["14", "embedded"])
def test_a_setting_that_the_server_does_not_know_is_named(server_host, cluster, level):
    build, clone = cluster(level)
    with pytest.raises(ServerFailedError) as caught:
        find_needs(server_host, environment(shared_bufers="16MB"), build, clone.dataset)
    assert "shared_bufers" in "".join(caught.value.details)
