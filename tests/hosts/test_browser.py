"""The user's browser: which one is taken, and that no shell sees the name of a page."""

import shutil

import pytest

from pgstrata.hosts.browser import Browsers, choose_browsers, start_browser

PAGE = "file:///tmp/a%20%24%28x%29.html"


def choose(environ, *, root=False, mac=False, which=lambda name: f"/usr/bin/{name}"):
    return choose_browsers(PAGE, environ, which=which, root=root, mac=mac)


def test_the_browser_that_is_named_comes_first_with_the_page_as_one_word():
    found = choose({"BROWSER": "firefox --new-window %s:w3m -T 'a b'", "DISPLAY": ":0"}, root=True)
    assert found.commands == (("firefox", "--new-window", PAGE), ("w3m", "-T", "a b", PAGE))
    assert found.terminal


@pytest.mark.parametrize("name", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_on_a_desktop_it_is_that_of_the_desktop(name):
    assert choose({name: "0"}) == Browsers(commands=(("xdg-open", PAGE),))
    assert choose({}, mac=True).commands == (("open", PAGE),)


def test_where_there_is_none_the_reason_is_said():
    assert "no display" in choose({}).why
    assert "no display" in choose({"DISPLAY": ""}).why
    assert "BROWSER" in choose({"DISPLAY": ":0"}, which=lambda _: None).why
    assert "root" in choose({"DISPLAY": ":0"}, root=True).why


def test_a_browser_that_is_not_there_makes_room_for_the_next(tmp_path):
    script = tmp_path / "browse"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/given\n')
    script.chmod(0o755)
    found = choose({"BROWSER": f"{tmp_path}/missing:{script} a"})
    assert start_browser(found) == ""
    assert (tmp_path / "given").read_text() == f"a\n{PAGE}\n"


def test_why_none_could_be_started_is_said(tmp_path):
    assert "cannot be started: No such file" in start_browser(choose({"BROWSER": f"{tmp_path}/missing"}))
    false = shutil.which("false")
    assert start_browser(choose({"BROWSER": false})) == f"{false} ended with exit code 1"
    assert start_browser(Browsers(commands=((false,),))) == f"{false} ended with exit code 1"
    assert start_browser(choose({"BROWSER": ":"})) == "BROWSER names no command"
    assert start_browser(choose({})) == "there is no display here"
