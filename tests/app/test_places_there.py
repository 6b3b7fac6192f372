"""Folders on another machine are made where root is to make them, and nowhere else."""

import os
import pwd

import pytest

from pgstrata.app.places import find_server_user
from pgstrata.app.site import OpenedHost, Site
from pgstrata.app.study_hosts import make_places_there
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import HostSpec
from pgstrata.servers.places import Places

pytestmark = [pytest.mark.root, pytest.mark.company, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture
def there(open_folder):
    """A function that makes the folders, some of them elsewhere, as root for the user whom servers run as."""
    here = LocalHost()

    def make(**elsewhere):
        names = ("cache", "state", "data", "storage", "run", "memory")
        places = Places(**{name: str(open_folder / "far" / name) for name in names} | elsewhere)
        site = Site(transport=here, uid=0, places=places, environ={}, machine="x86_64")
        make_places_there(
            OpenedHost(spec=HostSpec(destination="far1"), site=site, host=here.as_user(find_server_user()))
        )
        return places

    yield make
    here.close()


def owner_and_mode(path):
    facts = os.lstat(path)
    return pwd.getpwuid(facts.st_uid).pw_name, facts.st_mode & 0o777


def give(path, user):
    os.chown(path, pwd.getpwnam(user).pw_uid, -1)


def test_each_gets_its_owner_and_those_above_stay_roots(there, open_folder):
    server = find_server_user()
    for _ in range(2):
        places = there(data=str(open_folder / "deep" / "er" / "data"))
        assert owner_and_mode(places.cache) == owner_and_mode(places.state) == ("root", 0o755)
        assert owner_and_mode(places.data) == owner_and_mode(places.run) == (server, 0o700)
        assert owner_and_mode(open_folder / "deep" / "er") == ("root", 0o755)


def test_a_link_of_the_servers_user_leads_root_nowhere(there, open_folder):
    precious, theirs = open_folder / "precious", open_folder / "theirs"
    precious.mkdir(mode=0o755)
    theirs.mkdir()
    give(theirs, find_server_user())
    (theirs / "link").symlink_to(precious)
    with pytest.raises(HostNotFitError, match="cannot be made there"):
        there(data=str(theirs / "link" / "deep" / "data"))
    assert list(precious.iterdir()) == []
    places = there(data=str(theirs / "deep" / "data"))
    assert owner_and_mode(theirs / "deep")[0] == owner_and_mode(places.data)[0] == find_server_user()


def test_nothing_of_roots_is_made_where_another_user_could_replace_it(there, open_folder):
    theirs = open_folder / "theirs"
    theirs.mkdir()
    give(theirs, "daemon")
    for name in ("cache", "state", "data"):
        with pytest.raises(HostNotFitError, match="does not belong to"):
            there(**{name: str(theirs / "new" / name)})
    assert list(theirs.iterdir()) == []


def test_a_link_that_was_put_into_a_shared_folder_is_not_followed(there, open_folder):
    precious, shared = open_folder / "precious", open_folder / "shared"
    precious.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "new").symlink_to(precious / "missing")
    os.lchown(shared / "new", pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(HostNotFitError):
        there(data=str(shared / "new" / "data"))
    assert list(precious.iterdir()) == []
