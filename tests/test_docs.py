"""The documentation keeps its promises: links lead somewhere, experiments plan, commands exist, references are fresh."""

import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import groupby, takewhile
from pathlib import Path

import pytest
import typer.cli
from parts import PARTS
from typer.main import get_command
from typer.testing import CliRunner

from pgstrata.app.watching.metrics import FAMILIES
from pgstrata.cli.main import app
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.experiment.compose import compose_try
from pgstrata.experiment.defaults import complete_experiment
from pgstrata.experiment.parse import parse_experiment
from pgstrata.experiment.schema import json_schema
from pgstrata.model.answer import Verdict
from pgstrata.model.courses import COURSES, EVENTS
from pgstrata.model.own_data import DataFile, DumpForm
from pgstrata.model.plan import HostCapacity
from pgstrata.plan import make_plan
from pgstrata.report.live.openmetrics import FamilyType
from pgstrata.workloads import builtin_workloads
from root_touches import programs_in_the_table

# By the program that starts them, by a path, or in a script.
NAMED_OTHERWISE = {"java", "cc", "mkfs", "umount", "wipefs", "blkid"}
ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
HOW_TO = "\n".join(page.read_text() for page in sorted((ROOT / "docs/how-to").glob("*.md")))
MANUAL = ("docs", "docs/how-to", "docs/reference")
LARGE = HostCapacity(memory=64 * 1024**3, cpus=16, free_disk=1024**4)

FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
ELSEWHERE = ("https://", "http://", "mailto:")


def identify(path):
    return str(path.relative_to(ROOT))


def blocks(kind):
    return [
        pytest.param(match["body"], id=f"{identify(page)}:{page.read_text()[: match.start()].count(chr(10)) + 1}")
        for page in PAGES
        for match in FENCE.finditer(page.read_text())
        if match["kind"] == kind
    ]


def anchors(text):
    """Headings as GitHub links to them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page):
    for match in LINK.finditer(FENCE.sub("", page.read_text())):
        target, _, anchor = match["target"].partition("#")
        if target.startswith(ELSEWHERE):
            continue
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), match["target"]
        assert linked.is_relative_to(ROOT), match["target"]
        if anchor:
            assert anchor in anchors(linked.read_text()), match["target"]


def a_dump(name):
    return DataFile(name=name, path=f"/{name}", digest="digest", bytes=1 << 30, form=DumpForm.CUSTOM)


@pytest.mark.parametrize("text", blocks("toml"))
def test_experiments_in_the_documentation_can_be_planned(text):
    assert "cells" in tomllib.loads(text), "show whole experiments, or mark the block differently"
    workloads = builtin_workloads()
    experiment = parse_experiment(
        text,
        "docs",
        read_file=lambda _: "SELECT 1;",
        read_program=lambda _: "scale = {1},\ntables = {1},\n-- pgsql\n",
        look_at=a_dump,
        workloads=workloads,
        cpus=16,
    )
    assert make_plan(
        complete_experiment(experiment, LARGE, workloads), workloads, LARGE, drivers=driver_capabilities()
    ).runs


def calls(line):
    """The words after `pgstrata` of each call of it in a line for a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for ends, words in groupby(lexer, lambda word: word in {"|", "||", "&&", ";", "&"}):
        if not ends:
            call = takewhile(lambda word: word not in {">", ">>", "<"}, (word for word in words if word != "nohup"))
            if next(call, "") == "pgstrata":
                yield list(call)


def commands():
    """Each call of pgstrata in console blocks, its words in a list."""
    for page in [*PAGES, *ROOT.glob("examples/**/*.md")]:
        for match in FENCE.finditer(page.read_text()):
            if match["kind"] == "ini":
                for line in re.findall(r"^ExecStart=/\S*/(pgstrata .*)$", match["body"], re.MULTILINE):
                    yield from (pytest.param(words, id=f"{identify(page)}: {line}") for words in calls(line))
            if match["kind"] != "console" or page.name == "command-line.md":
                continue
            for line in re.findall(r"^\$ (.*\bpgstrata .*)$", match["body"], re.MULTILINE):
                yield from (pytest.param(words, id=f"{identify(page)}: {line}") for words in calls(line))


def command_of(words):
    """The command that these words begin with, and the rest of them."""
    command, rest = get_command(app), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def test_calls_in_a_line_for_a_shell_are_found():
    assert list(calls("pgstrata show a --format text > b.txt  # sends 'it'")) == [["show", "a", "--format", "text"]]
    assert list(calls("nohup pgstrata watch 'host=a b=c' --plain &")) == [["watch", "host=a b=c", "--plain"]]
    assert list(calls("it | pgstrata decide - | more; pgstrata list")) == [["decide", "-"], ["list"]]


@pytest.mark.parametrize("words", list(commands()))
def test_commands_in_the_documentation_are_accepted(words):
    if words == ["--install-completion"]:  # it would be done
        return
    command, rest = command_of(words)
    assert not getattr(command, "commands", {}), f"{rest[0]} is no command"
    command.make_context(words[0], rest)  # missing arguments, unknown options and wrong values raise


def mentions():
    """Each command with options or arguments that a sentence quotes; values may be left out or stand for others."""
    for page in [*PAGES, *ROOT.glob("examples/**/*.md")]:
        for text in sorted(set(re.findall(r"`pgstrata ([^`]+)`", page.read_text()))):
            yield pytest.param(text, id=f"{identify(page)}: {text}")


@pytest.mark.parametrize("text", list(mentions()))
def test_commands_that_sentences_mention_exist_with_their_options(text):
    command, rest = command_of(text.split())
    assert not getattr(command, "commands", {}) or not rest or rest[0][0] == "-", f"{rest[0]} is no command"
    known = {option for param in command.params for option in param.opts}
    assert {word.partition("=")[0] for word in rest if re.match(r"-{1,2}[a-z]", word)} <= known


def test_targets_benchmarks_and_parts_of_soak_that_pages_name_exist():
    text = "\n".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    benchmarks = re.findall(r'^    "([a-z-]+)": measure_', (ROOT / "bench/__main__.py").read_text(), re.MULTILINE)
    named = {name for names in re.findall(r"\bONLY=([a-z,-]+)", text) for name in names.split(",")}
    assert len(named) > 20
    assert named <= set(benchmarks)
    assert set(re.findall(r"^\$ make ([a-z-]+)", text, re.MULTILINE)) <= set(targets)
    assert set(re.findall(r"\bmake soak ARGS=([a-z-]+)", text)) <= PARTS.keys()


def questions():
    """The assignments of each `pgstrata try` in the documentation."""
    words = [param.values[0] for param in commands()]
    return [[word for word in line[1:] if "=" in word] for line in words if line[:1] == ["try"]]


@pytest.mark.parametrize("assignments", questions(), ids=" ".join)
def test_questions_in_one_line_become_experiments(assignments):
    composed = compose_try(assignments, cpus=4)
    workloads = builtin_workloads()
    experiment = parse_experiment(composed.text, "docs", read_file=str, workloads=workloads, cpus=4)
    assert len(experiment.environments) > 1


def test_every_command_is_explained_in_the_tutorial_or_the_how_to():
    text = (ROOT / "docs/tutorial.md").read_text() + HOW_TO
    group = get_command(app)
    names = [name for name in group.commands if name != "servers"]
    names += [f"servers {name}" for name in group.commands["servers"].commands]
    assert [name for name in names if f"pgstrata {name}" not in text] == []


def test_the_reference_of_the_command_line_is_fresh(tmp_path):
    target = tmp_path / "command-line.md"
    words = ["pgstrata.cli.main", "utils", "docs", "--name", "pgstrata", "--output", str(target)]
    done = CliRunner().invoke(typer.cli.app, words)
    assert done.exit_code == 0, done.output
    assert (ROOT / "docs/reference/command-line.md").read_text() == target.read_text(), "run `make docs`"


def test_the_reference_of_the_experiment_file_is_fresh():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts/reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    kept = (ROOT / "docs/reference/experiment.md").read_text()
    assert kept == reference.render_reference(), "run `.venv/bin/python scripts/reference.py`"


def test_the_reference_of_workloads_is_fresh():
    spec = importlib.util.spec_from_file_location("workloads", ROOT / "scripts/workloads.py")
    workloads = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(workloads)
    kept = (ROOT / "docs/reference/workloads.md").read_text()
    assert kept == workloads.render_workloads(), "run `.venv/bin/python scripts/workloads.py`"


def test_the_reference_of_metrics_is_fresh():
    spec = importlib.util.spec_from_file_location("metrics", ROOT / "scripts/metrics.py")
    metrics = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(metrics)
    kept = (ROOT / "docs/reference/metrics.md").read_text()
    assert kept == metrics.render_metrics_reference(), "run `.venv/bin/python scripts/metrics.py`"


def load_man():
    spec = importlib.util.spec_from_file_location("man", ROOT / "scripts/man.py")
    man = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(man)
    return man


def test_the_manual_page_is_fresh():
    kept = (ROOT / "docs/man/pgstrata.1").read_text()
    assert kept == load_man().render_man(), "run `.venv/bin/python scripts/man.py`"


def test_the_manual_page_has_every_command_and_can_be_read():
    text = (ROOT / "docs/man/pgstrata.1").read_text()
    for name in get_command(app).commands:
        assert f'\n.SS "pgstrata {name}' in text
    assert not load_man()._text(".so /etc/passwd").startswith(".")
    assert load_man()._text(r"a\n-b `try`") == r"a\en\-b \fBtry\fR"
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-Tutf8", "-k", "-ww", "-z"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_verdict_has_a_fresh_picture_in_the_concepts():
    spec = importlib.util.spec_from_file_location("verdicts", ROOT / "scripts/verdicts.py")
    verdicts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(verdicts)
    text = (ROOT / "docs/concepts.md").read_text()
    assert set(verdicts.PICTURES) == set(Verdict)
    for verdict, picture in verdicts.PICTURES.items():
        kept = (ROOT / f"docs/verdicts/{verdict}.svg").read_text()
        assert kept == verdicts.draw(picture), "run `.venv/bin/python scripts/verdicts.py`"
        assert f"](verdicts/{verdict}.svg)" in text


def expressions_of(dashboard):
    """What the dashboard asks Prometheus."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])
    for variable in dashboard["templating"]["list"]:
        yield variable.get("definition", "")


METRIC = re.compile(r"\bpgstrata_\w+")


def test_the_dashboard_asks_for_metrics_that_there_are():
    dashboard = json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())
    listed = set(re.findall(r"^\| `(pgstrata_\w+)` \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE))
    assert listed == {family.name for family in FAMILIES}
    asked = {name for expression in expressions_of(dashboard) for name in METRIC.findall(expression)}
    assert asked == listed - {"pgstrata_incident_begin_seconds"}


def test_labels_in_the_dashboard_and_in_the_documentation_have_values_that_there_are():
    texts = [
        *expressions_of(json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())),
        (ROOT / "docs/reference/metrics.md").read_text(),
        HOW_TO,
    ]
    by_name = {family.name: family for family in FAMILIES}
    found = [match for text in texts for match in re.finditer(r"(pgstrata_\w+)\{([^}]*)\}", text)]
    assert found
    for match in found:
        family = by_name[match[1]]
        for label, value in re.findall(r'(\w+)="([^"]*)"', match[2]):
            assert label == "instance" or (label == family.label and value in family.values), match[0]


def test_only_counters_are_taken_as_rates():
    texts = [
        *expressions_of(json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())),
        (ROOT / "docs/reference/metrics.md").read_text(),
        HOW_TO,
    ]
    counters = {family.name for family in FAMILIES if family.type is FamilyType.COUNTER}
    assert {name for text in texts for name in re.findall(r"(?:rate|increase)\((pgstrata_\w+)", text)} <= counters
    for expression in texts[:-2]:
        assert expression.count("_total") == len(re.findall(r"(?:rate|increase)\(pgstrata_\w+_total", expression))


def test_an_import_of_the_dashboard_asks_only_for_the_data_source():
    dashboard = json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())
    assert dashboard["uid"]
    assert dashboard["title"]
    assert isinstance(dashboard["schemaVersion"], int)
    assert not {"id", "__inputs", "__requires"} & dashboard.keys(), "what only an exported one has"
    variables = dashboard["templating"]["list"]
    assert [each["type"] for each in variables] == ["datasource", "query"]
    assert variables[0]["query"] == "prometheus"
    asking = [*variables[1:], *dashboard["annotations"]["list"], *dashboard["panels"]]
    asking += [target for panel in dashboard["panels"] for target in panel["targets"]]
    assert {json.dumps(each["datasource"]) for each in asking} == {'{"type": "prometheus", "uid": "${datasource}"}'}
    for each in variables:
        assert {"text", "value"} <= each.get("current", {"text": "", "value": ""}).keys()


def test_panels_of_the_dashboard_do_not_overlap():
    panels = json.loads((ROOT / "docs/grafana/pgstrata.json").read_text())["panels"]
    cells = []
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= 24
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells += [(x, y) for x in columns for y in rows]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_architecture_has_the_order_of_rooms_that_is_checked():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (drawn,) = (match["body"] for match in FENCE.finditer(text) if match["body"].startswith("cli"))
    assert [line.split(" · ") for line in drawn.splitlines()] == [line.split(" | ") for line in layers]
    table = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text[text.index("| room |") :], re.MULTILINE)
    assert re.findall(r"\w+", " ".join(table)) == re.findall(r"\w+", drawn)


def test_modules_that_the_architecture_names_exist():
    package = ROOT / "src/pgstrata"
    rooms = {path.stem for path in package.iterdir()} - {"__init__"}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = {name for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", text) if name.partition(".")[0] in rooms}
    assert len(named) > 30
    for name in named:
        place = package / name.replace(".", "/")
        module, _, last = name.rpartition(".")
        found = place.is_dir() or place.with_suffix(".py").is_file()
        assert found or hasattr(importlib.import_module(f"pgstrata.{module}"), last), name
    assert [name for name in re.findall(r"`(\w+/\w+\.py)`", text) if not (package / name).is_file()] == []


def test_the_json_schema_is_fresh():
    kept = (ROOT / "docs/reference/experiment.schema.json").read_text()
    assert kept == json_schema(), "run `.venv/bin/python -m pgstrata.experiment.schema`"


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_pages_speak_of_the_product_only(page):
    text = page.read_text()
    assert not re.search(r"/root/|/home/(?!\w+/\.)|/tmp/(?!pgstrata-)", text)


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_every_page_of_the_documentation_can_be_reached_from_the_readme(page):
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        here = waiting.pop()
        if here in reached or here.suffix != ".md" or not here.exists():
            continue
        reached.add(here)
        targets = (match["target"].partition("#")[0] for match in LINK.finditer(here.read_text()))
        waiting += [(here.parent / target).resolve() for target in targets if not target.startswith(ELSEWHERE)]
    assert page in reached


def test_all_series_of_a_run_are_explained():
    text = (ROOT / "docs" / "reference" / "evidence.md").read_text()
    assert not [each for each in COURSES.values() if f"| `{each.name}` | {each.title} | {each.unit} |" not in text]
    assert not [each for each in EVENTS.values() if f"| `{each.name}` | {each.title} |" not in text]


def test_what_is_run_as_root_and_what_is_not_stands_in_one_row_each():
    """Those that fetch, and those that need no privilege; what a whole run starts is traced in test_root_touches."""
    root, servers = programs_in_the_table("root"), programs_in_the_table("the servers' user")
    assert root >= {"pip", "mvn", "java", "apt-get", "dpkg", "mkfs", "mount", "losetup"}
    assert servers >= {
        "initdb",
        "postgres",
        "pgbench",
        "psql",
        "pg_test_fsync",
        "pg_test_timing",
        "perf",
        "make",
        "tar",
    }
    assert not root & servers
    code = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    of_builds = {"configure"}
    assert {name for name in root | servers if f'"{name}' not in code and name not in of_builds} <= NAMED_OTHERWISE


def test_the_site_has_each_page_of_the_manual_in_its_navigation():
    named = re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert [name for name in named if not (ROOT / name).exists()] == []
    pages = {str(path.relative_to(ROOT)) for folder in MANUAL for path in (ROOT / folder).glob("*.md")}
    assert pages <= set(named)


def test_pages_of_the_how_to_are_short_and_listed_on_its_first_page():
    pages = [page for page in (ROOT / "docs/how-to").glob("*.md") if page.name != "README.md"]
    assert len(pages) > 10
    assert [page.name for page in pages if len(page.read_text().splitlines()) > 300] == []
    index = (ROOT / "docs/how-to/README.md").read_text()
    assert [page.name for page in pages if f"({page.name})" not in index] == []


def test_no_page_has_marks_of_an_unfinished_merge():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]
    assert len(pages) > 40
    marks = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)
    assert not [page.relative_to(ROOT) for page in pages if marks.search(page.read_text())]
