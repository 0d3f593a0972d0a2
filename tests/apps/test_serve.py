"""``tradeoff serve`` and ``tradeoff study``, from the outside: what is typed, what is printed, how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner, Result

from tests import processes
from tests.web.servers import TOOL, Server, begin, environment, turn_of
from tradeoff import Catalogue, Objective, load, save
from tradeoff.apps.cli.main import main
from tradeoff.apps.cli.source import Source
from tradeoff.apps.web.server import load_context
from tradeoff.errors import StoreError
from tradeoff.interview import read_log
from tradeoff.stores import open_store
from tradeoff.studies import Study

STORE = "sqlite:///tradeoff.db"  # the default
PAPER = ("--strategy", "paper")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(main, list(words))


def fine(*words: str) -> Result:
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done


def refused(code: int, message: str, *words: str) -> str:
    """Raise unless the command ends with this code and one line on stderr that says this."""
    done = run(*words)
    assert done.exit_code == code, (done.output, done.exception)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1 and message in done.stderr, done.output
    return done.stderr


def catalogue(shift: float = 0.0) -> Catalogue:
    rows = [[1.0 + shift, 9.0], [2.0, 7.0], [4.0, 4.0], [7.0, 2.0], [9.0, 1.0]]
    return Catalogue(rows, [Objective("a"), Objective("b")], [f"item {i}" for i in range(len(rows))])


# --- help ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve"], ["--store", "--host", "--port", "--strategy", "--no-browser", "Ctrl-C", "PROBLEM", "sqlite:///tradeoff.db"]),
        (["study"], ["create", "list", "export", "serve"]),
        (["study", "create"], ["--text", "--participants", "--closed", "--no-checks", "--seed", "@FILE", "PROBLEM"]),
        (["study", "list"], ["--links", "--json"]),
        (["study", "export"], ["parquet", "--out", "Nothing is overwritten"]),
        (["study", "serve"], ["--workers", "--allowed-host", "--store"]),
    ],
)  # fmt: skip
def test_help_says_what_can_be_said(words: list[str], said: list[str], folder: Path) -> None:
    shown = " ".join(fine(*words, "--help").output.split())
    for word in said:
        assert word in shown
    assert list(folder.iterdir()) == []


# --- a study, from the beginning to its data -------------------------------------------------------------------------


def answer_all(server: Server, here: str) -> int:
    """Answer everything on the page, and return how often."""
    with server.client() as client:
        client.post(f"{here}/start")
        for count in range(100):
            page = client.get(here)
            if page.status_code == 303:
                return count
            client.post(f"{here}/answer", data={"turn": str(turn_of(page.text)), "best": "1"})
    raise AssertionError("it never ends")


def test_a_study_from_the_first_command_to_the_data(folder: Path) -> None:
    (folder / "welcome.txt").write_text("Grüß Gott <b>und</b> danke!\n", encoding="utf-8")
    made = fine("study", "create", "mine", "dependent", *PAPER, "--text", "welcome=@welcome.txt", "--text",
                "title=A = B?", "--participants", "3", "--closed", "--seed", "4")  # fmt: skip
    links = made.stdout.splitlines()
    assert len(links) == len(set(links)) == 3 and all(re.fullmatch(r"/i/[A-Za-z0-9_-]{22}", link) for link in links)
    assert "study serve mine" in made.stderr
    assert fine("study", "list", "--links", "mine").stdout.splitlines() == links
    assert json.loads(fine("study", "list", "--links", "mine", "--json").stdout) == links

    with Server(folder, "study", "serve", "mine") as server:
        with server.client() as client:
            start = client.get("/")
            assert start.status_code == 200 and "given a link" in start.text and "<form" not in start.text
            assert client.post("/start").status_code == 403 and client.post("/api/interviews").status_code == 403
            assert "A = B?" in client.get(links[0]).text
            assert client.get(server.admin).text.count('href="/i/') == 3
        answered = answer_all(server, links[0])
        assert answered > 3
        with server.client() as client:
            client.post(f"{links[1]}/start")
            client.post(f"{links[1]}/answer", data={"turn": "1", "reply": "equal"})
        listed = json.loads(fine("study", "list", "--json").stdout)  # while it is served
        assert server.stop() == 0
    (row,) = listed
    assert (row["name"], row["people"], row["finished"], row["answers"]) == ("mine", 3, 1, answered - 2 + 1)
    table = fine("study", "list").stdout
    assert all(word in table for word in ("mine", "dependent", "paper", "people", "finished"))

    for kind in ("csv", "jsonl", "parquet"):
        zipped = fine("study", "export", "mine", "--format", kind, "--out", f"{kind}.zip", "--json")
        assert json.loads(zipped.stdout) == {"people": 3, "unchecked": 0, "written": [f"{kind}.zip"]}
        plain = fine("study", "export", "mine", "--format", kind, "--out", f"in-{kind}")
        names = {f"answers.{kind}", f"participants.{kind}", "events.jsonl", "study.json", "README.txt", "problem.npz"}
        assert {path.name for path in Path(f"in-{kind}").iterdir()} == names
        assert {Path(line.removeprefix("written: ")) for line in plain.stdout.splitlines()} == {
            Path(f"in-{kind}") / name for name in names
        }
        with zipfile.ZipFile(f"{kind}.zip") as archive:
            assert set(archive.namelist()) == names
            for name in names - {f"participants.{kind}", f"answers.{kind}", "problem.npz"}:
                assert archive.read(name) == (Path(f"in-{kind}") / name).read_bytes()
            assert len(table_rows(archive.read(f"answers.{kind}"), kind)) == answered + 1
            assert len(table_rows(archive.read(f"participants.{kind}"), kind)) == 3
    study = json.loads(Path("in-csv/study.json").read_text(encoding="utf-8"))
    assert study["seed"] == 4 and study["texts"] == {"welcome": "Grüß Gott <b>und</b> danke!", "title": "A = B?"}
    events = Path("in-csv/events.jsonl").read_text(encoding="utf-8")
    assert len(read_log(events)) == events.count("\n") and not any(link[3:] in events for link in links)
    assert load("in-csv/problem.npz").fingerprint == load("dependent").fingerprint
    fine("study", "export", "mine")
    assert Path("mine.zip").exists()
    refused(2, "mine.zip already exists", "study", "export", "mine")


def table_rows(data: bytes, kind: str) -> list[Any]:
    match kind:
        case "csv":
            return list(csv.DictReader(io.StringIO(data.decode())))
        case "jsonl":
            return [json.loads(line) for line in data.splitlines()]
        case _:
            from pyarrow import parquet

            rows: list[Any] = parquet.read_table(io.BytesIO(data)).to_pylist()
            return rows


def test_a_welcome_from_a_file_is_shown_and_inert(folder: Path) -> None:
    (folder / "welcome.txt").write_text("Grüß <b>Gott</b>\n", encoding="utf-8")
    fine("study", "create", "mine", "dependent", *PAPER, "--text", "welcome=@welcome.txt")
    (folder / "welcome.txt").unlink()  # it is part of the study now
    with Server(folder, "study", "serve", "mine") as server, server.client() as client:
        page = client.get("/").text
        assert "Grüß" in page and "<b>Gott" not in page
        assert turn_of(client.get(begin(client)).text) == 1


def test_an_empty_list_is_a_list(folder: Path) -> None:
    with open_store(STORE):
        pass
    assert json.loads(fine("study", "list", "--json").stdout) == []
    fine("study", "create", "mine", "dependent", *PAPER)
    assert fine("study", "list", "--links", "mine").stdout.strip() == ""
    assert json.loads(fine("study", "list", "--links", "mine", "--json").stdout) == []


# --- errors ----------------------------------------------------------------------------------------------------------


def test_what_is_typed_wrong_is_said_in_one_line_and_changes_nothing(folder: Path) -> None:
    fine("study", "create", "mine", "dependent", *PAPER)
    before = Path("tradeoff.db").read_bytes()
    create = ("study", "create", "other", "dependent", *PAPER)
    refused(2, "study 'mine' already exists", "study", "create", "mine", "dependent", *PAPER)
    for words in (("export", "nobody"), ("serve", "nobody"), ("list", "--links", "nobody")):
        assert "mine" in refused(2, "there is no study 'nobody'", "study", *words)
    refused(2, "cannot be called", "study", "create", "My Study", "dependent")
    refused(2, "no strategy", "study", "create", "other", "dependent", "--strategy", "magic")
    refused(2, "colour", *create, "-o", "colour=1")
    refused(2, "no text called 'subtitle'", *create, "--text", "subtitle=x")
    refused(2, "not of the form NAME=TEXT", *create, "--text", "welcome")
    refused(2, "cannot be read from 'nowhere.txt'", *create, "--text", "welcome=@nowhere.txt")
    (folder / "latin.txt").write_bytes("Gr\xfc\xdf".encode("latin-1"))
    refused(2, "cannot be read from 'latin.txt'", *create, "--text", "welcome=@latin.txt")
    refused(3, "no bundled problem", "study", "create", "other", "dependant")
    refused(3, "no bundled problem", "serve", "dependant")
    (folder / "broken.toml").write_text("format = 1\n", encoding="utf-8")
    refused(3, "broken.toml", "serve", "broken.toml")
    assert Path("tradeoff.db").read_bytes() == before


def test_a_store_that_cannot_be_used_is_said_with_its_name(folder: Path) -> None:
    for words in (("study", "create", "mine", "dependent", *PAPER), ("serve", "dependent", *PAPER)):
        refused(4, "nowhere' for the database x.db", *words, "--store", "sqlite:///nowhere/x.db")
        refused(2, "there is no store", *words, "--store", "nonsense")
        refused(2, "names no file", *words, "--store", "sqlite://")
    for name in ("list", "export", "serve"):
        rest = () if name == "list" else ("mine",)
        refused(2, "there is no store", "study", name, *rest, "--store", "mysql://x/y")
    refused(4, "tradeoff.db; check the name", "study", "list")
    refused(4, "tradeoff.db; check the name", "study", "export", "mine")
    assert not (folder / "tradeoff.db").exists()  # looking makes nothing
    (folder / "notes.db").write_text("my notes " * 20, encoding="utf-8")
    refused(4, "not an SQLite database", "study", "list", "--store", "sqlite:///notes.db")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "70000"], "70000"),
        (["--workers", "0"], "workers"),
        (["--host", "0.0.0.0"], "--allowed-host"),
        (["--host", "203.0.113.9", "--allowed-host", "x.example", "--port", "0"], "203.0.113.9"),
        (["-o", "order_seed=3"], "order_seed"),
        (["-o", "strategy=paper"], "--strategy"),
        (["--max-questions", "-1"], "max-questions"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_served(words: list[str], message: str) -> None:
    done = run("serve", "dependent", *PAPER, *words)
    assert done.exit_code == 2 and message in done.stderr and isinstance(done.exception, SystemExit)


# --- problems that change, and problems of programs ------------------------------------------------------------------


def test_a_study_keeps_its_problem_when_the_file_changes(folder: Path) -> None:
    save(catalogue(), "items.toml")
    fine("study", "create", "mine", "items.toml", *PAPER)
    (folder / "items.toml").unlink(), (folder / "items.csv").unlink()
    save(catalogue(shift=0.5), "items.toml")
    with Server(folder, "study", "serve", "mine") as server, server.client() as client:
        state = client.post("/api/interviews").json()
        amounts = [option["average"][0]["amount"] for option in state["question"]["options"]]
        assert 1.0 in amounts and 1.5 not in amounts
    fine("study", "export", "mine", "--out", "data")
    assert load("data/problem.npz").values.tolist() == catalogue().values.tolist()
    with open_store(STORE, write=False) as store:
        assert Study.read(store, "mine").source == {"name": "items.toml", "options": {}}


OPTIMISER = """
import tradeoff

class Knapsack:
    objectives = [tradeoff.Objective("value", "€"), tradeoff.Objective("weight", "kg", "min")]

    def best(self, weights):
        points = [{points}]
        return max(points, key=lambda p: weights[0] * p[0] + weights[1] * p[1])

problem = Knapsack()
"""


def test_a_study_of_a_program_is_read_again_from_it_and_refused_when_it_is_another(folder: Path) -> None:
    source = folder / "knapsack_of_a_study.py"
    source.write_text(OPTIMISER.format(points="(0.0, 0.0), (5.0, 2.0), (8.0, 5.0), (9.0, 9.0)"), encoding="utf-8")

    def tool(*words: str) -> subprocess.CompletedProcess[str]:  # each time a new program, which imports it anew
        return processes.run([str(TOOL), *words])

    made = tool("study", "create", "mine", "python:knapsack_of_a_study:problem", *PAPER)
    assert made.returncode == 0, made.stderr
    unnamed = tool("study", "serve", "mine", "--port", "0", "--no-browser")  # a database runs no program
    assert unnamed.returncode != 0 and "--problem" in unnamed.stderr and len(unnamed.stderr.splitlines()) == 1
    named = ("--problem", "python:knapsack_of_a_study:problem")
    with Server(folder, "study", "serve", "mine", *named) as server, server.client() as client:
        here = begin(client)
        client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        before = client.get(here).text
        assert turn_of(before) == 2
    with Server(folder, "study", "serve", "mine", *named) as server, server.client() as client:
        assert client.get(here).text == before
    done = tool("study", "export", "mine", "--out", "data", *named)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (folder / "data").iterdir()}
    assert "answers.csv" in names and "problem.npz" not in names  # a program cannot be written down
    source.unlink()
    gone = tool("study", "serve", "mine", "--port", "0", "--no-browser", *named)
    assert gone.returncode == 3 and "knapsack_of_a_study" in gone.stderr and len(gone.stderr.splitlines()) == 1
    source.write_text(OPTIMISER.format(points="(0.0, 0.0), (6.0, 2.0), (8.0, 3.0)"), encoding="utf-8")
    changed = tool("study", "serve", "mine", "--port", "0", "--no-browser", *named)
    assert changed.returncode == 4 and "not what it was" in changed.stderr and len(changed.stderr.splitlines()) == 1


# --- serving ---------------------------------------------------------------------------------------------------------


def test_the_same_settings_are_the_same_study_and_others_another(folder: Path) -> None:
    words = ("serve", "dependent", *PAPER)
    with Server(folder, *words) as server, server.client() as client:
        here, admin = begin(client), server.admin
    with Server(folder, *words) as server, server.client() as client:
        assert server.admin == admin and client.get(here).status_code == 200
    assert len(json.loads(fine("study", "list", "--json").stdout)) == 1
    with Server(folder, *words, "--max-questions", "5") as server, server.client() as client:
        assert server.admin != admin and client.get(here).status_code == 404
        begin(client)
    found = json.loads(fine("study", "list", "--json").stdout)
    assert [study["people"] for study in found] == [1, 1] and len({study["name"] for study in found}) == 2
    assert [path.name for path in folder.glob("*.db")] == ["tradeoff.db"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_to_with_a_note(folder: Path, how: signal.Signals) -> None:
    with Server(folder, "serve", "dependent", *PAPER) as server:
        with server.client() as client:
            here = begin(client)
            assert client.post(f"{here}/answer", data={"turn": "1", "best": "1"}).status_code == 303
            server.process.send_signal(how)  # with a connection still open
            assert server.process.wait(processes.PATIENCE) == 0
        said = server.output.read_text(encoding="utf-8")
        assert "Everything is saved; the same command continues." in said and "Traceback" not in said
    assert not (folder / "tradeoff.db-wal").exists()  # all of it is in the one file
    assert json.loads(fine("study", "list", "--json").stdout)[0]["answers"] == 1


def test_a_second_server_at_the_same_port_is_refused(folder: Path) -> None:
    with Server(folder, "serve", "dependent", *PAPER) as server:
        done = run("serve", "dependent", *PAPER, "--port", str(server.port), "--store", "sqlite:///other.db")
        assert done.exit_code == 2 and f"port {server.port}" in done.stderr and "--port" in done.stderr
        fine("study", "create", "mine", "dependent", *PAPER, "--store", "sqlite:///third.db")
        study = run("study", "serve", "mine", "--port", str(server.port), "--store", "sqlite:///third.db")
        assert study.exit_code == 2 and "cannot listen" in study.stderr
        in_use = run("study", "create", "mine", "dependent", *PAPER)
        assert in_use.exit_code == 4 and "in use" in in_use.stderr
        with server.client() as client:
            assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("flag", "terminal", "opened"),
    [((), False, False), ((), True, True), (("--no-browser",), True, False), (("--browser",), False, True)],
)
def test_a_browser_is_opened_only_on_a_terminal_or_when_asked_for(
    folder: Path, flag: tuple[str, ...], terminal: bool, opened: bool
) -> None:
    """The browser is a real program that notes what it was given."""
    note, program = folder / "opened.txt", folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" >> {note}\n', encoding="utf-8")
    program.chmod(0o755)
    ours, theirs = os.openpty() if terminal else os.pipe()
    with processes.Child(
        [str(TOOL), "serve", "dependent", *PAPER, "--port", "0", *flag], stdout=theirs, stderr=subprocess.PIPE, text=True,
        env=environment(BROWSER=f"{program} %s"),
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = ""
        while "Stop with" not in shown:
            shown += os.read(ours, 4096).decode()
        address = re.search(r"http://\S+/", shown)
        assert address is not None
        if opened:
            processes.until(lambda: note.exists() and note.read_text(encoding="utf-8").endswith("\n"), "a browser")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=processes.PATIENCE)
        assert process.returncode == 0, error
    os.close(ours)
    assert (note.read_text(encoding="utf-8").split() if note.exists() else []) == [address.group()] * opened


def test_ctrl_c_before_it_is_ready_ends_it_without_a_traceback(folder: Path) -> None:
    """Whoever stops it while it is getting ready has stopped it."""
    with processes.Child(
        [str(TOOL), "serve", "commute", "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        processes.until(lambda: (folder / "tradeoff.db.lock").exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=processes.PATIENCE)
    assert process.returncode in (0, 130) and "Traceback" not in error, error


def test_a_replaced_worker_computes_with_the_same_problem_after_its_file_was_changed(folder: Path) -> None:
    table = folder / "items.csv"
    table.write_text("name,price,size\nAda,500,30\nBea,600,45\nCleo,700,55\nDora,800,60\n", encoding="utf-8")
    words = ("serve", "items.csv", "--objectives", "price:min,size:max", "--workers", "1", *PAPER)
    with Server(folder, *words) as server, server.client() as client:
        children = psutil.Process(server.process.pid).children()
        (worker,) = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        table.write_text(table.read_text(encoding="utf-8").replace("600", "650"), encoding="utf-8")
        worker.kill()
        for _ in range(3):
            token = client.post("/api/interviews").json()["id"]
            sent = client.post(f"/api/interviews/{token}/answers", json={"turn": 1, "reply": {"best": 1}})
            assert sent.status_code == 200, sent.text
    with open_store(STORE, write=False) as store:
        (name,) = Study.names(store)
        logs = store.logs(name).values()
        assert {log[0]["problem"] for log in logs if isinstance(log, list)} == {Study.read(store, name).fingerprint}
        assert len(logs) == 3


def worker_problem(study: Study, source: Source) -> str:
    """Return the fingerprint of the problem that a worker process computes with."""
    return next(iter(load_context(STORE, study.name, source.read).problems))


def test_workers_use_the_stored_problem_when_its_file_is_another_one(folder: Path) -> None:
    save(catalogue(), "items.toml")
    source = Source("items.toml", {})
    problem = source.read()
    study = Study.of(problem, "mine", strategy="paper", source=source.data())
    with open_store(STORE) as store:
        study.save(store, problem)
    assert worker_problem(study, source) == problem.fingerprint
    save(catalogue(shift=0.5), "items.toml")
    assert source.read().fingerprint != problem.fingerprint == worker_problem(study, source)
    (folder / "items.toml").unlink()
    assert worker_problem(study, source) == problem.fingerprint


def test_workers_refuse_another_problem_when_the_first_is_not_stored(folder: Path) -> None:
    save(catalogue(), "items.toml")
    source = Source("items.toml", {"curves": "concave"})
    problem = source.read()
    study = Study.of(problem, "mine", source=source.data())
    with open_store(STORE) as store:
        study.save(store, problem)
    assert worker_problem(study, source) == problem.fingerprint
    save(catalogue(shift=0.5), "items.toml")
    with pytest.raises(StoreError, match="not what it was"):
        worker_problem(study, source)
