"""A source is built by meson where it can be, by configure otherwise, and by one of them throughout an experiment."""

import shutil
import tarfile
from pathlib import Path

import pytest

from pgstrata import errors
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.build import Builder
from pgstrata.servers.recipes import System
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers

# What meson does as far as it matters: it knows prefix, source and flags from the set-up, and installs below DESTDIR.
MESON = """#!/bin/sh
case $1 in
setup)
    for word; do case $word in --prefix=*) prefix=${word#--prefix=};; -Dc_args=*) flags=${word#-Dc_args=};; esac; done
    while [ $# -gt 2 ]; do shift; done
    mkdir -p "$1/meson-logs"; echo "tried" > "$1/meson-logs/meson-log.txt"
    [ -e "$2/refused" ] && { echo "meson.build:1: ERROR: refused"; exit 1; }
    echo "$CC $flags" > "$1/how"; echo "$prefix" > "$1/prefix"; echo "$2" > "$1/source";;
install)
    target=$DESTDIR$(cat "$3/prefix"); mkdir -p "$target/share"
    cp -r "$(cat "$3/source")/bin" "$target/"; cp "$3/how" "$target/share/"; echo bki > "$target/share/postgres.bki";;
esac
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stand-ins for what builds, before all others on the path."""
    folder = tmp_path / "programs"
    folder.mkdir()
    texts = {
        "meson": MESON,
        "ninja": "#!/bin/sh\n",
        "bison": "#!/bin/sh\n",
        "flex": "#!/bin/sh\n",
        "some-cc": '#!/bin/sh\necho "some-cc (Maker 12.2.0-14) 12.2.0"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


@pytest.fixture
def source(tmp_path, installation):
    """Make a source that meson, configure, or both can build."""

    def make(name, *files):
        folder = installation(tmp_path / name, programs=("initdb", "pg_ctl"))
        (folder / "src/backend/parser").mkdir(parents=True)
        for file in files:
            (folder / file).write_text("")
        return folder

    return make


@pytest.fixture
def builder(tmp_path):
    return Builder(
        site=ServerSite(here=LocalHost(), host=LocalHost(), cache=str(tmp_path / "cache"), note=lambda line: None),
        cpus=2,
    )


def spec(folder, **how):
    build = {"compiler": "some-cc", **how}
    return ServerSpec(kind=ServerKind.BUILD, value=str(folder), build=tuple(sorted(build.items())))


BOTH = ("configure", "meson.build")
ARCHIVE_OF_16 = (*BOTH, "src/backend/parser/gram.c")


def test_meson_builds_what_has_it_and_says_what_it_was_asked(tmp_path, programs, source):
    servers = Servers.make(
        ServerSite(here=LocalHost(), host=LocalHost(), cache=str(tmp_path / "cache"), note=lambda line: None),
        machine="x86_64",
        python="python3",
    )
    build = servers.resolve(spec(source("pg18", *BOTH), flags="-O3 -march=native"))
    assert (build.supplier, build.compiler) == ("built from source by meson", "some-cc (Maker 12.2.0-14) 12.2.0")
    assert Path(build.prefix, "share", "how").read_text() == "some-cc -O3 -march=native\n"
    assert build.configure.endswith("-Dssl=none -Dc_args=-O3 -march=native")
    plain = servers.resolve(spec(source("again", *BOTH)))
    assert Path(plain.prefix, "share", "how").read_text() == "some-cc -O2\n"


def test_without_meson_it_is_configure(programs, source, builder):
    (programs / "meson").unlink()
    folder = source("pg18", *BOTH)
    if shutil.which("meson"):
        pytest.skip("meson is installed here")
    assert builder.alike([spec(folder)])[spec(folder).text].build[-1] == ("system", "configure")


def systems(builder, *specs):
    found = builder.alike(specs)
    return [dict(found[one.text].build)["system"] for one in specs]


def test_all_sources_of_an_experiment_are_built_by_one_system_where_one_can(programs, source, builder):
    old, new, newer = source("pg15", "configure"), source("pg17", *BOTH), source("pg18", *BOTH)
    packed, alone = source("pg16", *ARCHIVE_OF_16), source("pg20", "meson.build")
    assert systems(builder, spec(new), spec(newer)) == ["meson", "meson"]
    assert systems(builder, spec(old), spec(new)) == ["configure", "configure"]
    assert systems(builder, spec(packed), spec(new)) == ["configure", "configure"]
    assert systems(builder, spec(new, system="configure"), spec(newer)) == ["configure", "configure"]
    assert systems(builder, spec(new, system="configure"), spec(new, system="meson")) == ["configure", "meson"]
    assert systems(builder, spec(old), spec(alone)) == ["configure", "meson"]


def test_builds_of_two_systems_are_two(programs, source, builder):
    folder = source("pg18", *BOTH)
    (folder / "configure").write_text("#!/bin/sh\nexit 3\n")
    (folder / "configure").chmod(0o755)
    assert builder.build(spec(folder)).recipe.system is System.MESON
    with pytest.raises(errors.PgstrataError, match=r"\./configure ended with exit code 3"):
        builder.build(spec(folder, system="configure"))


def test_the_flags_that_meson_gets_anyway_make_no_other_build(programs, source, builder):
    folder = source("pg18", *BOTH)
    usual = builder.build(spec(folder)).prefix
    assert builder.build(spec(folder, flags="-O2")).prefix == usual
    assert builder.build(spec(folder, flags="-O3")).prefix != usual


def test_what_meson_tried_is_in_the_log_of_a_failed_build(programs, source, builder):
    folder = source("pg18", *BOTH, "refused")
    with pytest.raises(errors.PgstrataError, match="meson ended with exit code 1") as caught:
        builder.build(spec(folder))
    assert caught.value.details == ("meson.build:1: ERROR: refused",)
    assert "meson-log.txt:\ntried" in Path(caught.value.remedy.rpartition(" ")[2]).read_text()


def test_a_failed_build_shows_the_step_that_failed_and_not_what_others_said_after_it(programs, source, builder):
    others = "".join(f"echo '[{number}/1917] Compiling C object other.c.o'\n" for number in range(293, 320))
    (programs / "ninja").write_text(
        f"#!/bin/sh\necho '[291/1917] Generating scanner'\necho 'FAILED: scanner.c'\necho 'flex -o scanner.c scanner.l'\n"
        f"echo 'flex: fatal internal error'\n{others}echo 'ninja: build stopped: subcommand failed.'\nexit 1\n"
    )
    with pytest.raises(errors.PgstrataError, match="ninja ended with exit code 1") as caught:
        builder.build(spec(source("pg18", *BOTH)))
    assert caught.value.details == ("FAILED: scanner.c", "flex: fatal internal error")


def test_a_system_that_a_source_does_not_know_is_refused(programs, source, builder):
    with pytest.raises(errors.UsageError, match="cannot be built by meson") as caught:
        builder.build(spec(source("pg15", "configure"), system="meson"))
    assert "'configure'" in caught.value.remedy


@pytest.mark.parametrize(("lacking", "package"), [("meson", "meson"), ("ninja", "ninja-build"), ("flex", "flex")])
def test_a_program_that_meson_takes_is_named_with_its_package(tmp_path, scripted, answer, source, lacking, package):
    host = scripted(
        lambda command: answer(command, int(command.argv[-1] == lacking)) if command.argv[0] == "sh" else None
    )
    builder = Builder(
        site=ServerSite(here=host, host=host, cache=str(tmp_path / "cache"), note=lambda line: None), cpus=2
    )
    with pytest.raises(errors.HostNotFitError, match=lacking) as caught:
        builder.build(spec(source("pg18", *BOTH), system="meson"))
    assert f"apt-get install {package} " in caught.value.remedy


def test_a_tarball_is_looked_into(tmp_path, programs, source, builder):
    found = []
    for name, files in (("pg16", ARCHIVE_OF_16), ("pg17", BOTH)):
        archive = tmp_path / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(source(name, *files), f"postgresql-{name}")
        found += systems(builder, spec(archive))
    assert found == ["configure", "meson"]
