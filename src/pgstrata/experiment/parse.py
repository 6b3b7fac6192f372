"""TOML text to `Experiment`, or everything that is wrong with it, at once.

What belongs here: the order in which the parts are read, and what concerns the experiment as a whole.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict

from pgstrata.experiment.cells import check_choice, read_cells
from pgstrata.experiment.compose import toml_value
from pgstrata.experiment.environments import Environments, read_environments
from pgstrata.experiment.findings import ENCODING, Findings, locate_strings
from pgstrata.experiment.own_data import check_hosts, notes_on_data
from pgstrata.experiment.prices import price_environments
from pgstrata.experiment.schema import ExperimentFile
from pgstrata.experiment.servers import mask_conninfo
from pgstrata.experiment.stacks import StackReader
from pgstrata.experiment.structure import read_structure
from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Allow, Cell, Experiment
from pgstrata.model.metrics import METRICS, SUSTAINED_RATE, SYNTHETIC, TPS
from pgstrata.model.own_data import DataFile
from pgstrata.model.secret import Secret
from pgstrata.model.thresholds import DEFAULT_THRESHOLD, own_threshold
from pgstrata.model.workload import Workload


def parse_experiment(  # noqa: PLR0913 - what a file does not say, each named
    text: str,
    source: str,
    *,
    read_file: Callable[[str], str],
    workloads: Mapping[str, Workload],
    cpus: int = 1,
    seed: int | None = None,
    budget: float | None = None,
    conninfo: Mapping[str, Secret] | None = None,
    lone: bool = False,
    drivers: Mapping[str, Capabilities] | None = None,
    look_at: Callable[[str], DataFile] | None = None,
    read_program: Callable[[str], str] | None = None,
) -> Experiment:
    """The experiment that a file describes.

    Args:
        text: the file.
        source: its name, for messages.
        read_file: text of a file that the experiment names, by its path as written; OSError if it cannot be read.
        workloads: the workloads that exist, by name.
        cpus: CPUs of the client's machine, for `threads = "auto"`.
        seed: instead of the file's.
        budget: seconds, instead of the file's.
        conninfo: complete connection strings by their masked form, where the text holds masked ones.
        lone: whether a single environment is enough, because what it is compared with comes from elsewhere.
        drivers: what each load generator can do, by key; one that is not there shares threads.
        look_at: size, kind and digest of a file with data, by its path as written; OSError if it cannot be read. None
            knows no files.
        read_program: as `read_file`, of files that will be executed; the same unless given.

    Raises:
        ExperimentError: with every problem that was found.
    """
    findings = Findings(text, source)
    file = read_structure(text, source, findings)
    looking = {} if look_at is None else {"look_at": look_at}
    reader = StackReader(
        findings=findings,
        read_file=read_file,
        conninfo=conninfo or {},
        read_program=read_program or read_file,
        **looking,
    )
    environments = read_environments(file, reader, lone=lone)
    baseline = next((each for each in environments.all if each.name == environments.baseline), None)
    cells, tiers = read_cells(file.cells, workloads, reader, cpus, drivers or {}, baseline)
    check_hosts(file.cells, environments.all, findings)
    _check_controls(file, findings)
    _check_options(environments, cells, workloads, findings)
    own = {
        each.name: table["price"]
        for each, table in zip(environments.all, file.environments, strict=False)
        if "price" in table
    }
    prices = price_environments(file.prices, own, environments.all, findings)
    findings.raise_if_any()
    metric = _choose_metric(file, cells, findings)
    findings.raise_if_any()
    threshold, notes = _read_threshold(file, metric)
    if file.synthetic is not None:
        notes = (*notes, f"metric = {metric}: its values are declared under [synthetic], not measured")
    return Experiment(
        question=mask_conninfo(file.question or _default_question(environments)),
        metric=metric,
        threshold=threshold,
        blocks=file.blocks,
        budget=file.budget if budget is None else budget,
        reset=file.reset,
        interleave=file.interleave,
        seed=file.seed if seed is None else seed,
        baseline=environments.baseline,
        environments=environments.all,
        cells=cells,
        factors=environments.factors,
        allow=Allow(**asdict(file.allow)),
        text=mask_text(text),
        notes=(*notes, *tiers, *notes_on_data(cells)),
        diagnosis=file.diagnosis,
        profile_cpu=file.profile_cpu,
        query_text=file.query_text,
        order=file.order,
        prices=prices,
        synthetic=file.synthetic,
    )


def _choose_metric(file: ExperimentFile, cells: tuple[Cell, ...], findings: Findings) -> str:
    """The primary metric: of cells with an objective the rate that is searched, which is no metric of other cells."""
    searched = [cell for cell in cells if cell.objective is not None]
    if searched and len(searched) < len(cells):
        other = next(cell for cell in cells if cell.objective is None)
        what = f"{other.identity} has no objective, other cells have one: they have no metric in common"
        findings.add(("cells",), what, "write two experiments")
    if not searched and file.metric == SUSTAINED_RATE.name:
        findings.add(("metric",), "no cell has an objective to keep", 'write objective = "p99 < 20ms" in [[cells]]')
    if searched and file.metric not in {TPS.name, SUSTAINED_RATE.name}:
        what = f"cells with an objective are compared by {SUSTAINED_RATE.name}, not {file.metric}"
        findings.add(("metric",), what, "leave metric out")
    if file.synthetic is not None or file.metric == SYNTHETIC.name:
        return _choose_synthetic(file, bool(searched), findings)
    return SUSTAINED_RATE.name if searched else file.metric


def _choose_synthetic(file: ExperimentFile, searched: bool, findings: Findings) -> str:
    """Declared values are the only ones of their experiment, so that nobody takes them for a speed."""
    if file.synthetic is None:
        remedy = 'add [synthetic] with kernel = "6.12" and change = "-9 %"'
        findings.add(("metric",), "the values of [synthetic] are missing", remedy)
    elif searched or file.metric not in {TPS.name, SYNTHETIC.name}:
        what = "with declared values there is no other metric and no objective"
        findings.add(("synthetic",), what, "leave metric and objective out, or take [synthetic] out")
    return SYNTHETIC.name


def _read_threshold(file: ExperimentFile, metric: str) -> tuple[float, tuple[str, ...]]:
    """The threshold with a note where the file gives none and the primary metric has one of its own."""
    own = own_threshold(metric)
    if file.threshold is not None or own == DEFAULT_THRESHOLD:
        return file.threshold or own, ()
    title = METRICS[metric].title
    return own, (f"threshold = {own * 100:g} %: the file gives none, and {title} has its own",)


def _check_controls(file: ExperimentFile, findings: Findings) -> None:
    for index, control in enumerate(file.controls):
        if control in file.controls[:index]:
            findings.add(("controls", index), f"the control {str(control)!r} is listed twice", "take one of them out")


def _check_options(
    environments: Environments, cells: tuple[Cell, ...], workloads: Mapping[str, Workload], findings: Findings
) -> None:
    """An option that no workload reads would be a factor without effect."""
    if not cells or any(cell.scripts for cell in cells):
        return
    names = dict.fromkeys(name for environment in environments.all for name in environment.options)
    builtin = [workloads[cell.workload] for cell in cells if cell.workload in workloads]
    known = {name: option for workload in builtin for name, option in workload.options.items()}
    for name in names:
        place = (_table(name, environments), "options", name)
        if name in known and known[name].copies:
            what = f"{name} decides which data there are, so it is no option of environments"
            findings.add(place, what, f"write options = {{ {name} = 2 }} in [[cells]]")
        if name != "setup_sql" and name not in known and len(builtin) == len(cells):
            what = f"no workload of this experiment has an option {name!r}"
            mine = f"they have {', '.join(sorted(known))}; " if known else ""
            findings.add(place, what, f"{mine}options become variables of your own scripts: add scripts")
    for environment in environments.all:
        for name, text in environment.options.items():
            for workload in {cell.workload: workloads.get(cell.workload) for cell in cells}.values():
                check_choice(workload, name, text, (_table(name, environments), "options", name), findings)


def _table(option: str, environments: Environments) -> str:
    return "factors" if f"options.{option}" in environments.factors else "common"


def _default_question(environments: Environments) -> str:
    names = [key.removeprefix("settings.").removeprefix("options.") for key in environments.factors]
    if not names:
        return "How much do two equal environments differ here?"
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"What does {listed} change?" if len(names) == 1 else f"What do {listed} change?"


def mask_text(text: str) -> str:
    """The text of an experiment file without the passwords of its connection strings, comments included."""
    if "dsn" not in text.lower() and "postgres" not in text.lower():
        return text
    content, place, parts = text.encode(*ENCODING), 0, list[str]()
    for token in locate_strings(text):
        written, value = content[token.start : token.end].decode(*ENCODING), mask_conninfo(token.value)
        parts += (
            _mask_comments(content[place : token.start].decode(*ENCODING)),
            written if value == token.value else toml_value(value),
        )
        place = token.end
    return "".join((*parts, _mask_comments(content[place:].decode(*ENCODING))))


def _mask_comments(between: str) -> str:
    """What stands between strings, where a # always begins a comment."""
    return re.sub(r"#[^\n]*", lambda comment: mask_conninfo(comment[0]), between)
