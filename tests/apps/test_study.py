"""``tradeoff study`` beyond serving: damaged logs, backups, private files, secrets."""

from __future__ import annotations

import csv
import json
import sqlite3
import stat
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.web.servers import Server
from tradeoff.apps.cli.main import main
from tradeoff.model import Answer
from tradeoff.stores import open_store
from tradeoff.studies import Desk, Study

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
        desk = Desk(Study.read(store, name), Study.problem_of(store, name), store)
        tokens = [desk.open() for _ in range(people)]
        for token in tokens:
            with desk.session(token) as session:
                asked = session.ask()
                assert asked is not None
                session.tell(asked.turn, Answer.FIRST)
    return tokens


def change(statement: str, *values: object) -> None:
    with closing(sqlite3.connect("tradeoff.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["{broken", "[]", '{"event": "answer", "answer": "first", "number": 1}', "{}", '{"event": "check"}']
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
    if body in ("{broken", "[]"):
        assert listed.exit_code == 4 and row["damaged"] == 1
        assert "participant 2 of the study 'mine' cannot be read" in listed.stderr
        assert run("study", "list").exit_code == 4


@pytest.mark.parametrize("body", ["{broken", "[]"])
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
