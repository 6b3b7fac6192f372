"""Studies as folders: implements ports.StudyRepository and ports.StoredStudy."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from pgstrata.model.plan import Plan
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.ports.studies import Derive, StudyHead
from pgstrata.store.evidence import list_runs, load_file, load_fingerprint_files
from pgstrata.store.load import load_study
from pgstrata.store.study import PLAN_FILE, StudyStore, is_begun, load_plan_file, reparse_study


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """The study in a folder."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def identity(self) -> str:
        try:
            return str(self.path.resolve())
        except (OSError, RuntimeError):
            # links that lead to each other: there is no study there
            return str(self.path.absolute())

    def begun(self) -> bool:
        return is_begun(self.path)

    def head(self) -> StudyHead:
        return load_plan_file(self.path)

    def committed(self) -> tuple[str, ...]:
        return list_runs(self.path)

    def load(
        self, *, metrics: Sequence[str] | None = None, series: bool | Collection[str] = False, sessions: bool = False
    ) -> Study:
        return load_study(self.path, metrics=metrics, series=series, sessions=sessions)

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        return load_fingerprint_files(self.path)

    def evidence(self, run: str, name: str) -> bytes:
        return load_file(self.path, run, name)

    def reparse(self, derive: Derive) -> int:
        return reparse_study(self.path, derive)

    def write(self, plan: Plan, version: str, derive: Derive) -> StudyStore:
        return StudyStore.open_or_create(self.path, plan, version, derive=derive)


@dataclass(frozen=True, slots=True)
class StudyFolders:
    """Studies below a folder, by default `studies` below the current one."""

    root: Path = Path("studies")

    def named(self, name: str) -> StudyFolder:
        return StudyFolder(self.root / name)

    def find_begun(self, stem: str) -> Sequence[StudyFolder]:
        return [StudyFolder(path.parent) for path in sorted(self.root.glob(f"{escape(stem)}*/{PLAN_FILE}"))]
