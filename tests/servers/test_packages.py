"""Missing libraries are unpacked from the distribution's packages, and what cannot be had is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.servers.packages import Packages
from pgstrata.servers.shelf import ServerSite

COMPLETE = "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n"


def missing(*names):
    return "".join(f"\t{name} => not found\n" for name in names)


def packages(host, cache):
    return Packages(site=ServerSite(here=host, host=host, cache=str(cache), note=lambda line: None))


def there(command, library):
    return any(
        Path(folder, library).exists() for folder in command.environment.get("LD_LIBRARY_PATH", "").split(":") if folder
    )


@pytest.fixture
def machine(scripted, answer):
    """A machine that lacks libxml2, which needs libicuuc, and whose apt-get knows some packages."""

    def make(known, needs=("libxml2.so.2", "libicuuc.so.72")):
        def ldd(command):
            lacking = [library for library in needs if not there(command, library)][:1]
            return answer(command, stdout=missing(*lacking) or COMPLETE)

        def script(command):
            match command.argv:
                case ("ldd", *_):
                    return ldd(command)
                case ("apt-get", *_, "download", name) if name in known:
                    Path(command.folder, f"{name}_1_amd64.deb").write_text(known[name])
                    return answer(command)
                case ("apt-get", *_):
                    return answer(command, 100, stderr="E: Unable to locate package")
                case ("dpkg", "-x", archive, tree):
                    unpack(Path(archive).read_text(), Path(tree, "usr/lib/x86_64-linux-gnu"))
                    return answer(command)
            return None

        return scripted(script)

    def unpack(library, folder):
        folder.mkdir(parents=True)
        (folder / f"{library}.9").write_text("library")
        (folder / library).symlink_to(f"{library}.9")
        (folder / "plugins").mkdir()
        (folder / "plugins" / "plugin.so").write_text("plug-in")

    return make


def test_nothing_is_done_where_nothing_is_missing(machine, tmp_path):
    host = machine({}, needs=())
    assert packages(host, tmp_path / "cache").ensure("/pg", {"A": "b"}) == {"A": "b"}
    assert not (tmp_path / "cache").exists()


def test_libraries_of_libraries_are_brought_too(machine, tmp_path):
    host = machine({"libxml2": "libxml2.so.2", "libicu72": "libicuuc.so.72"})
    environment = packages(host, tmp_path).ensure("/pg", {})
    folder = Path(environment["LD_LIBRARY_PATH"])
    assert sorted(path.name for path in folder.iterdir()) == ["libicuuc.so.72", "libxml2.so.2"]
    assert folder.is_relative_to(tmp_path / "libraries")
    assert not (folder / "libxml2.so.2").is_symlink()


def test_the_names_after_the_change_to_64_bit_time_are_tried(machine, tmp_path):
    host = machine({"libssl3t64": "libssl.so.3"}, needs=("libssl.so.3",))
    assert packages(host, tmp_path).ensure("/pg", {})["LD_LIBRARY_PATH"]


def test_a_library_path_that_was_there_stays_in_front(machine, tmp_path):
    host = machine({"libxml2": "libxml2.so.2"}, needs=("libxml2.so.2",))
    environment = packages(host, tmp_path).ensure("/pg", {"LD_LIBRARY_PATH": "/pg/lib"})
    assert environment["LD_LIBRARY_PATH"].startswith("/pg/lib:")


def test_what_was_brought_is_used_again_without_asking_for_it(machine, tmp_path):
    host = machine({"libxml2": "libxml2.so.2"}, needs=("libxml2.so.2",))
    packages(host, tmp_path).ensure("/pg", {})
    host.asked.clear()
    packages(host, tmp_path).ensure("/pg", {})
    assert {argv[0] for argv in host.asked} == {"ldd"}


def test_what_cannot_be_had_is_named_with_its_package(machine, tmp_path):
    with pytest.raises(HostNotFitError) as caught:
        packages(machine({}), tmp_path).ensure("/pg", {})
    assert "libxml2.so.2" in caught.value.what
    assert "apt-get install libxml2 " in caught.value.remedy
    assert "'libxml2.so.2()(64bit)'" in caught.value.remedy


def test_a_machine_of_another_distribution_is_told_the_same(scripted, answer, no_such_program, tmp_path):
    def script(command):
        return answer(command, stdout=missing("libxml2.so.2")) if command.argv[0] == "ldd" else no_such_program(command)

    with pytest.raises(HostNotFitError, match=r"libxml2\.so\.2"):
        packages(scripted(script), tmp_path).ensure("/pg", {})


def test_a_c_library_that_is_too_old_cannot_be_mended(scripted, answer, tmp_path):
    text = "./postgres: /lib/libc.so.6: version `GLIBC_2.34' not found (required by ./postgres)"
    host = scripted(lambda command: answer(command, stdout=text))
    with pytest.raises(HostNotFitError, match="too old") as caught:
        packages(host, tmp_path).ensure("/pg", {})
    assert "embedded" in caught.value.remedy


HIDE = """
set -eu
mkdir "$1/over"; mount -t tmpfs none "$1/over"; mkdir "$1/over/upper" "$1/over/work"
libraries=$(dirname "$2")
mount -t overlay overlay -o "lowerdir=$libraries,upperdir=$1/over/upper,workdir=$1/over/work" "$libraries"
rm -f "$libraries"/libxml2.so.2*
shift 2
exec "$@"
"""

RESOLVE = """
import platform
import sys
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers

here = LocalHost()
site = ServerSite(here=here, host=here, cache=sys.argv[1], note=print)
supply = Servers.make(site, machine=platform.machine(), python=sys.executable)
build = supply.resolve(ServerSpec(kind=ServerKind.CATALOGUE, value="16"))
assert all(check.works for check in supply.check(build)), supply.check(build)
print(build.process_environment["LD_LIBRARY_PATH"])
"""


@pytest.mark.root
@pytest.mark.company
@pytest.mark.server
@pytest.mark.slow
def test_a_server_starts_where_a_library_is_really_missing(tmp_path):
    library = next(iter(Path("/usr/lib").glob("*-linux-gnu/libxml2.so.2")), None)
    if os.getuid() != 0 or library is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("needs root, mount namespaces, and a library to hide")
    hidden = ["unshare", "-m", "sh", "-c", HIDE, "hide", tmp_path, library]
    done = subprocess.run(
        [*hidden, sys.executable, "-c", RESOLVE, tmp_path / "cache"], check=False, capture_output=True, text=True
    )
    if "apt-get install" in done.stderr:
        pytest.skip("this machine's packages cannot be reached")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{tmp_path}/cache/libraries/")
