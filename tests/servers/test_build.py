"""PostgreSQL is built from source once for each content, compiler and flags, and the user's tree is left alone."""

import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from pgstrata import errors
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.build import Builder
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers
from small_source import COMPILER, CONFIGURE, makefile, write_program, write_source

MAKEFILE = makefile("how")


@pytest.fixture
def tree(tmp_path, installation):
    """A source tree whose make installs the small installation that it brings."""
    folder = installation(tmp_path / "source", programs=("initdb", "pg_ctl"))
    write_source(folder)
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


@pytest.fixture
def compiler(tmp_path):
    return write_program(tmp_path / "some-cc")


@pytest.fixture
def builder(tmp_path, scripted):
    def make(script=lambda command: None):
        notes = []
        host = scripted(script)
        builder = Builder(
            site=ServerSite(here=host, host=host, cache=str(tmp_path / "cache"), note=notes.append), cpus=2
        )
        return builder, host, notes

    return make


def spec(tree, compiler, flags=""):
    build = (("compiler", compiler), *((("flags", flags),) if flags else ()))
    return ServerSpec(kind=ServerKind.BUILD, value=str(tree), build=build)


def everything(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_tree_is_built_once_and_never_written_to(builder, tree, compiler):
    make, _, notes = builder()
    before = everything(tree)
    old = os.umask(0o077)
    try:
        prefix = Path(make.build(spec(tree, compiler)).prefix)
    finally:
        os.umask(old)
    assert make.build(spec(tree, compiler)).prefix == str(prefix)
    assert len(notes) == 1
    assert everything(tree) == before
    assert stat.S_IMODE((prefix / "bin" / "postgres").stat().st_mode) == 0o755
    assert stat.S_IMODE((prefix / "share").stat().st_mode) == 0o755
    assert "compiled" in (prefix / "build.log").read_text()
    assert [path.name for path in prefix.parent.iterdir() if path.is_dir()] == [prefix.name]


def test_compiler_and_flags_reach_configure_and_make_builds_of_their_own(builder, tree, compiler, tmp_path):
    make, _, _ = builder()
    other = tmp_path / "other-cc"
    other.write_text(COMPILER)
    other.chmod(0o755)
    specs = [spec(tree, compiler), spec(tree, compiler, "-O3 -march=native"), spec(tree, str(other))]
    prefixes = [Path(make.build(one).prefix) for one in specs]
    assert len(set(prefixes)) == 3
    assert (prefixes[0] / "share" / "how").read_text() == f"configured with CC={compiler}\n"
    assert (prefixes[1] / "share" / "how").read_text() == f"configured with CC={compiler} CFLAGS=-O3 -march=native\n"


def test_flags_of_the_users_environment_do_not_reach_the_build(builder, tree, compiler):
    make, host, _ = builder()
    make.build(spec(tree, compiler))
    steps = [argv for argv in host.asked if "CFLAGS" in argv]
    assert len(steps) == 5
    assert all(argv[argv.index("CFLAGS") - 1] == "-u" for argv in steps)


def test_a_changed_file_is_another_build_and_an_old_one_is_found_again(builder, tree, compiler):
    make, _, _ = builder()
    first = make.build(spec(tree, compiler))
    (tree / "src" / "new.c").write_text("int x;")
    assert make.build(spec(tree, compiler)) != first
    (tree / "src" / "new.c").unlink()
    (tree / ".git").mkdir()
    (tree / ".git" / "index").write_text("git's own does not count")
    assert make.build(spec(tree, compiler)) == first


def test_another_version_of_the_compiler_is_another_build(builder, tree, compiler):
    make, _, _ = builder()
    first = make.build(spec(tree, compiler))
    Path(compiler).write_text(COMPILER.replace("12.2.0", "12.3.0"))
    assert make.build(spec(tree, compiler)) != first


def test_a_tarball_is_built_too(builder, tree, compiler, tmp_path):
    archive = tmp_path / "postgresql-16.3.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tree, "postgresql-16.3")
    make, _, _ = builder()
    assert Path(make.build(spec(archive, compiler)).prefix, "bin", "postgres").is_file()


def test_a_tarball_of_something_else_is_refused(builder, compiler, tmp_path):
    (tmp_path / "note").write_text("nothing")
    archive = tmp_path / "other.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "note", "other/note")
    make, _, _ = builder()
    with pytest.raises(errors.UsageError, match="not a source of PostgreSQL"):
        make.build(spec(archive, compiler))
    assert not (tmp_path / "cache").exists()


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_only_the_log(builder, tree, compiler):
    (tree / "Makefile").write_text("all:\n\t@echo 'main.c:7: error: no such thing' >&2; false\n")
    make, _, _ = builder()
    with pytest.raises(errors.PgstrataError, match="make ended with exit code 2") as caught:
        make.build(spec(tree, compiler))
    assert any("no such thing" in line for line in caught.value.details)
    log = Path(caught.value.remedy.rpartition(" ")[2])
    assert "no such thing" in log.read_text()
    assert not [path for path in log.parent.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("lacking", "package"),
    [("make", "make"), ("perl", "perl"), ("bison", "bison"), ("flex", "flex"), ("gcc-99", "gcc-99")],
)
def test_a_missing_program_is_named_with_its_package_before_anything_begins(builder, tree, answer, lacking, package):
    (tree / "src/backend/parser/gram.c").unlink()
    make, host, notes = builder(
        lambda command: answer(command, int(command.argv[-1] == lacking)) if command.argv[0] == "sh" else None
    )
    with pytest.raises(errors.HostNotFitError, match=lacking) as caught:
        make.build(ServerSpec(kind=ServerKind.BUILD, value=str(tree), build=(("compiler", "gcc-99"),)))
    assert f"apt-get install {package} " in caught.value.remedy
    assert notes == []
    assert {argv[0] for argv in host.asked} <= {"sh", "stat"}


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda tree: (tree / "config.status").write_text(""), "configured in place"),
        (lambda tree: (tree / "configure").unlink(), "no configure"),
        (lambda tree: tree.rename(tree.with_name("gone")), "nothing"),
    ],
)
def test_what_is_no_clean_source_is_refused(builder, tree, compiler, spoil, what):
    spoil(tree)
    make, _, _ = builder()
    with pytest.raises(errors.UsageError, match=what) as caught:
        make.build(spec(tree, compiler))
    assert caught.value.remedy


def test_a_tree_with_something_that_cannot_be_copied_is_refused(builder, tree, compiler, tmp_path):
    os.mkfifo(tree / "pipe")
    make, _, _ = builder()
    with pytest.raises(errors.UsageError, match="cannot be read"):
        make.build(spec(tree, compiler))
    assert not (tmp_path / "cache" / "servers").exists()


def test_a_built_server_is_resolved_as_any_other(tree, compiler, tmp_path):
    servers = Servers.make(
        ServerSite(here=LocalHost(), host=LocalHost(), cache=str(tmp_path / "cache"), note=lambda line: None),
        machine="x86_64",
        python="python3",
    )
    build = servers.resolve(spec(tree, compiler, "-O2"))
    assert (build.supplier, build.version.major) == ("built from source by configure", "16")
    assert (build.compiler, build.assertions) == ("cc some-cc 12.2.0", False)
    assert build.spec.text == f"build:{tree} ({compiler}, -O2)"
    assert {check.program for check in servers.check(build) if check.works} == {"postgres", "initdb", "pg_ctl"}
    assert all(check.works for check in servers.check(build))


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(3600)
@pytest.mark.skipif("PGSTRATA_TEST_SOURCE" not in os.environ, reason="PGSTRATA_TEST_SOURCE names no source")
def test_a_real_source_becomes_a_server_that_says_its_flags(tmp_path):
    host = LocalHost()
    servers = Servers.make(
        ServerSite(here=host, host=host, cache=str(tmp_path / "cache"), note=lambda line: None),
        machine="x86_64",
        python="python3",
    )
    flags = (("flags", "-O1 -g0"),)
    build = servers.resolve(ServerSpec(kind=ServerKind.BUILD, value=os.environ["PGSTRATA_TEST_SOURCE"], build=flags))
    assert "-O1 -g0" in build.cflags
    assert all(check.works for check in servers.check(build))
    assert Path(subprocess.check_output([build.program("pg_config"), "--sharedir"], text=True).strip()).is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_root_leaves_building_to_the_user_whom_servers_run_as(tree, open_folder, scripted):
    """A configure that would give root's files away, and a make that puts a link to one into the installation."""
    secret = open_folder / "secret"
    secret.write_text("root's alone")
    secret.chmod(0o600)
    (tree / "configure").write_text(
        f"#!/bin/sh\nid -un > who; cat {secret} > read 2>&1\n" + CONFIGURE.partition("\n")[2]
    )
    (tree / "Makefile").write_text(
        MAKEFILE + f"\tcp who read $(DESTDIR)$(prefix)/share/; ln -s {secret} $(DESTDIR)$(prefix)/share/link\n"
    )
    source = open_folder / "source"
    shutil.move(tree, source)
    for path in (source, *source.rglob("*")):
        os.chown(path, 0, 0)
    compiler = open_folder / "some-cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    host = LocalHost(user="nobody")
    built = Builder(
        site=ServerSite(here=LocalHost(), host=host, cache=str(open_folder / "cache"), note=lambda line: None), cpus=1
    ).build(spec(source, str(compiler)))
    share = Path(built.prefix, "share")
    assert (share / "who").read_text() == "nobody\n"
    assert "Permission denied" in (share / "read").read_text()
    assert (share / "link").is_symlink()
    assert {path.lstat().st_uid for path in Path(built.prefix).rglob("*")} == {0}
    assert [path.name for path in Path(built.prefix).parent.iterdir() if path.is_dir()] == [Path(built.prefix).name]
