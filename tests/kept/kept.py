"""Studies of former versions: unpacked, derived anew, and reduced to their findings.

An archive holds everything of a study but its catalogue, which `reparse` makes. `NAME.json` is what `show --json` finds
in it, without sentences: those may be reworded, findings may not change but for a reason given in README.md beside it.

    .venv/bin/python tests/kept/kept.py NAME…    writes the expectations anew, all of them without a name
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")))
SENTENCES = frozenset({"text", "remedy", "reason", "why", "changes", "doubt"})
DIGITS = 9


def unpack(name, folder):
    """The study in a folder of its own."""
    study = Path(folder) / "study"
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        # Debian 12's Python knows no filters; newer ones warn where none is given
        archive.extractall(study, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return study


def pgstrata(folder, *arguments):
    """The program, with a state of its own: no noise floor of this host has a say."""
    own = {"PGSTRATA_STATE": f"{folder}/state", "PGSTRATA_CACHE": f"{folder}/cache", "PGSTRATA_DATA": f"{folder}/data"}
    return subprocess.run(
        [sys.executable, "-m", "pgstrata", *map(str, arguments)],
        env={**os.environ, **own},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def digest(study):
    """SHA-256 of all evidence, names included."""
    total = hashlib.sha256()
    for path in sorted(Path(study, "evidence").rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(study)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def findings(value, key=""):
    """A JSON document without its sentences, figures rounded to what differs by more than the order of additions."""
    if isinstance(value, dict):
        explained = isinstance(value.get("why"), dict)
        return {
            name: findings(item, name)
            for name, item in sorted(value.items())
            if name not in SENTENCES or (name == "why" and explained)
        }
    if isinstance(value, list):
        return [findings(item, key) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def derive(name, folder):
    """What is found in a study after `reparse`: findings, the gate's exit code, and the digest of its evidence."""
    study = unpack(name, folder)
    before = digest(study)
    done = pgstrata(folder, "reparse", study)
    assert done.returncode == 0, done.stderr
    shown = pgstrata(folder, "show", study, "--json", "--pairs", "--why")
    assert shown.returncode == 0, shown.stderr
    assert digest(study) == before
    return {
        "evidence": before,
        "gate": pgstrata(folder, "gate", study).returncode,
        "show": findings(json.loads(shown.stdout)),
    }


def main(names):
    """Write the expectations of these studies."""
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps(derive(name, folder), indent=1, ensure_ascii=False, sort_keys=True)
        (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
