"""The user's browser on this machine: which one, and starting it with a page; by its arguments, never by a shell."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_SOON: Final = 5.0
"""Seconds after which a program that has not ended has opened the page, and stays beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Browsers:
    """Commands to try in order, each a list of words.

    `terminal`: they get the terminal until they end, as text browsers need it. Where there are no commands, `why` says
    the reason.
    """

    commands: tuple[tuple[str, ...], ...] = ()
    terminal: bool = False
    why: str = ""


def choose_browsers(
    page: str, environ: Mapping[str, str], *, which: Callable[[str], str | None], root: bool, mac: bool
) -> Browsers:
    """How a page is opened here.

    Args:
        page: its address (file:///…).
        environ: of this process. `BROWSER` is a list of commands, separated by colons, in which %s stands for the page,
            as Python's `webbrowser` and xdg-open read it.
        which: where a program is, None if there is none.
        root: whether this process is root's, whose browser strangers' pages are not for.
        mac: whether this is macOS.
    """
    if named := environ.get("BROWSER", ""):
        return Browsers(commands=tuple(_read_commands(named, page)), terminal=True)
    if root:
        return Browsers(why="no browser is started as root; open it as yourself")
    if mac:
        return Browsers(commands=(("open", page),))
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return Browsers(why="there is no display here")
    if which("xdg-open") is None:
        return Browsers(why="xdg-open is not installed; set BROWSER to the command of your browser")
    return Browsers(commands=(("xdg-open", page),))


def _read_commands(text: str, page: str) -> list[tuple[str, ...]]:
    found = []
    for part in filter(None, text.split(":")):
        try:
            words = shlex.split(part)
        except ValueError:
            # a quotation mark without its end: the name as it stands
            words = [part]
        if words:
            given = [word.replace("%s", page) for word in words]
            found.append(tuple(given if given != words else [*words, page]))
    return found


def start_browser(browsers: Browsers) -> str:
    """Start the first that can be started; why none could, empty if one did."""
    why = browsers.why or "BROWSER names no command"
    for command in browsers.commands:
        try:
            code = _run_here(command) if browsers.terminal else _run_beside(command)
        except OSError as error:
            why = f"{command[0]} cannot be started: {error.strerror}"
            continue
        if code == 0:
            return ""
        why = f"{command[0]} ended with exit code {code}"
    return why


def _run_here(command: tuple[str, ...]) -> int:
    return subprocess.run(command, check=False).returncode


def _run_beside(command: tuple[str, ...]) -> int:
    """Its exit code; 0 if it goes on. It outlives this process, and its messages are not for this terminal."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)
    try:
        return process.wait(_SOON)
    except subprocess.TimeoutExpired:
        return 0
