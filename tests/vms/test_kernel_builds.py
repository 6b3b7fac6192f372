"""Kernels are built from commits by a tree of the forged kind: in a folder of their own, once, under their own name."""

import json

import pytest

from forged_kernels import CONFIG, MAKEFILE, KernelTree
from pgstrata.errors import HostNotFitError, PgstrataError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.servers.commits import open_repository
from pgstrata.servers.shelf import ServerSite
from pgstrata.vms.kernel_builds import FACTS, KernelBuilder, KernelRecipe, find_built, list_built


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "busybox").write_bytes(b"busybox")
    monkeypatch.setattr("pgstrata.vms.kernel_builds.BUSYBOX", str(tmp_path / "busybox"))
    return KernelTree(tmp_path / "linux")


class Builds:
    """Builds commits of a tree; `told` is what it says."""

    def __init__(self, tree, cache):
        self.tree, self.cache, self.told = tree, str(cache), []

    def build(self, commit, command="make bzImage", config=CONFIG):
        host = LocalHost()
        return KernelBuilder(
            site=ServerSite(here=host, host=host, cache=self.cache, note=self.told.append),
            repository=open_repository(host, str(self.tree.folder), "Linux"),
            recipe=KernelRecipe(config=config.encode(), command=command),
        ).build(commit)


@pytest.fixture
def builds(tree, tmp_path):
    return Builds(tree, tmp_path / "cache")


def test_a_build_is_named_by_its_commit_and_kept_by_commit_configuration_and_command(tree, builds):
    first = tree.commit("First", behaviour="100")
    second = tree.commit("Second")
    release = builds.build(first)
    folder = find_built(builds.cache, release)
    assert release.startswith(f"6.1.0-g{first[:12]}.")
    assert (folder / "vmlinuz").read_text() == "100"
    assert (folder / "config").read_text() == f"{CONFIG}CONFIG_OLD=y\n"
    assert {"initrd.img", "build.log", "kernel.json"} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / "kernel.json").read_text())["compiler"].startswith("gcc")
    assert builds.build(first) == release
    assert len(builds.told) == 1
    others = {
        builds.build(second),
        builds.build(first, command="make bzImage modules"),
        builds.build(first, config="CONFIG_SMP=n\n"),
    }
    assert len(others | {release}) == 4
    assert not (tree.folder / ".config").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("$(VERSION)$(LOCALVERSION)", "6.1.0-mine"),
            "the release of the kernel is '6.1.0-mine', without the LOCALVERSION",
        ),
        (("kernel/virtio_net.ko ", ""), "lacks drivers without which a virtual machine cannot start: virtio_net"),
        (("@cp behaviour", "@cp nothing"), "cp: cannot stat 'nothing'"),
    ],
)
def test_what_a_commit_does_not_give_is_its_own_fault(tree, builds, change, said):
    commit = tree.commit("Other", behaviour="100", makefile=MAKEFILE.format(minor=1).replace(*change))
    with pytest.raises(PgstrataError) as failed:
        builds.build(commit)
    assert type(failed.value) is PgstrataError
    assert said in failed.value.what
    assert [path.name for path in (builds.tree.folder.parent / "cache" / "kernels").glob("[0-9a-f]*[0-9a-f]")] == []


@pytest.mark.parametrize(
    "change",
    [
        ("@cp behaviour", "@kill -s TERM $$PPID; sleep 5; cp behaviour"),
        ("@cp behaviour", "@echo 'cc1: fatal error: Killed signal terminated program cc1' >&2; false"),
        ("@cp behaviour", "@echo 'collect2: fatal error: ld terminated with signal 9 [Killed]' >&2; false"),
        ("@cp behaviour", "@echo 'make[2]: *** [vmlinux.o] Error 137' >&2; false"),
        ("@cp behaviour", "@echo 'as: out of memory allocating 4064 bytes' >&2; false"),
    ],
)
def test_a_build_that_was_killed_is_not_the_fault_of_its_commit(tree, builds, change):
    commit = tree.commit("Other", behaviour="100", makefile=MAKEFILE.format(minor=1).replace(*change))
    with pytest.raises(HostNotFitError, match="the build of a kernel was killed"):
        builds.build(commit)


@pytest.mark.parametrize(
    "change",
    [
        ("@cp behaviour", "@pgstrata-flex behaviour"),
        ("@cp behaviour", "@echo 'sh: 1: pgstrata-flex: not found' >&2; false"),
        ("@cp behaviour", "@echo 'scripts/x.sh: line 3: pgstrata-flex: command not found' >&2; false"),
    ],
)
def test_a_missing_program_is_not_the_fault_of_the_commit_and_others_are_named_with_it(
    tree, builds, change, monkeypatch
):
    monkeypatch.setattr("pgstrata.vms.kernel_builds._OFTEN_NEEDED", ("pgstrata-flex", "pgstrata-bison", "sh"))
    commit = tree.commit("Other", behaviour="100", makefile=MAKEFILE.format(minor=1).replace(*change))
    with pytest.raises(HostNotFitError, match="needs pgstrata-flex, pgstrata-bison, missing") as failed:
        builds.build(commit)
    assert failed.value.remedy.startswith("apt-get install pgstrata-flex pgstrata-bison (Debian")


@pytest.mark.parametrize("said", ["sh: 1: ./scripts/own.sh: not found", "make: own.c: No such file or directory"])
def test_a_missing_file_of_the_source_is_the_fault_of_the_commit(tree, builds, said):
    makefile = MAKEFILE.format(minor=1).replace("@cp behaviour", f"@echo '{said}' >&2; false")
    commit = tree.commit("Other", behaviour="100", makefile=makefile)
    with pytest.raises(PgstrataError) as failed:
        builds.build(commit)
    assert type(failed.value) is PgstrataError


def test_a_build_that_installs_a_link_is_refused_before_root_reads_it(tree, builds, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("kernel/virtio_net.ko\n")
    link = f"@rm -f modules.builtin; ln -s {secret} modules.order; cp behaviour"
    install = "\nmodules_install:\n\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/x; "
    install += f"ln -s {secret} $(INSTALL_MOD_PATH)/lib/modules/x/modules.builtin\n"
    commit = tree.commit("Link", "100", MAKEFILE.format(minor=1).replace("@cp behaviour", link) + install)
    with pytest.raises(PgstrataError, match="symbolic link"):
        builds.build(commit)


def test_a_half_made_build_is_not_listed(tree, builds):
    cache = builds.tree.folder.parent / "cache"
    half = cache / "kernels" / "0123456789ab.00112233.partial"
    half.mkdir(parents=True)
    (half / FACTS).write_text("{}")
    assert list_built(str(cache)) == ()


@pytest.mark.parametrize(
    ("command", "compiler", "variables"),
    [
        ("make -j8 bzImage", "", ()),
        ("make CC=clang-19 bzImage", "clang-19", ("CC=clang-19",)),
        ('make CC="ccache gcc-12" bzImage', "gcc-12", ("CC=ccache gcc-12",)),
        ("make LLVM=1 bzImage", "clang", ("LLVM=1",)),
        ("make LLVM=-19 bzImage", "clang-19", ("LLVM=-19",)),
    ],
)
def test_the_compiler_is_the_one_that_the_command_names(command, compiler, variables):
    recipe = KernelRecipe(config=b"", command=command)
    assert (recipe.compiler, recipe.variables) == (compiler, variables)


@pytest.mark.parametrize("command", ["make O=/tmp/x", "LOCALVERSION=-x make", "make 'bz"])
def test_a_command_that_builds_elsewhere_or_under_another_name_is_refused(command):
    with pytest.raises(UsageError):
        KernelRecipe(config=b"", command=command).require()
