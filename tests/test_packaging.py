"""The wheel holds everything, and works on a machine without the repository."""

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from trove_classifiers import classifiers

from archives import START, Second, make_archive, session
from pgstrata import __version__
from pgstrata.workloads import builtin_workloads
from wheels import ROOT, build, contents, install, metadata, unpack

pytestmark = pytest.mark.timeout(240)

_spec = importlib.util.spec_from_file_location("kept", ROOT / "tests" / "kept" / "kept.py")
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)

EVERY_WORKLOAD = """
question = "?"
blocks = 8
[common]
server = "embedded"
[factors]
"settings.shared_buffers" = ["16MB", "64MB"]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What the sdist unpacks to."""
    folder = tmp_path_factory.mktemp("sdist")
    return unpack(build(ROOT, folder, "sdist"), folder / "sources")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return install(wheel, tmp_path_factory.mktemp("installed"))


def files_of_the_package():
    source = ROOT / "src"
    found = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(source)): path.read_bytes() for path in found}


def test_the_wheel_holds_each_file_of_the_package_and_nothing_else(wheel):
    here, there = files_of_the_package(), contents(wheel)
    assert {"pgstrata/py.typed", "pgstrata/report/blocks/templates/report.css"} <= set(here)
    page = {f"pgstrata-{__version__}.data/data/share/man/man1/pgstrata.1": (ROOT / "docs/man/pgstrata.1").read_bytes()}
    assert {name: text for name, text in there.items() if ".dist-info/" not in name} == here | page


def test_the_wheel_has_the_licence_and_one_program(wheel):
    there = contents(wheel)
    information = f"pgstrata-{__version__}.dist-info"
    assert there[f"{information}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    programs = there[f"{information}/entry_points.txt"].decode().split("\n")
    assert [line for line in programs if "=" in line] == ["pgstrata = pgstrata.__main__:main"]


def test_an_index_accepts_the_metadata(wheel):
    """Fields, licence expression, versions and classifiers are checked as the index of Python packages does."""
    found = Metadata.from_email(metadata(wheel), validate=True)
    assert str(found.version) == __version__
    assert set(found.classifiers) <= classifiers
    assert found.summary == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
    assert found.description.startswith("# pgstrata\n")


def test_a_wheel_built_from_the_sdist_is_the_same(sources, wheel, tmp_path):
    assert not (sources / ".git").exists()
    again = contents(build(sources, tmp_path, "wheel"))
    assert again == contents(wheel)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the history")
def test_the_sdist_holds_what_the_repository_holds(sources):
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    there = {str(path.relative_to(sources)) for path in sources.rglob("*") if path.is_file()}
    assert there == {name for name in listed if name and (ROOT / name).is_file()} | {"PKG-INFO"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the history")
def test_a_tag_on_this_commit_is_the_version():
    words = ["git", "tag", "--points-at", "HEAD", "--list", "v*"]
    tags = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(tags) <= {f"v{__version__}"}
    if tags:
        headings = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        assert __version__ in headings, "name the version in CHANGELOG.md"


def test_the_installed_package_is_not_the_repositorys(installed):
    there = Path(installed.ask("import pgstrata; print(json.dumps(pgstrata.__file__))"))
    assert there.is_relative_to(installed.environment)


def test_the_installed_program_states_its_version_and_its_commands(installed):
    done = installed.run("--version")
    assert (done.returncode, done.stdout) == (0, f"pgstrata {__version__}\n"), done.stderr
    done = installed.run("--help")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ +plan +Show what would be measured", done.stdout, re.MULTILINE)


def test_each_module_needs_only_what_the_wheel_requires(installed):
    """Nothing for developers is installed there, so that an import of it fails."""
    failed = installed.ask("""
import importlib, pkgutil, pgstrata
failed = []
for each in pkgutil.walk_packages(pgstrata.__path__, "pgstrata."):
    if each.name.startswith(("pgstrata.testing", "pgstrata.__main__")):
        continue
    try:
        importlib.import_module(each.name)
    except ImportError as error:
        failed.append(f"{each.name}: {error}")
print(json.dumps(failed))
""")
    assert failed == []
    assert installed.run("-c", "import pytest", program="python").returncode != 0


def test_each_workload_is_found_there(installed):
    found = installed.ask("""
from pgstrata.workloads import builtin_workloads
print(json.dumps(sorted(builtin_workloads())))
""")
    assert found == sorted(builtin_workloads())


def test_a_first_experiment_is_written_and_planned_there(installed):
    done = installed.run("init", "experiment.toml")
    assert done.returncode == 0, done.stderr
    done = installed.run("plan", "experiment.toml")
    assert done.returncode == 0, done.stderr
    assert "pg18: 18" in done.stdout


def test_workloads_with_data_of_their_own_are_planned_there(installed):
    names = ("analytic", "full-text", "insert-heavy", "simple-update", "star-join", "tpcc")
    cells = "".join(f'[[cells]]\nworkload = "{name}"\nscale = 1\nclients = 1\nrun = "5s"\n' for name in names)
    (installed.place / "every.toml").write_text(EVERY_WORKLOAD + cells)
    done = installed.run("plan", "every.toml")
    assert done.returncode == 0, done.stderr
    assert [name for name in names if name not in done.stdout] == []


def test_a_study_becomes_a_report_there(installed, tmp_path):
    study = kept.unpack("slices", tmp_path)
    for words in (("reparse", study), ("show", study), ("report", study, "--output", "report.html")):
        done = installed.run(*words)
        assert done.returncode == 0, done.stderr
    page = (installed.place / "report.html").read_text()
    assert all(part in page for part in ("<style>", "<svg", "</html>"))


def test_an_archive_is_shown_there(installed, tmp_path):
    make_archive(tmp_path / "archive", 300, lambda _: Second(sessions={session(): 2}), begin=START)
    done = installed.run("window", tmp_path / "archive", "--from", "16:20", "--to", "16:25")
    assert done.returncode == 0, done.stderr
    assert "load" in done.stdout.lower()


def test_a_citation_names_this_version_and_its_licence():
    text = (ROOT / "CITATION.cff").read_text()
    keys = dict(re.findall(r"^([a-z-]+): *(.*)$", text, re.MULTILINE))
    assert {"cff-version", "message", "title", "authors"} <= keys.keys(), "the format requires these"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (keys["title"], keys["version"], keys["license"]) == (project["name"], __version__, project["license"])


def test_no_address_is_named_before_there_is_one(wheel):
    """The project has no public address yet. When it has one, name it in all three places, and here."""
    files = (ROOT / "CITATION.cff").read_text() + (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"^ *(?:url|repository|repository-code|site_url|repo_url|edit_uri): *(.+)$", files, re.MULTILINE)
    found = Metadata.from_email(metadata(wheel), validate=True)
    assert {*named, *(found.project_urls or {}).values(), *filter(None, [found.home_page])} == set()
