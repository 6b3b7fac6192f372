"""`pgstrata serve` as a program: what it prints, a real report, and how it ends."""

import http.client
import os
import re
import signal
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest

from archives import Second, make_archive, session
from program import SMALL, pgstrata
from stored import write_study


@contextmanager
def started(place, *arguments):
    command = [sys.executable, "-m", "pgstrata", "serve", *arguments]
    environ = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=place, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(host, path, **headers):
    with closing(http.client.HTTPConnection(host, timeout=120)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()


def test_reports_and_archives_are_shown_as_the_commands_write_them_until_it_is_interrupted(tmp_path):
    write_study(tmp_path, SMALL.format(blocks=2).replace('"?"', '"Are both equal?"'), lambda *_: {"tps": 1000.0})
    make_archive(tmp_path / "prod", 120, lambda _: Second({session("77"): 1}))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "plan.json").write_text("{")
    with started(tmp_path.parent, tmp_path.name) as process:
        url = process.stdout.readline().strip()
        host, first = re.fullmatch(r"http://(127\.0\.0\.1:\d+)(/\?token=[\w-]{43})", url).groups()
        assert process.stderr.readline().startswith("open this address in your browser: it works once")
        entered, _ = ask(host, first)
        cookie, base = entered.headers["Set-Cookie"].partition(";")[0], entered.headers["Location"]
        _, listed = ask(host, base, Cookie=cookie)
        pages = dict(re.findall(r'href="([^"]*)">[^<]*</a><br><span class="soft">(\w+)', listed))
        texts = {name: ask(host, address, Cookie=cookie)[1] for address, name in pages.items()}
        assert "<h1>Are both equal?</h1>" in texts["study"]
        assert "<svg" in texts["study"]
        assert "PostgreSQL 18.0" in texts["prod"]
        assert "<svg" in texts["prod"]
        assert "the plan of the study is damaged" in texts["broken"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == "ended\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "0.0.0.0:0"), "reach it through `ssh -L PORT:127.0.0.1:PORT`"),
        (("--listen", "9790"), "is not an address to listen at"),
        (("nowhere",), "there is no such folder"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path, arguments, said):
    done = pgstrata(tmp_path, "serve", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
