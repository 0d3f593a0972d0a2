"""``tradeoff study`` beyond serving: damaged logs, backups, private files, secrets."""

from __future__ import annotations

import csv
import json
import resource
import sqlite3
import stat
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests import processes
from tests.web.servers import Server
from tradeoff.apps.cli.main import main
from tradeoff.model import FIRST
from tradeoff.stores import open_store
from tradeoff.studies import Session, Study
from tradeoff.studies.study import new_token

STORE = "sqlite:///tradeoff.db"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def answered(people: int = 3, name: str = "mine") -> list[str]:
    """Create a study in which each person has given one answer, and return their tokens."""
    done = run("study", "create", name, "dependent", "--strategy", "paper", "--no-checks")
    assert done.exit_code == 0, done.stderr
    with open_store(STORE) as store:
        study, problem = Study.read(store, name), Study.problem_of(store, name)
        tokens = [new_token() for _ in range(people)]
        for token in tokens:
            order_seed = study.order_seed(token)
            session = Session.begin(problem, checks=False, order_seed=order_seed, **study.interview_settings())
            prompt = session.ask()
            assert prompt is not None
            session.tell(prompt.turn, prompt.by_place(FIRST))
            store.create(name, token, session.events)
    return tokens


def change(statement: str, *values: object) -> None:
    with closing(sqlite3.connect("tradeoff.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "{broken",
        "[]",
        '{"event": "answer", "best": 0, "number": 1}',
        "{}",
        '{"event": "check"}',
        '{"event": "answer", "best": 1, "number": 1, "time": "2026-01-01T00:00:00+00:00"}',  # another answer
    ],
)
def test_one_damaged_row_is_named_and_everything_else_is_listed_and_exported(body: str) -> None:
    tokens = answered()
    where = "position = 2 AND log = (SELECT id FROM logs WHERE name = ?)"
    change(f"UPDATE events SET body = ? WHERE {where}", body, tokens[1])
    listed = run("study", "list", "--json")
    (row,) = json.loads(listed.stdout)
    assert row["people"] == 3 and row["answers"] >= 2
    exported = run("study", "export", "mine", "--out", "data")
    assert exported.exit_code == 4, exported.output
    assert "participant 2 of the study 'mine' cannot be read" in exported.stderr
    with Path("data/participants.csv").open(encoding="utf-8", newline="") as file:
        assert [row["participant"] for row in csv.DictReader(file)] == ["1", "3"]  # nobody's number moved
    with Path("data/answers.csv").open(encoding="utf-8", newline="") as file:
        assert [row["participant"] for row in csv.DictReader(file)] == ["1", "3"]
    assert "participant 2:" in Path("data/README.txt").read_text(encoding="utf-8")
    said = listed.output + exported.output + "".join(p.read_text("utf-8") for p in Path("data").glob("*.[ctj]*"))
    assert "Traceback" not in said and not any(token in said for token in tokens)
    assert listed.exit_code == 4 and row["damaged"] == 1
    assert "participant 2 of the study 'mine' cannot be read" in listed.stderr
    assert run("study", "list").exit_code == 4


def test_an_export_says_whose_answers_have_no_checksums() -> None:
    tokens = answered()
    assert json.loads(run("study", "export", "mine", "--out", "new", "--json").stdout)["unchecked"] == 0
    change("UPDATE events SET crc = NULL WHERE position = 2 AND log = (SELECT id FROM logs WHERE name = ?)", tokens[1])
    exported = run("study", "export", "mine", "--json")
    assert exported.exit_code == 0 and json.loads(exported.stdout)["unchecked"] == 1
    assert "1 of 3 participants" in exported.stderr


@pytest.mark.parametrize("body", ["{broken", "[]", '{"event": "answer", "reply": "skip", "number": 1}'])
def test_a_damaged_row_leaves_the_admin_page_and_the_other_people_alone(body: str, folder: Path) -> None:
    tokens = answered()
    change(
        "UPDATE events SET body = ? WHERE position = 1 AND log = (SELECT id FROM logs WHERE name = ?)", body, tokens[1]
    )
    with open_store(STORE, write=False) as store:
        admin = f"/admin/{Study.read(store, 'mine').admin}"
    with Server(folder, "study", "serve", "mine") as server, server.client() as client:
        page = client.get(admin)
        assert page.status_code == 200 and tokens[0] in page.text and tokens[2] in page.text
        assert client.get(f"{admin}/export.zip").status_code == 200
        assert client.get(f"/i/{tokens[0]}").status_code == 200
        assert client.get(f"/i/{tokens[1]}").status_code >= 500
    assert tokens[1] not in server.output.read_text(encoding="utf-8")


def test_a_damaged_study_hides_no_other() -> None:
    answered(1, "first-one")
    answered(2, "second-one")
    change("UPDATE events SET body = '{' WHERE position = 0 AND log = (SELECT id FROM logs WHERE name = 'first-one')")
    listed = run("study", "list", "--json")
    assert listed.exit_code == 4 and "the study 'first-one' cannot be read" in listed.stderr
    assert [row["name"] for row in json.loads(listed.stdout)] == ["second-one"]
    assert run("study", "export", "second-one").exit_code == 0
    refused = run("study", "export", "first-one")
    assert refused.exit_code == 4 and "Traceback" not in refused.output


# --- private files ---------------------------------------------------------------------------------------------------


def test_exports_are_private() -> None:
    answered(1)
    assert run("study", "export", "mine").exit_code == 0
    assert run("study", "export", "mine", "--out", "data").exit_code == 0
    assert mode("mine.zip") == 0o600 and mode("data") == 0o700
    assert {mode(path) for path in Path("data").iterdir()} == {0o600}
    assert zipfile.ZipFile("mine.zip").testzip() is None


# --- the secret of the admin page ------------------------------------------------------------------------------------


def test_the_admin_secret_is_printed_when_a_study_is_created_and_not_at_every_start(folder: Path) -> None:
    made = run("study", "create", "mine", "dependent", "--strategy", "paper")
    with open_store(STORE, write=False) as store:
        secret = Study.read(store, "mine").admin
    assert f"/admin/{secret}" in made.stderr and secret not in made.stdout
    assert run("study", "list", "--admin", "mine").stdout == f"/admin/{secret}\n"
    assert json.loads(run("study", "list", "--admin", "mine", "--json").stdout) == [f"/admin/{secret}"]
    with Server(folder, "study", "serve", "mine") as server, server.client() as client:
        said = server.output.read_text(encoding="utf-8")
        assert secret not in said and "tradeoff study list --admin mine" in said
        assert server.admin == f"/admin/{secret}" and client.get(server.admin).status_code == 200


def test_serve_prints_the_admin_secret_the_first_time_only(folder: Path) -> None:
    words = ("serve", "dependent", "--strategy", "paper", "--store", "sqlite:///other.db")
    with Server(folder, *words) as server:
        first = server.output.read_text(encoding="utf-8")
        admin = server.admin
    with Server(folder, *words) as server:
        second = server.output.read_text(encoding="utf-8")
        assert server.admin == admin  # by the command it names
    assert f"Watch the answers at {server.address.rpartition(':')[0]}" in first and admin in first
    assert admin not in second and "--store sqlite:///other.db" in second


# --- backups ---------------------------------------------------------------------------------------------------------


def test_a_backup_of_a_served_study_has_everything_acknowledged_while_people_go_on(folder: Path) -> None:
    """The file alone lacks what is still in the write-ahead log; the backup does not."""
    assert run("study", "create", "mine", "commute", "--no-checks").exit_code == 0
    acknowledged: list[tuple[str, int]] = []
    stop = threading.Event()

    def person(server: Server) -> None:
        with server.client() as client:
            while not stop.is_set():
                state = client.post("/api/interviews").json()
                token = state["id"]
                for turn in range(1, 4):
                    sent = client.post(f"/api/interviews/{token}/answers", json={"turn": turn, "reply": "skip"})
                    assert sent.status_code == 200
                    acknowledged.append((token, turn))

    def until_acknowledged(count: int) -> None:
        processes.until(lambda: len(acknowledged) >= count)

    with Server(folder, "study", "serve", "mine") as server:
        threads = [threading.Thread(target=person, args=(server,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        copies = []
        for i in range(3):
            until_acknowledged(30 * (i + 1))
            before = list(acknowledged)
            done = run("study", "backup", f"copy{i}.db")
            assert done.exit_code == 0 and done.stdout == f"written: copy{i}.db\n", done.output
            copies.append((f"copy{i}.db", before))
        stop.set()
        for thread in threads:
            thread.join()
        server.kill()
    for name, before in copies:
        assert mode(name) == 0o600 and not Path(f"{name}-wal").exists() and not Path(f"{name}-journal").exists()
        with closing(sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True)) as connection:  # one file is enough
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        with open_store(f"sqlite:///{name}", write=False) as store:
            logs = store.logs("mine")
            for token, turn in before:
                log = logs[token]
                assert isinstance(log, list) and sum(event.get("reply") == "skip" for event in log) >= turn
    assert run("study", "export", "mine", "--store", f"sqlite:///{copies[-1][0]}").exit_code == 0


def test_a_backup_overwrites_nothing_and_leaves_nothing_half(folder: Path) -> None:
    answered(1)
    (folder / "there.db").write_bytes(b"mine")
    refused = run("study", "backup", "there.db")
    assert refused.exit_code == 2 and "already exists" in refused.stderr and Path("there.db").read_bytes() == b"mine"
    assert run("study", "backup", "nowhere/copy.db").exit_code == 4
    missing = run("study", "backup", "copy.db", "--store", "sqlite:///other.db")
    assert missing.exit_code == 4 and "other.db; check the name" in missing.stderr
    with open_store(STORE) as store:
        store.create("other", "large", [{"event": "header", "text": "x" * 200_000}])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # a full disk
    try:
        full = run("study", "backup", "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.exit_code == 4 and "cannot be written" in full.stderr
    assert sorted(path.name for path in folder.glob("copy*")) == []


@pytest.mark.parametrize(
    ("store", "hint"),
    [("postgresql://ann:geheim@host/study", "pg_dump"), ("folder:logs", "only sqlite"), ("memory:", "sqlite")],
)
def test_other_stores_have_other_backups(store: str, hint: str) -> None:
    done = run("study", "backup", "copy.db", "--store", store)
    assert done.exit_code == 2 and hint in done.stderr and "geheim" not in done.output
    assert not Path("copy.db").exists()
