"""Wheel and sdist of this checkout, and an environment in which nothing but the wheel and what it requires is installed."""

import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def build(source, target, kind):
    """The file of that kind, `wheel` or `sdist`. The build backend is the locked one, and no network is used."""
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(target), "--target", kind]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (file,) = target.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[kind])
    return file


def contents(file):
    """What lies in a wheel, by name."""
    with zipfile.ZipFile(file) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def metadata(file):
    """The text that an index shows of a wheel."""
    return next(text for name, text in contents(file).items() if name.endswith(".dist-info/METADATA"))


def unpack(file, folder):
    """The folder of the sources of an sdist."""
    with tarfile.open(file) as archive:
        # Debian 12's Python knows no filters; newer ones warn where none is given
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (sources,) = folder.iterdir()
    return sources


def required(lines):
    """Names of all distributions that these requirements lead to, their own requirements included, without extras."""
    found, waiting = set(), [Requirement(line) for line in lines]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        assert requirement.specifier.contains(distribution(name).version, prereleases=True), requirement
        found.add(name)
        waiting += [Requirement(line) for line in distribution(name).requires or ()]
    return found


@dataclass(frozen=True)
class Installed:
    """An environment with a wheel in it, and a folder in which nothing of the repository is."""

    environment: Path
    place: Path

    def run(self, *words, program="pgstrata"):
        """A program of the environment, ended; it inherits neither variables nor the working folder."""
        own = {"HOME": str(self.place), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        own |= {f"PGSTRATA_{name}": str(self.place / name.lower()) for name in ("CACHE", "STATE", "DATA", "LOCK")}
        argv = [str(self.environment / "bin" / program), *map(str, words)]
        return subprocess.run(argv, cwd=self.place, env=own, capture_output=True, text=True, timeout=120)

    def ask(self, code):
        """What a piece of Python prints there, from JSON."""
        done = self.run("-c", f"import json\n{code}", program="python")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def install(wheel, folder):
    """The wheel in an environment of its own, as pip unpacks it; what it requires is linked, and nothing else is there."""
    environment, place = folder / "environment", folder / "place"
    place.mkdir(parents=True)
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    words = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (packages,) = environment.glob("lib/python*/site-packages")
    for name in required(message_from_bytes(metadata(wheel)).get_all("Requires-Dist")):
        _link(distribution(name), packages)
    return Installed(environment, place)


def _link(dist, packages):
    """The packages and modules of a distribution, without its programs."""
    for top in {file.parts[0] for file in dist.files} - {"..", "__pycache__"}:
        if not (packages / top).exists():
            (packages / top).symlink_to(dist.locate_file(top))
