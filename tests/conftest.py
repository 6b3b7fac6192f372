"""What holds for all tests."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

import leftovers
from working_folder import make_folder

# The same examples on every machine, so that a change and nothing else decides whether a submission passes;
# --hypothesis-profile=explore looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def own_lock(tmp_path_factory):
    """Tests measure nothing that counts: they may run beside a pgstrata at work, and beside other tests."""
    before = os.environ.get("PGSTRATA_LOCK")
    os.environ["PGSTRATA_LOCK"] = str(tmp_path_factory.mktemp("lock") / "pgstrata.lock")
    yield
    if before is None:
        del os.environ["PGSTRATA_LOCK"]
    else:
        os.environ["PGSTRATA_LOCK"] = before


def pytest_addoption(parser):
    text = "which tests to run: those that bear company, the longest first, or the others"
    parser.addoption("--part", choices=("together", "alone"), help=text)
    parser.addoption("--soak", metavar="NAME", help="run the tests of this part of `make soak`, and no others")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """What killed tests left goes first; tests beside each other have folders where those are made and removed at once."""
    if not hasattr(config, "workerinput"):
        leftovers.sweep()
    if config.getoption("--part") == "together" and config.option.basetemp is None:
        config.option.basetemp = str(make_folder("pgs-"))
        config.add_cleanup(partial(shutil.rmtree, config.option.basetemp, ignore_errors=True))


def pytest_collection_modifyitems(config, items):
    """What changes the host or takes the time has the machine for itself; what is long runs in `make soak` only."""
    keep = partial(_is_asked_for, config.getoption("--part"), config.getoption("--soak"))
    config.hook.pytest_deselected(items=[item for item in items if not keep(item)])
    items[:] = [item for item in items if keep(item)]
    if config.getoption("--part") == "together":
        items.sort(key=lambda item: not any(map(item.get_closest_marker, ("slow", "server"))))


def _is_asked_for(part, soak, item):
    of = item.get_closest_marker
    marker = of("soak")
    alone = bool(of("alone") or (of("root") and not of("company")))
    return (marker.args[0] if marker else None) == soak and (part is None or alone == (part == "alone"))


def _changes_the_host(item):
    return item.get_closest_marker("root") and ("layers" in item.path.parts or item.path.name == "test_chaos.py")


def pytest_runtest_setup(item):
    """Root of a container is often root in name only: tests that change the host do not run there."""
    if _changes_the_host(item) and os.geteuid() == 0 and not _may_administer():
        pytest.skip("this root has no right to administer the host (CAP_SYS_ADMIN)")


def _may_administer():
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> 21 & 1)
