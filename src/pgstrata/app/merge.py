"""Merges studies of several machines, boots or days, and loads the results of merged studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pgstrata.app.bundle import derive_folder
from pgstrata.app.new_files import name_after
from pgstrata.app.opened import open_study
from pgstrata.compare.merged import find_unlike, merge_parts
from pgstrata.errors import UsageError
from pgstrata.model.merged import HOST, MergedAnswer, MergedPart
from pgstrata.model.metrics import COMPARED_SERIES, ROUND_TPS
from pgstrata.model.study import Study
from pgstrata.store.bundles.anonymous import STAND_IN
from pgstrata.store.bundles.manifest import check_name
from pgstrata.store.merged import MOST_PARTS, PARTS, load_merged_head, write_merged
from pgstrata.store.repository import StudyFolder

_TYPE = ("host.model", "host.cpu", "host.cpus")
_KB_PER_GB = 1024 * 1024


def merge_studies(studies: Sequence[str], target: Path, factor: str) -> MergedAnswer:
    """Make one study of several.

    Args:
        studies: folders or bundles, each as PATH or NAME=PATH.
        target: path of a new folder.
        factor: how they differ: host, boot, day or a word of the user's.

    Raises:
        UsageError: there are fewer than two, two have the same name, they ask different questions or share runs, or
            two of different hosts were measured in one boot.
    """
    named = _name(studies)
    with ExitStack() as stack:
        opened = {name: stack.enter_context(open_study(path)) for name, path in named.items()}
        for study in opened.values():
            study.head()
        if factor == HOST:
            _refuse_one_boot(opened)
        write_merged(target, factor, {name: each.path for name, each in opened.items()}, derive_folder, load_merged)
    return load_merged(target)


def load_merged(folder: Path) -> MergedAnswer:
    """Load the results of a merged study; UsageError if its parts do not ask the same question."""
    head = load_merged_head(folder)
    parts = tuple(_load(name, StudyFolder(folder / PARTS / name)) for name in head.parts)
    if unlike := find_unlike(parts):
        both = f"{unlike.first} and {unlike.other}"
        why = f"do not have the same {unlike.what}" if unlike.what else f"have the same runs, such as {unlike.run}"
        raise UsageError(
            f"these studies cannot be merged: {both} {why}",
            remedy="merge studies of the same experiment file, each measured separately: pgstrata run FILE on every "
            "machine",
        )
    return merge_parts(folder.resolve().name, head.factor, parts)


def _load(name: str, stored: StudyFolder) -> MergedPart:
    study = stored.load(metrics=(ROUND_TPS,), series=COMPARED_SERIES)
    return MergedPart(name=name, study=study, kind=_say_type(study))


def _say_type(study: Study) -> str:
    """Model, CPU, number of CPUs and memory of the machine with the servers; empty where they are not known."""
    baseline = study.environments.get(study.plan.experiment.baseline)
    facts = (baseline or study.host).facts
    memory = facts.get("host.memory", "").partition(" ")[0]
    if "host.cpus" not in facts or not memory.isdecimal():
        return ""
    known = [facts[name] for name in _TYPE[:2] if name in facts]
    return ", ".join((*known, f"{facts['host.cpus']} CPUs", f"{int(memory) / _KB_PER_GB:.0f} GB"))


def _name(studies: Sequence[str]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for text in studies:
        name, equals, path = text.partition("=")
        place = Path(path) if equals and not Path(text).exists() else Path(text)
        if place == Path(text):
            own = name_after(place)
            name = own.partition(".")[0] if place.is_file() else own
        try:
            check_name(name)
        except ValueError:
            remedy = "give the part a plain name: NAME=STUDY"
            raise UsageError(f"{name!r:.80} cannot be the name of a part", where=text, remedy=remedy) from None
        if name in named:
            raise UsageError(f"two studies are called {name}", where=text, remedy="write NAME=STUDY for each")
        named[name] = place
    if len(named) < 2:  # noqa: PLR2004 - one has nothing to be merged with
        raise UsageError("merging needs two studies or more, and one was given", remedy="name another study")
    if len(named) > MOST_PARTS:
        what = f"{len(named)} studies are too many: at most {MOST_PARTS} can be merged"
        raise UsageError(what, remedy="merge fewer of them")
    return named


def _refuse_one_boot(opened: Mapping[str, StudyFolder]) -> None:
    """UsageError if two studies were measured in the same boot, which means on the same machine.

    Nothing is known of anonymous bundles, in which a stand-in is in the place of the id of the boot.
    """
    boots: dict[bytes, str] = {}
    for name, study in opened.items():
        runs = study.committed()
        boot = study.evidence(runs[0], "host.kernel.txt").partition(b"\n")[0].strip() if runs else b""
        known = boot and not boot.startswith(STAND_IN.encode())
        if known and (other := boots.setdefault(boot, name)) != name:
            raise UsageError(
                f"{other} and {name} were measured in one boot of one machine, so they are not two hosts",
                where="--factor",
                remedy="say how they differ, such as --factor day",
            )
