"""What holds for all tests."""

import os
import shutil
import signal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

import leftovers
from working_folder import make_folder

# The same examples on every machine, so that a change and nothing else decides whether a submission passes;
# --hypothesis-profile=explore looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=400)
settings.load_profile("same")

# Rooms whose tests look at this machine, its processes or what pgstrata keeps on it. Of other rooms, tests that need
# root or a server do.
MACHINE_ROOMS = {"cli", "hosts", "integration", "layers"}
# of these rooms, but only with tables and studies
READING = {"test_decide.py", "test_gate.py", "test_gate_in_ci.py"}


# Under nohup, programs that tests start would ignore the end of a session, too.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


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
    text = "tests that use this machine, that change it, that leave it alone, or that take its time"
    parser.addoption("--part", choices=("together", "host", "inside", "alone"), help=text)
    parser.addoption("--soak", metavar="NAME", help="run the tests of this part of `make soak`, and no others")
    parser.addoption(
        "--all-pages", action="store_true", help="look at the pages that only `make test-browser` shows, too"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """What killed tests left goes first; tests beside each other have folders where those are made and removed at once."""
    if not hasattr(config, "workerinput"):
        leftovers.sweep()
    if config.getoption("--part") in {"together", "inside"} and config.option.basetemp is None:
        config.option.basetemp = str(make_folder("pgs-"))
        config.add_cleanup(partial(shutil.rmtree, config.option.basetemp, ignore_errors=True))


def pytest_ignore_collect(collection_path, config):
    """Do not import files without a test of this part: each of up to nine processes would do it."""
    part = config.getoption("--part")
    if part is None or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    marked = partial(_is_marked, collection_path.read_text(encoding="utf-8"))
    at_machine = _is_of_a_machine_room(collection_path)
    wanted = {
        "together": at_machine or marked("server") or marked("company"),
        "host": marked("root"),
        "inside": not at_machine,
        "alone": marked("alone"),
    }
    return None if wanted[part] else True


def _is_marked(text, marker):
    return f"mark.{marker}" in text


def _is_of_a_machine_room(path):
    return path.relative_to(Path(__file__).parent).parts[0] in MACHINE_ROOMS and path.name not in READING


def pytest_collection_modifyitems(config, items):
    """Tests of a part, in an order that ends soon; what is long runs in `make soak` only."""
    part, soak = config.getoption("--part"), config.getoption("--soak")
    keep = partial(_is_asked_for, part, soak, all_pages=config.getoption("--all-pages"))
    config.hook.pytest_deselected(items=[item for item in items if not keep(item)])
    items[:] = [item for item in items if keep(item)]
    if part == "together":
        items.sort(key=lambda item: not any(map(item.get_closest_marker, ("slow", "server", "company"))))


def _is_asked_for(part, soak, item, *, all_pages):
    if not all_pages and any("all" in marker.args for marker in item.iter_markers("browser")):
        return False
    marker = item.get_closest_marker("soak")
    return (marker.args[0] if marker else None) == soak and part in {None, _part_of(item)}


def _part_of(item):
    if item.get_closest_marker("alone"):
        return "alone"
    if item.get_closest_marker("root") and not item.get_closest_marker("company"):
        return "host"
    using = any(map(item.get_closest_marker, ("server", "company")))
    return "together" if using or _is_of_a_machine_room(item.path) else "inside"


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


@pytest.fixture
def open_folder():
    """A folder of ours that every user may enter, as those of pytest are not; below no folder that others write to."""
    with TemporaryDirectory(prefix="pgstrata-open-", dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)
