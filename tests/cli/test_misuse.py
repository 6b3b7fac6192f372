"""What goes wrong before anything is measured: exit code, place, remedy, and never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from program import SMALL, pgstrata

GOOD = SMALL.format(blocks=1)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "empty.toml").touch()
    (tmp_path / "utf16.toml").write_bytes(GOOD.encode("utf-16"))
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("run missing.toml", 2, "missing.toml: there is no such file\n  -> `pgstrata init`"),
        ("run folder", 2, "folder: the file cannot be read: Is a directory\n  -> "),
        ("run utf16.toml", 2, "utf16.toml: the file is not UTF-8"),
        ("run empty.toml", 2, "there are no cells\n  -> add [[cells]]"),
        ("plan good.toml --bogus", 2, "No such option: --bogus"),
        ("bogus", 2, "No such command 'bogus'"),
        (
            "watch no/server --archive a",
            2,
            "DSN: it is neither the name of a service nor a connection string\n  -> write SERVICE (",
        ),
        (
            "watch db --archive a --false-alarms-per fortnight",
            2,
            "-> write hour, day, week, month, or a time such as 3d",
        ),
        ("watch db --archive a --on-incident no-such-program", 2, "--on-incident: there is no program no-such-program"),
        ("run good.toml --budget nonsense", 2, "--budget: 'nonsense' is not a duration"),
        ("run good.toml --seed x", 2, "--seed"),
        ("run good.toml --study good.toml", 1, "a file exists where the study's folder would be"),
        ("run good.toml --study good.toml/deeper", 1, "a file exists where the study's folder would be"),
        (
            "show folder",
            1,
            "there is no study here\n  -> give the folder that `pgstrata run` made; `pgstrata list` finds it",
        ),
        ("show nowhere", 1, "there is no study here\n  -> give the folder"),
        ("show good.toml", 1, "there is no study here"),
        ("shwo study", 2, "No such command 'shwo'. Did you mean 'show'?"),
        (
            "try server=16",
            2,
            "nothing varies: server has only one level\n  -> write two levels, such as server=16,18; or ",
        ),
        ("run binary.toml", 2, "binary.toml: the file is not UTF-8"),
        ("export nowhere", 2, "nowhere: there is no such file or folder\n  -> give a file of results, or a folder"),
        (
            "explain nowhere",
            1,
            "-> give one that `pgstrata list` finds, or record one: pgstrata watch DSN --archive DIR",
        ),
        ("report folder", 1, "there is no study here"),
        ("reparse folder", 1, "there is no study here"),
        ("servers fetch 99", 2, "'99' cannot be fetched\n  -> use one of embedded"),
        ("servers check ./x", 2, "the folder of an installed server must be an absolute path"),
        ("servers check embeded", 2, "'embeded' is not a server\n  -> did you mean 'embedded'?"),
        ("servers check prefix:/nowhere/at/all", 2, "there is no bin/postgres"),
        ("watch host=x --archive a --listen 0.0.0.0:9790", 2, "--listen: other machines can reach 0.0.0.0:9790"),
        ("watch host=x --archive a --listen 9790", 2, "--listen: '9790' is not an address to listen at\n  -> write"),
        ("watch host=x --archive a --listen-anywhere", 2, "--listen-anywhere needs --listen\n  -> "),
        ("init good.toml", 2, "good.toml: the file exists already"),
        ("import loop --format pgbench", 2, "loop: there is no such file or folder\n  -> "),
        ("export loop", 2, "loop: the file cannot be read: Too many levels of symbolic links\n  -> "),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_a_remedy(place, arguments, code, said):
    done = pgstrata(place, *arguments.split())
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('workload = "select-only"', 'worklaod = "select-only"', 8, "worklaod"),
        ('workload = "select-only"', 'workload = "selct-only"', 8, "selct-only"),
        ("scale = 1", "scale = 0", 9, "scale"),
        ("clients = 2", "clients = 0", 10, "clients"),
        ('server = "embedded"', 'server = "99"', 6, "99"),
        ('server = "embedded"', 'sever = "embedded"', 6, "sever"),
        ('run = "1s"', 'run = "fast"', 11, "fast"),
        ("blocks = 1", "blocks = 1 1", 3, ""),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(place, old, new, line, said):
    (place / "bad.toml").write_text(GOOD.replace(old, new))
    done = pgstrata(place, "run", "bad.toml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    named = [text for text in done.stderr.splitlines() if text.startswith(f"bad.toml:{line}: ")]
    assert named, done.stderr
    assert any(said in text for text in named)
    assert "  -> " in done.stderr


@pytest.mark.parametrize(
    ("clients", "settings", "limit"),
    [(18, "[common.settings]\nmax_connections = 20", 20), (200, "[common.settings]\nmax_connections = '100'", 100)],
)
def test_more_clients_than_connections_are_refused(place, clients, settings, limit):
    text = GOOD.replace("clients = 2", f"clients = {clients}").replace("[[cells]]", f"{settings}\n[[cells]]")
    (place / "many.toml").write_text(text)
    done = pgstrata(place, "run", "many.toml")
    assert done.returncode == 2
    assert f"{clients} clients do not fit into max_connections = {limit}" in done.stderr
    assert f"set max_connections to at least {clients + 5}" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('run = "1s"', 'run = "1s"\nrate = 50', "a fixed rate cannot be paused"),
        ('run = "1s"', 'run = "1s"\nprofile = true', "a profile of statements would count the pauses"),
        ("blocks = 1", 'blocks = 1\nreset = "restart"', 'reset = "restart" keeps a server from run to run'),
        (
            'workload = "select-only"',
            'workload = "simple-update"',
            "commit_delay defers work, which a paused server would do during another server's slice",
        ),
    ],
)
def test_what_cannot_be_paused_is_not_measured_in_slices(place, old, new, why):
    text = GOOD.replace("blocks = 1", 'blocks = 1\ninterleave = "slices"')
    text = (
        text.replace("[common]", "[factors.settings]\ncommit_delay = [0, 100]\n[common]") if "update" in new else text
    )
    (place / "slices.toml").write_text(text.replace(old, new))
    for command in ("plan", "run"):
        done = pgstrata(place, command, "slices.toml")
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert f"cannot be measured in slices: {why}" in done.stderr
        assert '-> write interleave = "auto" or "runs"' in done.stderr


def test_without_a_setting_there_are_connections_for_all_clients(place):
    (place / "many.toml").write_text(GOOD.replace("clients = 2", "clients = 300"))
    done = pgstrata(place, "plan", "many.toml")
    assert done.returncode == 0, done.stderr
    assert "max_connections" in done.stdout


@pytest.fixture
def study(place):
    """A study in which nothing has been measured yet."""
    from pgstrata.app.question import load_plan
    from pgstrata.store.study import StudyStore

    StudyStore.create(place / "study", load_plan(place / "good.toml"), "0").close()
    return place / "study"


@pytest.mark.parametrize("arguments", ["show study", "show study --json", "show study --format text", "report study"])
def test_a_study_without_runs_can_be_looked_at(place, study, arguments):
    done = pgstrata(place, *arguments.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("inside", ["plan.json", "evidence", "evidence/b01/x"])
def test_what_lies_within_a_study_leads_to_it(place, study, inside):
    (study / "evidence/b01/x").mkdir(parents=True, exist_ok=True)
    done = pgstrata(place, "show", study / inside)
    assert done.returncode == 1
    assert (
        f"there is no study here\n  -> this is a folder inside a study: give the study's own folder, {study}\n"
        in done.stderr
    )


def test_a_format_that_does_not_exist_is_refused(place, study):
    done = pgstrata(place, "show", study, "--format", "nonsense")
    assert done.returncode == 2
    assert "use --format text" in done.stderr


@pytest.mark.parametrize("output", ["nowhere/r.html", "/proc/r.html", "folder"])
def test_a_report_that_cannot_be_written_says_where_and_what_to_do(place, study, output):
    done = pgstrata(place, "report", study, "-o", output)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert f"{output}: the report cannot be written" in done.stderr
    assert "-o" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_failure(place):
    words = f"{sys.executable} -m pgstrata plan good.toml"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words} --json | head -c 1; {words} | true"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_output_to_a_full_disk_is_a_message(place):
    with open("/dev/full", "w") as full:
        done = pgstrata(place, "plan", "good.toml", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert done.stderr.startswith("pgstrata: standard output: the disk is full")


def test_closed_streams_are_no_failure(place):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m pgstrata plan good.toml >&- 2>&-"], cwd=place, timeout=60
    )
    assert done.returncode == 0


@pytest.mark.parametrize("run", ["/tmp/" + "long" * 20, "relative", "/tmp/a,b"])
def test_a_folder_for_sockets_that_cannot_be_is_refused_before_anything_is_built(place, monkeypatch, run):
    monkeypatch.setenv("PGSTRATA_RUN", run)
    done = pgstrata(place, "run", "good.toml")
    assert done.returncode == 2
    assert "PGSTRATA_RUN" in done.stderr
    assert "  -> " in done.stderr
    assert not Path(place, "data").exists()
