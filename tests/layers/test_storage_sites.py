"""What an environment asks of storage for data, WAL and installation, before any host is looked at."""

import pytest

from pgstrata.errors import LevelNotTakenError, ParseError, UsageError
from pgstrata.layers.storage.layer import assert_file_system
from pgstrata.layers.storage.sites import find_sites, refuse_meaningless
from pgstrata.layers.storage.stack import DeviceStack, MountedFileSystem, parse_roles
from pgstrata.model.experiment import Environment, ServerKind, ServerSpec
from pgstrata.model.storage import Medium, Role, device_of, medium_of
from pgstrata.testing import failure_of

MB = 1024 * 1024


def asking(**levels):
    layers = {key if key == "filesystem" else f"storage.{key}": value for key, value in levels.items()}
    return Environment(name="it", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED), layers=layers)


@pytest.mark.parametrize(
    ("levels", "media"),
    [
        ({}, ("same", "same", "same")),
        ({"filesystem": "xfs"}, ("loop", "same", "same")),
        ({"filesystem": "xfs", "device": "/dev/x", "wal": "loop"}, ("device", "loop", "same")),
        ({"wal": "same", "installation": "memory"}, ("same", "same", "memory")),
        ({"wal": "/dev/y", "installation": "loop"}, ("same", "device", "loop")),
    ],
)
def test_each_part_has_its_medium(levels, media):
    environment = asking(**levels)
    assert tuple(medium_of(environment, role) for role in Role) == media
    sites = find_sites(environment, {})
    assert [(site.role, site.medium) for site in sites] == [
        (role, medium) for role, medium in zip(Role, media, strict=True) if medium != "same"
    ]
    assert device_of(environment, Role.WAL) == ("/dev/y" if media[1] == "device" else "")


def test_options_are_those_of_every_file_system_and_the_size_that_of_the_data():
    environment = asking(
        filesystem="xfs", wal="loop", installation="/dev/x", mount="noatime", mkfs="-m crc=1", size="1073741824"
    )
    data, wal, installation = find_sites(environment, {Role.WAL: 2000 * MB})
    assert {site.kind for site in (data, wal, installation)} == {"xfs"}
    assert [site.options for site in (data, wal, installation)] == [("nodiscard", "noatime", "nosuid", "nodev")] * 2 + [
        ("noatime", "nosuid", "nodev")
    ]
    assert all("crc=1" in site.words for site in (data, wal, installation))
    assert (data.size, installation.size) == (1024 * MB, 0)
    assert wal.size >= 2000 * MB
    assert len({site.label for site in (data, wal, installation)}) == 3


def test_without_a_file_system_for_the_data_the_wal_has_ext4_and_memory_needs_no_mkfs():
    wal, installation = find_sites(asking(wal="loop", installation="memory"), {Role.INSTALLATION: 700 * MB})
    assert (wal.kind, wal.packages["mkfs.ext4"]) == ("ext4", "e2fsprogs")
    assert (installation.kind, installation.words) == ("tmpfs", ())
    assert installation.size >= 700 * MB
    assert f"size={installation.size}" in installation.options
    assert set(installation.packages) == {"mount", "umount", "findmnt"}


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({"mount": "noatime"}, "needs a file system"),
        ({"mount": "noatime", "wal": "memory"}, "needs a file system"),
        ({"size": "1", "wal": "loop"}, "needs a file system"),
        ({"device": "/dev/x", "wal": "loop"}, "needs a file system"),
        ({"filesystem": "ext4", "device": "/dev/x", "wal": "/dev/x"}, "asked for twice"),
        ({"wal": "/dev/x", "installation": "/dev/x"}, "asked for twice"),
        ({"journal": "x"}, "not known"),
    ],
)
def test_what_would_mean_nothing_is_refused(levels, said):
    assert said in failure_of(UsageError, lambda: refuse_meaningless(asking(**levels))).what


def test_a_device_may_be_left_over_for_the_wal_of_a_data_that_stay_where_they_are():
    refuse_meaningless(asking(wal="/dev/x", mount="noatime"))
    refuse_meaningless(asking(wal="same", installation="same"))


def stack(kind, *options):
    return DeviceStack(mount=MountedFileSystem(target="/m", source="s", type=kind, options=("rw", *options)))


@pytest.mark.parametrize(
    ("role", "said"), [(Role.DATA, "the data lie on"), (Role.WAL, "the WAL lies on"), (Role.INSTALLATION, "the inst")]
)
def test_a_part_that_lies_elsewhere_did_not_take(role, said):
    (site,) = find_sites(asking(**({"filesystem": "ext4"} if role is Role.DATA else {role.value: "loop"})), {})
    error = failure_of(LevelNotTakenError, lambda: assert_file_system(site, stack("overlay"), "", "here"))
    assert said in error.what
    assert "loop device" in error.what


def test_memory_is_seen_by_its_kind_alone():
    (site,) = find_sites(asking(wal="memory"), {})
    assert site.medium is Medium.MEMORY
    assert_file_system(site, stack("tmpfs"), "", "here")
    failure_of(LevelNotTakenError, lambda: assert_file_system(site, stack("ext4"), "", "here"))


def test_the_parts_of_a_server_are_told_apart():
    text = "".join(
        f'== role {role}\n== place\ninside=/{role}\nreal=\n== mount 0\nTARGET="/" SOURCE="s" FSTYPE="{kind}" OPTIONS="rw"\n'
        for role, kind in zip(Role, ("xfs", "ext4", "tmpfs"), strict=True)
    )
    seen = parse_roles(text)
    assert {role: found.stack.mount.type for role, found in seen.items()} == {
        Role.DATA: "xfs",
        Role.WAL: "ext4",
        Role.INSTALLATION: "tmpfs",
    }
    assert seen[Role.WAL].facts["inside"] == "/wal"
    for wrong in (text.replace("role wal", "role log"), "== place\ninside=/x\n", ""):
        with pytest.raises(ParseError):
            parse_roles(wrong)
