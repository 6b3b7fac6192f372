"""A search along real kernels, emulated, ends at the declared one: `make soak ARGS=bisect-kernels`.

The metric is declared ([synthetic]), because an emulated machine gives no verdict on speed. What boots, and what is
found running, is real.
"""

import json
import shutil

import pytest

from pgstrata.app.places import find_machine_places
from pgstrata.app.vms import build_image
from pgstrata.errors import HostNotFitError
from pgstrata.vms.image import find_image
from program import pgstrata

_TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen", "depmod")
_MISSING = [tool for tool in _TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.soak("bisect-kernels"),
    pytest.mark.timeout(5400),
    pytest.mark.skipif(bool(_MISSING), reason=f"missing: {', '.join(_MISSING)}"),
]
IMAGE = "pgstrata-search"
TEXT = f"""
question = "From which kernel on is the declared value lower?"
threshold = "3 %"
blocks = 12
diagnosis = false
[synthetic]
kernel = "6.12"
change = "-9 %"
scatter = "0.5 %"
[factors]
kernel = ["OLD", "6.1", "6.12"]
[common]
host = "vm:{IMAGE}"
settings.shared_buffers = "64MB"
settings.max_wal_size = "64MB"
settings.effective_cache_size = "256MB"
[[cells]]
workload = "select-only"
scale = 1
clients = 1
rate = 20
run = "1s"
warmup = "0s"
"""


@pytest.fixture(scope="module")
def older():
    """The release of a second kernel of the series 6.1, beside the newest one."""
    cache = find_machine_places().cache
    try:
        kernels = find_image(cache, IMAGE).kernels
    except HostNotFitError:
        # the newest but one of the package sources is named by the newest: its packages stay for a while
        newest = build_image(IMAGE, suite="bookworm", kernels=("6.1",), note=print).kernels[0]
        number = int(newest.split("-")[1])
        former = f"6.1.0-{number - 1}"
        kernels = build_image(IMAGE, suite="bookworm", kernels=(former, "6.1", "6.12"), note=print).kernels
    return kernels[0]


def test_a_search_along_emulated_kernels_ends_at_the_declared_one_and_says_that_it_was_declared(tmp_path, older):
    (tmp_path / "kernels.toml").write_text(TEXT.replace("OLD", older))
    places = find_machine_places()
    own = {"PGSTRATA_CACHE": places.cache, "PGSTRATA_STATE": places.state, "PGSTRATA_DATA": places.data}
    words = ("bisect", "kernels.toml", "--study", "search")
    done = pgstrata(tmp_path, *words, "--json", environ=own, timeout=5000)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["outcome"], found["metric"]) == ("found", "synthetic")
    assert (found["found"]["before"]["level"], found["found"]["after"]["level"]) == ("6.1", "6.12")
    headers = [json.loads(path.read_text()) for path in tmp_path.glob("search/*/evidence/b*/*/*/run.json")]
    ran = {header["environment"]: header["facts"]["kernel"] for header in headers}
    assert ran.keys() == {f"kernel-{older}", "kernel-6.1", "kernel-6.12"}
    assert ran[f"kernel-{older}"] == older
    assert ran["kernel-6.1"].startswith("6.1.")
    assert ran["kernel-6.1"] != older
    assert ran["kernel-6.12"].startswith("6.12.")
    said = pgstrata(tmp_path, *words, environ=own, timeout=600).stdout
    assert "Synthetic value changed between 6.1 and 6.12" in said
    assert "lower (declared)" in said
