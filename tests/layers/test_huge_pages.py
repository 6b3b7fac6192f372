"""Pools of huge pages in numbers, and the scripts that change one, on a file that stands for it."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.errors import ParseError
from pgstrata.layers.huge_pages import (
    ANONYMOUS,
    PAGE_BYTES,
    SHARED,
    Pool,
    SharedMemory,
    Transparent,
    asked_of,
    of_state,
    parse_pool,
    parse_shared_memory,
    parse_transparent,
    pool_files,
    sizes_apart,
)
from pgstrata.testing import failure_of

MB = 1024**2
SMAPS = """\
55f6e81b5000-55f6e8297000 r--p 00000000 fe:00 786475                     /usr/bin/postgres
Size:                904 kB
KernelPageSize:        4 kB
VmFlags: rd mr mw me
7f0000000000-7f0000010000 rw-s 00000000 00:17 9                          /dev/shm/PostgreSQL.1804289383
Size:                 64 kB
KernelPageSize:        4 kB
THPeligible:           0
7f45a3a00000-7f45a8c00000 rw-s 00000000 00:11 2295835                    /anon_hugepage (deleted)
Size:              83968 kB
KernelPageSize:     2048 kB
MMUPageSize:        2048 kB
Shared_Hugetlb:    14336 kB
THPeligible:           0
VmFlags: rd wr sh mr mw me ms de ht
7f45a8c00000-7f45a8c99000 r--p 00000000 fe:00 326789                     /usr/lib/libstdc++.so.6.0.30
Size:             983968 kB
KernelPageSize:        4 kB
"""

pages = st.integers(min_value=0, max_value=10_000)


@st.composite
def pools(draw):
    total = draw(pages)
    free = draw(st.integers(min_value=0, max_value=total))
    return Pool(page=2 * MB, total=total, free=free, promised=draw(st.integers(min_value=0, max_value=free)))


@given(pools(), pages)
def test_nobody_loses_pages_and_the_server_finds_enough(pool, wanted):
    target = pool.target(wanted)
    assert target >= pool.total
    used = pool.total - pool.free
    assert target - used - pool.promised >= wanted
    assert target == pool.total or target - used - pool.promised == wanted


def test_a_pool_is_read_of_three_files():
    files = dict(zip(pool_files(2 * MB), (b"60\n", b"51\n", b"32\n"), strict=True))
    assert parse_pool(2 * MB, files) == Pool(page=2 * MB, total=60, free=51, promised=32)
    files.popitem()
    assert parse_pool(2 * MB, files) is None


def test_the_servers_shared_memory_is_the_largest_shared_mapping():
    assert parse_shared_memory(SMAPS.encode()) == SharedMemory(bytes=82 * MB, page=2 * MB, eligible=False)


def test_kernels_that_do_not_say_what_is_eligible_are_not_asked():
    lines = [line for line in SMAPS.splitlines() if not line.startswith("THPeligible")]
    assert parse_shared_memory("\n".join(lines).encode()).eligible is None


@pytest.mark.parametrize("text", ["", "nothing of the kind\n", SMAPS.partition("7f00")[0]])
def test_a_process_without_shared_memory_is_no_server(text):
    assert "no shared mapping" in failure_of(ParseError, lambda: parse_shared_memory(text.encode())).what


class FilePool:
    """A file that stands for nr_hugepages, and the scripts of a change that are run on it."""

    def __init__(self, path, change):
        self.path = path
        self.scripts = {name: getattr(change, name) for name in ("read", "do", "undo")}

    def run(self, name, *more):
        script = self.scripts[name]
        words = [str(self.path) if word.endswith("/nr_hugepages") else word for word in script.arguments]
        return subprocess.run(["sh", "-c", script.text, "sh", *words, *more], capture_output=True, text=True)


@pytest.fixture
def pool_file(tmp_path):
    path = tmp_path / "nr_hugepages"

    def make(total, target):
        path.write_text(f"{total}\n")
        pool = Pool(page=PAGE_BYTES["2MB"], total=total, free=0, promised=0)
        return FilePool(path, pool.change(target))

    return make


def test_a_pool_grows_and_is_given_back(pool_file):
    pool = pool_file(7, 30)
    assert pool.run("do").returncode == 0
    assert pool.run("read").stdout == "30\n"
    for _ in range(2):
        assert pool.run("undo", "7").returncode == 0
        assert pool.run("read").stdout == "7\n"


@pytest.mark.parametrize(
    ("now", "left"),
    [(7, 7), (5, 5), (20, 7), (30, 7), (34, 11)],
    ids=["never happened", "others took pages away", "fewer were given", "as it was left", "others added some"],
)
def test_only_what_was_added_is_taken_away(pool_file, now, left):
    pool = pool_file(7, 30)
    pool.path.write_text(f"{now}\n")
    assert pool.run("undo", "7").returncode == 0
    assert pool.run("read").stdout == f"{left}\n"


# ------------------------------------------------------------------------------------ transparent huge pages


def test_the_words_in_brackets_count():
    files = {
        ANONYMOUS: b"always [madvise] never\n",
        SHARED: b"always within_size advise [never] deny force\n",
    }
    assert parse_transparent(files) == Transparent(anonymous="madvise", shared="never")
    assert parse_transparent({ANONYMOUS: files[ANONYMOUS]}) is None


def test_shared_memory_has_a_word_of_its_own_for_madvise():
    assert [asked_of(level).shared for level in ("always", "madvise", "never")] == ["always", "advise", "never"]
    assert of_state("madvise advise 67584") == asked_of("madvise")
    assert of_state("") is None


def test_sizes_that_do_not_follow_the_others_are_named_with_what_they_should_have():
    folder = "/sys/kernel/mm/transparent_hugepage"
    listed = (
        f"{folder}/hugepages-64kB/enabled: [always] inherit madvise never\n"
        f"{folder}/hugepages-128kB/enabled: always [inherit] madvise never\n"
        f"{folder}/hugepages-16kB/enabled: always inherit madvise [never]\n"
        f"{folder}/hugepages-2048kB/enabled: always [inherit] madvise never\n"
        f"{folder}/hugepages-2048kB/shmem_enabled: always inherit within_size advise [never]\n"
    )
    assert list(sizes_apart(listed, 2 * MB)) == [
        (f"{folder}/hugepages-64kB/enabled", "never"),
        (f"{folder}/hugepages-2048kB/shmem_enabled", "inherit"),
    ]
    assert list(sizes_apart("", 2 * MB)) == []
