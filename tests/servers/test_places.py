"""Where things live, and who owns them."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.servers.places import SOCKET_PATH_LIMIT, Places, find_places, make_places, server_user
from pgstrata.system.users import UserIds


def places(environ, *, uid=1000, home="/home/ada", memory_backed=True):
    return find_places(environ, uid=uid, home=home, memory_backed=memory_backed)


def test_an_ordinary_user_keeps_everything_at_home_except_sockets_and_scratch():
    found = places({})
    assert found.cache == "/home/ada/.cache/pgstrata"
    assert found.state == "/home/ada/.local/state/pgstrata"
    assert found.data == "/home/ada/.cache/pgstrata/data"
    assert found.run == "/tmp/pgstrata-1000"
    assert found.memory == "/dev/shm/pgstrata-1000"


def test_the_xdg_variables_are_honoured_and_relative_ones_ignored():
    found = places({"XDG_CACHE_HOME": "/big/cache", "XDG_STATE_HOME": "relative", "XDG_RUNTIME_DIR": "/run/user/1000"})
    assert found.cache == "/big/cache/pgstrata"
    assert found.state == "/home/ada/.local/state/pgstrata"
    assert found.run == "/run/user/1000/pgstrata"


def test_nothing_of_root_lies_below_its_home_or_in_its_closed_runtime_folder():
    found = places({"XDG_CACHE_HOME": "/root/.cache", "XDG_RUNTIME_DIR": "/run/user/0"}, uid=0, home="/root")
    assert found == Places(
        cache="/var/cache/pgstrata",
        state="/var/lib/pgstrata",
        data="/var/lib/pgstrata/data",
        storage="/var/lib/pgstrata/storage",
        run="/tmp/pgstrata-0",
        memory="/dev/shm/pgstrata-0",
    )


def test_the_variables_of_pgstrata_win():
    found = places(
        {"PGSTRATA_CACHE": "/a/", "PGSTRATA_STATE": "/b", "PGSTRATA_DATA": "/c", "XDG_CACHE_HOME": "/x"}, uid=0
    )
    assert (found.cache, found.state, found.data) == ("/a", "/b", "/c")


def test_a_relative_override_is_refused():
    with pytest.raises(UsageError, match="absolute"):
        places({"PGSTRATA_CACHE": "cache"})


def test_the_folder_for_sockets_can_be_named():
    found = places({"PGSTRATA_RUN": "/short", "XDG_RUNTIME_DIR": "/run/user/1000"}, memory_backed=False)
    assert (found.run, found.memory) == ("/short", "/short")
    assert places({"PGSTRATA_RUN": "/short"}, uid=0).run == "/short"


@pytest.mark.parametrize("run", ["run", "/run/" + "long" * 20, "/run/a,b"])
def test_a_folder_that_cannot_hold_sockets_is_refused(run):
    with pytest.raises(UsageError) as caught:
        places({"PGSTRATA_RUN": run})
    assert "PGSTRATA_RUN" in caught.value.where
    assert caught.value.remedy


def test_the_longest_folder_that_is_accepted_has_room_for_a_socket():
    longest = next(size for size in range(107, 0, -1) if not refused("/" + "x" * (size - 1)))
    assert len(f"/{'x' * (longest - 1)}/0123abcd/.s.PGSQL.65535") <= SOCKET_PATH_LIMIT


def refused(run):
    try:
        places({"PGSTRATA_RUN": run})
    except UsageError:
        return True
    return False


def test_without_memory_backed_files_scratch_lies_with_the_sockets():
    found = places({}, memory_backed=False)
    assert found.memory == found.run


def test_a_long_runtime_folder_is_passed_over_because_socket_paths_are_short():
    found = places({"XDG_RUNTIME_DIR": "/run/" + "long" * 20})
    assert found.run == "/tmp/pgstrata-1000"
    assert len(f"{found.run}/{'x' * 30}/.s.PGSQL.65535") < SOCKET_PATH_LIMIT


def test_an_ordinary_user_runs_servers_as_themself():
    assert server_user(1000, {"PGSTRATA_USER": "postgres"}, known=lambda name: True) is None


@pytest.mark.parametrize(
    ("users", "environ", "expected"),
    [
        ({"postgres", "nobody"}, {}, "postgres"),
        ({"nobody"}, {}, "nobody"),
        ({"postgres", "bench"}, {"PGSTRATA_USER": "bench"}, "bench"),
    ],
)
def test_root_runs_servers_as_somebody_else(users, environ, expected):
    assert server_user(0, environ, known=users.__contains__) == expected


@pytest.mark.parametrize("chosen", ["root", "ghost"])
def test_a_server_user_that_cannot_be_is_refused(chosen):
    with pytest.raises(UsageError) as caught:
        server_user(0, {"PGSTRATA_USER": chosen}, known=lambda name: name == "root")
    assert caught.value.where == "PGSTRATA_USER"


def test_root_without_any_unprivileged_user_is_told_so():
    with pytest.raises(HostNotFitError, match="unprivileged"):
        server_user(0, {}, known=lambda name: False)


def below(folder: Path) -> Places:
    return Places(
        cache=f"{folder}/cache",
        state=f"{folder}/deep/state",
        data=f"{folder}/cache/data",
        storage=f"{folder}/storage",
        run=f"{folder}/run",
        memory=f"{folder}/run",
    )


def mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def owner(path: str) -> int:
    return Path(path).stat().st_uid


def test_folders_are_made_closed_except_the_cache_and_twice_is_once(tmp_path):
    made = below(tmp_path)
    for _ in range(2):
        make_places(made, uid=os.getuid(), server=None)
    assert mode(made.cache) == 0o755
    assert mode(made.state) == mode(made.data) == mode(made.run) == 0o700


def test_a_folder_that_belongs_to_somebody_else_is_refused(tmp_path):
    made = below(tmp_path)
    Path(made.run).mkdir()
    with pytest.raises(HostNotFitError, match="owned by"):
        make_places(made, uid=os.getuid() + 1, server=None)


def test_a_folder_that_cannot_be_made_is_reported_with_its_path(tmp_path):
    (tmp_path / "cache").write_text("in the way")
    (tmp_path / "deep").write_text("in the way")
    with pytest.raises(HostNotFitError) as caught:
        make_places(below(tmp_path), uid=os.getuid(), server=None)
    assert str(tmp_path) in caught.value.where


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_as_root_the_server_user_owns_data_and_sockets_and_may_enter_the_rest(tmp_path):
    made = below(tmp_path)
    old = os.umask(0o077)
    try:
        make_places(made, uid=0, server=UserIds(uid=65534, gid=65534))
    finally:
        os.umask(old)
    assert owner(made.data) == owner(made.run) == 65534
    assert owner(made.state) == owner(made.cache) == 0
    assert mode(made.cache) == mode(made.state) == mode(str(tmp_path / "deep")) == 0o755


def test_root_makes_file_systems_beside_the_data_that_it_chose_and_never_in_folders_of_others():
    assert places({"PGSTRATA_DATA": "/disk/data"}, uid=0).storage == "/disk/data-storage"
    assert places({"PGSTRATA_STATE": "/b"}, uid=0).storage == "/b/storage"
    assert places({"PGSTRATA_DATA": "/disk/data"}).storage == "/var/lib/pgstrata/storage"
    assert places({"PGSTRATA_STORAGE": "/disk/storage"}).storage == "/disk/storage"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_root_keeps_cache_and_state_where_nobody_else_can_replace_them(open_folder):
    os.chown(open_folder, 65534, 65534)
    with pytest.raises(HostNotFitError, match="nobody could replace") as caught:
        make_places(below(open_folder), uid=0, server=None)
    assert caught.value.where == f"{open_folder}/cache"
    assert not (open_folder / "cache").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks first who could replace a place")
@pytest.mark.parametrize("name", ["one", "one/below"])
def test_a_place_behind_links_that_lead_to_each_other_is_an_error_with_a_remedy(tmp_path, name):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(HostNotFitError, match="Too many levels of symbolic links\n  -> choose other places") as caught:
        make_places(replace(places({}), cache=str(tmp_path / name)), uid=os.getuid(), server=None)
    assert caught.value.where == str(tmp_path / name)
