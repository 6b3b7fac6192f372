"""Memory pages of the server's shared memory, and transparent huge pages."""

from typing import Final

from pgstrata.experiment.keys import WrongValueError, suggest
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, bytes_or_none, level_text, one_of
from pgstrata.experiment.needs import HostLine, file_needed, writable
from pgstrata.experiment.values import Scalar

_SIZES: Final = {"4kB": 4096, "2MB": 2 * 1024**2, "1GB": 1024**3}
_POOLS: Final = "/sys/kernel/mm/hugepages"
_FLAG: Final = "a CPU with pages of 1 GB (flag pdpe1gb)"


def _read_pages(value: Scalar) -> str:
    for name, size in _SIZES.items():
        if bytes_or_none(value) == size:
            return name
    raise WrongValueError(
        f"{level_text(value)!r} is not a valid size of memory pages", suggest(level_text(value), _SIZES)
    )


def _pages_line(size: str, lack: str) -> HostLine:
    path = f"{_POOLS}/hugepages-{_SIZES[size] // 1024}kB/nr_hugepages"
    return HostLine(key=f"pages={size}", needs=(file_needed(path, lack=lack),))


MEMORY: Final = Layer(
    factors={
        "pages": FactorKey(
            meaning="Memory pages of the server's shared memory: 4kB, 2MB, 1GB; reserved for each run.",
            wrong='"3MB"',
            wrong_levels='["4kB", "2 MiB"]',
        ),
        "thp": FactorKey(
            meaning="Transparent huge pages, for anonymous and shared memory: always, madvise, never.",
            wrong='"on"',
            wrong_levels='["always", "sometimes"]',
        ),
    },
    keys={
        "pages": LayerKey(_read_pages, '`"4kB"`, `"2MB"`, `"1GB"`: what the server\'s shared memory lies on'),
        "thp": LayerKey(
            one_of("always", "madvise", "never"),
            '`"always"`, `"madvise"`, `"never"`: transparent huge pages, for anonymous and shared memory',
        ),
    },
    host=(
        _pages_line("2MB", "needs a kernel with CONFIG_HUGETLBFS"),
        _pages_line("1GB", f"needs {_FLAG} and a kernel with CONFIG_HUGETLBFS"),
        HostLine(
            key="thp",
            needs=(
                file_needed(
                    "/sys/kernel/mm/transparent_hugepage/enabled",
                    lack="needs a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
                ),
                writable("/sys"),
            ),
        ),
    ),
)
