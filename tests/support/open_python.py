"""A Python with pgstrata that another user of this machine can start, whoever owns the one that the tests run by."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
_LEFT_OUT = shutil.ignore_patterns("test", "site-packages", "__pycache__", "*.a", "config-*")


def open_python(folder, switch):
    """The program, and the environment that belongs to it: this Python, or a copy of it and its packages in a folder.

    `switch` are the words that start a program as the other user.
    """
    if _starts(switch, sys.executable, {}):
        return sys.executable, {}
    program, environ = _copy_interpreter(folder / "python")
    paths = [Path(sysconfig.get_path("purelib")), SOURCE]
    for number, path in enumerate(paths):
        if subprocess.run((*switch, "ls", str(path)), capture_output=True, check=False).returncode:
            paths[number] = shutil.copytree(path, folder / "python" / f"packages-{number}")
    environ["PYTHONPATH"] = ":".join(map(str, paths))
    assert _starts(switch, program, environ), f"{program} does not start"
    return program, environ


def _starts(switch, program, environ):
    words = ("env", *(f"{name}={text}" for name, text in environ.items()), program, "-c", "import pgstrata.cli.main")
    return subprocess.run((*switch, *words), capture_output=True, cwd="/", check=False).returncode == 0


def _copy_interpreter(folder):
    """It finds its library beside itself."""
    program = folder / "bin" / "python3"
    program.parent.mkdir(parents=True)
    shutil.copy(Path(sys.executable).resolve(), program)
    library = folder / "lib" / Path(sysconfig.get_path("stdlib")).name
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=_LEFT_OUT)
    for shared in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython*.so*"):
        shutil.copy(shared, folder / "lib")
    return str(program), {"LD_LIBRARY_PATH": str(folder / "lib")}
