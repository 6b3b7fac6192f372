"""`pgstrata serve`: who may read, what is shown, and that nobody and nothing holds it up."""

import http.client
import re
import shutil
import socket
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

import pytest

import chromium
from archives import START, Second, make_archive, session
from pgstrata.app.answer import load_answer
from pgstrata.app.explain import load_profile
from pgstrata.app.httpd.listen import parse_listen
from pgstrata.app.serving import answers, events, service
from pgstrata.app.serving.answers import read_headline
from pgstrata.app.serving.child import BusyError, Children
from pgstrata.app.serving.rendering import Renderer, View
from pgstrata.app.serving.service import MOST_REQUESTS, Service
from pgstrata.app.serving.shelf import Shelf
from pgstrata.app.serving.views import Shown, make_view
from pgstrata.errors import UsageError
from pgstrata.model.listing import Listed, ListedKind, ListedState
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter
from pgstrata.store.repository import StudyFolder
from pgstrata.store.study import StudyStore
from stored import ask_reads, write_study

QUESTION = ask_reads("16", "17", blocks=2, question="Is 17 <b>faster</b>?")
PAGE = (
    '<!doctype html>\n<meta http-equiv="Content-Security-Policy" content="default-src x">\n<body>\nmade by {} &amp;\n'
)
WRITER = f"import sys; sys.argv[1] == 'list' or open(sys.argv[-1], 'w').write({PAGE!r}.format(sys.argv[1]))"
"""Stands for pgstrata: writes a page to the file that is the last argument; answers are not found."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("serve")
    (place / "first").mkdir()
    write_study(place / "first", QUESTION, lambda *_: {"tps": 1000.0})
    make_archive(place / "prod", 120, lambda _: Second({session("77"): 1}))
    (place / "broken").mkdir()
    (place / "broken" / "plan.json").write_text("{")
    return place


def program(text):
    return (sys.executable, "-c", text)


@contextmanager
def serving(place, text=WRITER, seconds=60.0):
    served = Service(place, parse_listen("127.0.0.1:0", anywhere=False), Children(program(text), seconds))
    try:
        yield served
    finally:
        served.close()


@pytest.fixture(scope="module")
def served(place):
    with serving(place) as found:
        yield Browser(found).enter()


@dataclass
class Browser:
    """Asks as a browser does; it keeps a cookie."""

    served: Service
    base: str = ""
    cookie: str = ""
    links: dict = field(default_factory=dict)

    @property
    def port(self):
        return int(self.served.url.split("/")[2].rpartition(":")[2])

    def ask(self, path, method="GET", **headers):
        kept = {"Cookie": self.cookie} if self.cookie else {}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, headers=kept | headers)
            answer = connection.getresponse()
            return answer, answer.read().decode()

    def first(self):
        return "/" + self.served.url.split("/", 3)[3]

    def enter(self):
        answer, _ = self.ask(self.first())
        assert answer.status == 303
        self.base, self.cookie = answer.headers["Location"], answer.headers["Set-Cookie"].partition(";")[0]
        return self

    def page_of(self, name):
        """The address of the first page of what lies in a folder."""
        _, text = self.ask(self.base)
        return re.search(rf'href="([^"]*)">[^<]*</a><br><span class="soft">{name}', text)[1]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


def test_the_token_is_exchanged_once_for_a_cookie_of_a_path_that_nobody_can_guess(place):
    with serving(place) as found:
        browser = Browser(found)
        first = browser.first()
        assert len(first.partition("=")[2]) >= 43, "256 bits"
        answer, text = browser.ask(first)
        assert (answer.status, text) == (303, "")
        base = answer.headers["Location"]
        name, *attributes = answer.headers["Set-Cookie"].split("; ")
        assert set(attributes) == {f"Path={base}", "HttpOnly", "SameSite=Strict"}
        assert len(base) >= 43
        assert "token" not in base
        assert browser.ask(first)[0].status == 403, "it is spent"
        assert browser.ask(base)[0].status == 403
        assert browser.ask(base, Cookie=name)[0].status == 200
        assert name.partition("=")[2] not in found.url + base
        assert first.partition("=")[2] not in found.url


def test_looking_at_the_head_alone_does_not_spend_the_token(place):
    with serving(place) as found:
        browser = Browser(found)
        assert browser.ask(browser.first(), method="HEAD")[0].status == 403
        assert browser.ask(browser.first())[0].status == 303


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=x", "/?token=%c3%a4%ed%a0%80", "/?" + "a=1&" * 20, "/favicon.ico", "/index.html"]
)
def test_without_token_and_cookie_there_is_nothing(served, path):
    stranger = Browser(served.served)
    for at in (path, served.base, served.base + "events", served.page_of("first")):
        answer, text = stranger.ask(at)
        assert answer.status == 403
        assert "faster" not in text


def test_other_cookies_beside_it_do_no_harm_and_do_not_help(served):
    stranger = Browser(served.served)
    assert stranger.ask(served.base, Cookie=f"a=b; pgstrata=x; {served.cookie}")[0].status == 200
    assert stranger.ask(served.base, Cookie=served.cookie[:-1])[0].status == 403
    assert stranger.ask(served.base, Cookie=f"x{served.cookie}")[0].status == 403
    assert stranger.ask("/other/", Cookie=served.cookie)[0].status == 403


def test_a_page_whose_name_was_turned_to_this_machine_reads_nothing(served):
    assert served.ask(served.base, Host="evil.example")[0].status == 421
    assert served.ask(served.base, Host="localhost:8080")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(served, method):
    assert served.ask(served.base, method=method)[0].status == 405


def test_each_page_says_what_a_browser_may_do_with_it(served):
    for path in (served.base, served.page_of("first")):
        answer, text = served.ask(path)
        policy = answer.headers["Content-Security-Policy"]
        nonce = re.search(r"script-src 'nonce-([^']{22,})'", policy)[1]
        assert text.count("<script") == text.count(f'<script nonce="{nonce}"') == 1
        assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy.split("; "))
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert nonce not in served.ask(path)[1], "another one each time"


def test_the_list_names_studies_and_archives_and_no_text_becomes_markup(served):
    _, text = served.ask(served.base)
    assert "Is 17 &lt;b&gt;faster&lt;/b&gt;?" in text
    assert "<b>faster" not in text
    assert ">first/study · 16 (baseline), 17<" in text
    assert ">finished, 4 runs<" in text
    assert ">archive, 2 min of PostgreSQL 18.0<" in text
    assert ">damaged<" in text


def test_a_report_stands_below_links_and_under_the_policy_of_the_server(served):
    _, text = served.ask(served.page_of("first"))
    assert "made by report &amp;" in text
    assert "http-equiv" not in text
    assert f'<a href="{served.base}">all studies</a>' in text
    assert text.index("all studies") < text.index("made by")


def test_an_archive_has_its_last_hour_and_its_incidents(served):
    hour = served.page_of("prod")
    _, text = served.ask(hour)
    assert "made by window" in text
    other = re.search(r'href="([^"]*)">incidents<', text)[1]
    assert "made by incidents" in served.ask(other)[1]
    assert served.ask(hour.replace("hour", "report"))[0].status == 404


@pytest.mark.parametrize("path", ["x", "x/report", "../", "..%2f..%2fetc/passwd", "first/study/report", "events/x"])
def test_no_path_of_the_file_system_is_taken_from_an_address(served, path):
    assert served.ask(served.base + path)[0].status == 404


def test_the_same_page_is_made_once_until_the_study_changes(place, tmp_path):
    write_study(tmp_path, QUESTION, lambda *_: {"tps": 1000.0})
    count = f"open({str(tmp_path / 'count')!r}, 'a').write(sys.argv[1] + ' ')"
    with serving(tmp_path, f"{WRITER}; {count}") as found:
        browser = Browser(found).enter()
        page = browser.page_of("study")
        for _ in range(3):
            assert "made by report" in browser.ask(page)[1]
        assert (tmp_path / "count").read_text().split().count("report") == 1
        (tmp_path / "study" / "plan.json").touch()
        browser.ask(page)
        assert (tmp_path / "count").read_text().split().count("report") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.exit('pgstrata: it is damaged <here>\\n  -&gt; restore it')", "it is damaged &lt;here&gt;\n"),
        ("1/0", "which is a defect of pgstrata. This shows it: pgstrata report "),
        ("import os; os.abort()", "which is a defect of pgstrata"),
    ],
)
def test_a_study_that_cannot_be_shown_has_its_message_on_its_page(place, text, said):
    with serving(place, text) as found:
        browser = Browser(found).enter()
        answer, page = browser.ask(browser.page_of("first"))
        assert answer.status == 200
        assert said in page
        assert "Traceback" not in page
        assert browser.ask(browser.base)[0].status == 200


def test_a_page_that_takes_too_long_is_given_up():
    renderer = Renderer(Children(program("import time; time.sleep(600)"), seconds=0.2))
    page = renderer.page(View(key="k", arguments=("report",), state="1", rest=0.0, command="pgstrata report X"))
    assert page.problem == "The page was not ready after 0.2 seconds. Write it with: pgstrata report X"


ANSWER = {
    "baseline": {"name": "pg16", "levels": {"server": "16"}, "control": None},
    "comparisons": [
        {
            "environment": {"name": "pg17", "levels": {"server": "17"}, "control": None},
            "reference": "pg16",
            "cell": {"identity": "c", "workload": "select-only", "scale": 1, "clients": 2},
            "metric": "tps",
            "effect": 1.1,
            "interval": [1.09, 1.11],
            "value": 1100.0,
            "baseline_value": 1000.0,
        }
    ],
}


def test_two_studies_stand_beside_each_other(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_study(tmp_path / name, QUESTION, lambda *_: {"tps": 1000.0})
    (tmp_path / "third").mkdir()
    write_study(tmp_path / "third", QUESTION.replace('"16", "17"', '"14", "15"'), lambda *_: {"tps": 1000.0})
    shown = f"import json, sys; print(json.dumps({ANSWER!r})) if 'show' in sys.argv else exec({WRITER!r})"
    with serving(tmp_path, shown) as found:
        browser = Browser(found).enter()
        _, report = browser.ask(browser.page_of("first"))
        address = re.search(r'href="([^"]*)">compare with another study<', report)[1]
        _, others = browser.ask(address)
        assert "second/study" in others
        assert "first/study" not in others, "it is the one that is looked at"
        assert "third/study" not in others, "it has no level in common"
        beside = re.search(r'href="([^"]*)">[^<]*</a><br><span class="soft">second', others)[1]
        _, text = browser.ask(beside)
        assert "there is no verdict on them" in text
        assert text.replace("\xa0", " ").count("+10.0 % [+9.0, +11.0]") == 2
        assert "http-equiv" not in text
        assert browser.ask(beside + "x")[0].status == 404
        assert browser.ask(f"{beside}/x")[0].status == 404
        assert Browser(found).ask(beside)[0].status == 403


def test_a_study_without_an_answer_that_can_be_read_stands_beside_none(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_study(tmp_path / name, QUESTION, lambda *_: {"tps": 1000.0})
    for text, said in (("print('{')", "the answer of the study cannot be read"), ("1/0", "a defect of pgstrata")):
        with serving(tmp_path, text) as found:
            browser = Browser(found).enter()
            first, second = (browser.page_of(name).removesuffix("/report") for name in ("first", "second"))
            assert said in browser.ask(f"{first}/beside/{second.rpartition('/')[2]}")[1]


def test_links_are_not_followed_out_of_the_folder(place, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    write_study(inside, QUESTION, lambda *_: {"tps": 1000.0})
    (inside / "elsewhere").symlink_to(place / "first")
    with serving(inside) as found:
        browser = Browser(found).enter()
        page = browser.page_of("study")
        assert "elsewhere" not in browser.ask(browser.base)[1]
        (inside / "study" / "more").mkdir()
        (inside / "study" / "more" / "link").symlink_to("/etc/passwd")
        assert "it is a link, and links are not followed here" in browser.ask(page)[1]
        (inside / "study" / "more" / "link").unlink()
        assert "made by" in browser.ask(page)[1]
        (inside / "study").rename(tmp_path / "moved")
        (inside / "study").symlink_to(tmp_path / "moved")
        assert "it is a link, and links are not followed here" in browser.ask(page)[1]


def test_a_study_that_has_gone_says_so(tmp_path):
    write_study(tmp_path, QUESTION, lambda *_: {"tps": 1000.0})
    with serving(tmp_path, "import sys; sys.exit('pgstrata: there is no study here')") as found:
        browser = Browser(found).enter()
        page = browser.page_of("study")
        (tmp_path / "study").rename(tmp_path / ".hidden")
        assert "there is no study here" in browser.ask(page)[1]


def test_a_folder_that_has_gone_says_so_until_it_is_back(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    with serving(here) as found:
        browser = Browser(found).enter()
        here.rename(tmp_path / "moved")
        assert "there is no such folder" in browser.ask(browser.base)[1]
        (tmp_path / "moved").rename(here)
        assert "No study, bundle or archive in" in browser.ask(browser.base)[1]


def test_where_there_is_no_room_for_a_page_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    renderer = Renderer(Children(program(WRITER)))
    view = View(key="k", arguments=("report",), state="1", rest=0.0, command="")
    assert renderer.page(view).problem.startswith("The page could not be made: No such file or directory.")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "made by report" in renderer.page(view).content


def events_of(browser, page):
    """The address of the events of a page, and a connection that they come by."""
    address = re.search(r'data-events="([^"]*)"', browser.ask(page)[1])[1].replace("&amp;", "&")
    connection = browser.connect()
    connection.sendall(f"GET {address} HTTP/1.1\r\nHost: localhost\r\nCookie: {browser.cookie}\r\n\r\n".encode())
    return connection


def read_until(connection, words):
    read = b""
    while words not in read and (more := connection.recv(4096)):
        read += more
    return read


@pytest.mark.parametrize("name", ["", "study"])
def test_a_page_is_told_when_it_has_changed(tmp_path, monkeypatch, name):
    monkeypatch.setattr(service, "_POLL", 0.02)
    monkeypatch.setattr(service, "_POLL_LIST", 0.02)
    write_study(tmp_path, QUESTION, lambda _, run: {"tps": 1000.0} if run.block == 1 else None)
    with serving(tmp_path) as found:
        browser = Browser(found).enter()
        page = browser.page_of(name) if name else browser.base
        with events_of(browser, page) as connection:
            assert b"text/event-stream" in read_until(connection, b"retry: 5000\n\n")
            # of a study that is written a report may be a while behind
            (tmp_path / "study" / "plan.json").write_text(" " + (tmp_path / "study" / "plan.json").read_text())
            if not name:
                (tmp_path / "study" / "plan.json").write_text("{")
            assert read_until(connection, b"changed").endswith(b"event: changed\ndata: \n\n")
            assert connection.recv(1) == b""


def test_reports_of_a_study_that_is_measured_rest_for_a_while():
    moment = [0.0]
    made = []

    class Writing(Children):
        def run(self, *arguments, folder):
            made.append(arguments)
            return super().run(*arguments, folder=folder)

    renderer = Renderer(Writing(program(WRITER)), clock=lambda: moment[0])

    def view(state):
        entry = Listed(kind=ListedKind.STUDY, path="/study", state=ListedState.RUNNING)
        return make_view(entry, Shown.REPORT, state)

    assert renderer.page(view("1")).state == "1"
    assert renderer.page(view("2")).state == "1"
    assert not renderer.is_outdated(view("2"), "1")
    moment[0] = 31.0
    assert renderer.is_outdated(view("2"), "1")
    assert renderer.page(view("2")).state == "2"
    assert renderer.is_outdated(view("2"), "1"), "another browser has an older one"
    assert not renderer.is_outdated(view("2"), "2")
    assert len(made) == 2


def test_reading_alone_changes_no_state_also_beside_a_writer(place, tmp_path):
    shutil.copytree(place, tmp_path / "here")
    shelf = Shelf(tmp_path / "here")
    entries = [each for each in shelf.look().entries if not each.problem]
    assert len(entries) == 2

    def read_all():
        before = [shelf.state(each) for each in entries]
        load_profile(tmp_path / "here" / "prod", None, None)
        load_answer(StudyFolder(tmp_path / "here" / "first" / "study"))
        shelf.look()
        assert [shelf.state(each) for each in entries] == before
        return before

    alone = read_all()
    with StudyStore.open(tmp_path / "here" / "first" / "study"):
        read_all()
    writer = ArchiveWriter.open(tmp_path / "here" / "prod", Keep())
    try:
        writer.add_server(START + 121, 1.0, {"commits": 1.0, "connections": 1.0})
        writer.flush(START + 122)
        assert read_all() != alone
    finally:
        writer.close()


def test_a_hundred_clients_that_are_slow_hold_nobody_up(served):
    with ExitStack() as stack:
        for number in range(MOST_REQUESTS + 100):
            connection = stack.enter_context(served.connect())
            connection.sendall(b"GET / HTTP/1.1\r\n" if number % 2 else b"")
        assert served.ask(served.base)[0].status == 200
        assert "made by" in served.ask(served.page_of("first"))[1]


def test_more_streams_than_there_may_be_are_asked_to_come_later(served, monkeypatch):
    with ExitStack() as stack:
        streams = [stack.enter_context(events_of(served, served.base)) for _ in range(events.MOST_STREAMS)]
        for each in streams:
            assert b"retry: 5000" in read_until(each, b"retry: 5000\n\n")
        with events_of(served, served.base) as further:
            assert read_until(further, b"nothing").endswith(b"retry: 60000\n\n")


def test_whoever_waits_too_long_is_told(place):
    children = Children(program(WRITER), seconds=0.05)
    children.take_turn()
    with pytest.raises(BusyError):
        children.take_turn()
    children.end_turn()
    children.take_turn()
    children.close()
    with pytest.raises(BusyError):
        children.run("report", folder=place)


def test_answers_are_looked_for_when_somebody_looks_at_the_list(place, monkeypatch):
    monkeypatch.setattr(answers, "_REST", 0.02)
    headline = (
        "import json, sys; print(json.dumps({'entries': [{'path': sys.argv[2], 'headline': '17: <faster>', "
        "'problem': ''}]}))"
    )
    with serving(place, headline) as found:
        browser = Browser(found).enter()
        assert "Not computed yet: 1 answer." in browser.ask(browser.base)[1]
        deadline = time.monotonic() + 60
        while "17: &lt;faster&gt;" not in (text := browser.ask(browser.base)[1]):
            assert time.monotonic() < deadline
        assert "Not computed yet" not in text


def test_answers_wait_while_a_study_is_measured(tmp_path):
    write_study(tmp_path, QUESTION, lambda *_: {"tps": 1000.0})
    moment = [0.0]
    shelf = Shelf(tmp_path, lambda: moment[0])
    with StudyStore.open(tmp_path / "study"):
        moment[0] = 10.0
        assert shelf.undecided() is None
    moment[0] = 20.0
    found = shelf.undecided()
    assert found.entry.question.startswith("Is 17")
    shelf.decide(found, "faster")
    assert shelf.undecided() is None
    assert [each.headline for each in shelf.look().entries] == ["faster"]
    (tmp_path / "study" / "plan.json").touch()
    assert [each.headline for each in shelf.look().entries] == [""]


@pytest.mark.parametrize("printed", ["", "{", "[]", "{}", '{"entries": []}', '{"entries": [{"path": "/else"}]}'])
def test_an_answer_that_cannot_be_read_is_none(printed):
    assert read_headline(printed, "/study") == ""


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no such folder"):
        Shelf(tmp_path / "nowhere")


TALL = PAGE + '<details><summary>more</summary>text</details><div style="height: 5000px"></div>'


@pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium")
def test_a_real_browser_enters_follows_a_link_and_keeps_its_place_when_a_report_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "_POLL", 0.05)
    (tmp_path / "studies").mkdir()
    write_study(tmp_path / "studies", QUESTION, lambda *_: {"tps": 1000.0})
    with serving(tmp_path / "studies", WRITER.replace(repr(PAGE), repr(TALL))) as found, ExitStack() as stack:
        tab = stack.enter_context(chromium.opened(tmp_path / "profile"))
        tab.open(found.url)
        # the list may change at any time, because answers are looked for
        tab.wait("document.querySelector('th a')?.innerText == 'Is 17 <b>faster</b>?'")
        tab.wait("document.querySelector('th a')?.click(), document.body?.innerText.includes('made by report')")
        tab.wait("document.readyState == 'complete'")
        assert "token" not in tab.evaluate("location.href")
        assert tab.evaluate("document.cookie") == "", "no script can read it"
        tab.evaluate("window.old = true; document.querySelector('details').open = true; scrollTo(0, 1500)")
        (tmp_path / "studies" / "study" / "plan.json").touch()
        tab.wait("window.old === undefined && document.readyState == 'complete' && scrollY == 1500")
        assert tab.evaluate("document.querySelector('details').open") is True
        tab.open(f"http://localhost:{Browser(found).port}/")
        tab.wait("document.body?.innerText.includes('These pages are for one browser.')")
