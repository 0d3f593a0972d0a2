"""The same interview in the library, the terminal, the page and the API: the same questions, bit for bit, and the same end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import processes
from tests.web.servers import TOOL, Server, begin, turn_of
from tradeoff import Answer, Interview, LinearUser, load
from tradeoff.interview import Event, read_log
from tradeoff.studies import Study

SEED = 5  # of the strategy; with another one "careful" and "certified" ask something else
SIDES = 3

Act = str  # first, second, same, skip or undo

CASES = [
    ("coffee", "careful", None),
    ("coffee", "certified", None),
    ("coffee", "paper", 15),
    ("commute", "careful", 6),
    ("commute", "certified", 6),
    ("dependent", "paper", None),
]


@dataclass(frozen=True)
class Held:
    """An interview as it was held somewhere: what was asked, in order, and what came of it."""

    questions: list[tuple[list[float], list[float]]]
    replies: list[str]
    value: list[float]
    weights: list[float]


def held(events: list[Event], value: list[float], weights: list[float]) -> Held:
    asked = [(event["first"], event["second"]) for event in events if event["event"] == "question"]
    said = [
        event.get("answer", event["event"]) for event in events if event["event"] in ("answer", "skip", "retraction")
    ]
    return Held(asked, said, value, weights)


def person(name: str) -> Callable[[int, Any], list[Act]]:
    """Return what somebody does at their n-th question: they skip the second and change their mind about the fourth."""
    problem = load(name)
    user = LinearUser.scaled(problem, [3.0, 1.0, 2.0, 1.0, 0.5][: len(problem.objectives)], 0.01)

    def acts(number: int, question: Any) -> list[Act]:
        said: Answer = user(question)
        return ["skip"] if number == 2 else [said.swapped.value, "undo"] if number == 4 else [said.value]

    return acts


def settings_of(strategy: str, most: int | None) -> dict[str, Any]:
    return {"max_questions": most} | ({} if strategy == "paper" else {"seed": SEED})


# --- the four ways ---------------------------------------------------------------------------------------------------


def in_the_library(name: str, strategy: str, most: int | None) -> tuple[Held, list[str], list[Act]]:
    """Hold it; return also the keys that say the same in the terminal, and what was done."""
    interview = Interview(load(name), strategy, sides=SIDES, **settings_of(strategy, most))
    acts, keys, done = person(name), [], []
    number = 0
    while (question := interview.ask()) is not None:
        number += 1
        for act in acts(number, question):
            match act:
                case "undo":
                    interview.undo()
                    keys.append("u")
                case "skip":
                    interview.skip()
                    keys.append("s")
                case _:
                    shown = Answer(act).swapped if interview.left == "second" else Answer(act)
                    keys.append({"first": "a", "second": "b", "same": "="}[shown.value])
                    interview.tell(act)
            done.append(act)
            if act != "undo" and len(acts(number, question)) > 1:
                interview.ask()  # as everybody else does, who is shown the next question before they take it back
    found = interview.recommendation
    return held(list(interview.log), found.alternative.value.tolist(), found.weights.tolist()), keys, done


def in_the_terminal(folder: Path, name: str, strategy: str, most: int | None, keys: list[str]) -> Held:
    words = ["ask", name, "--strategy", strategy, "--seed", str(SIDES), "--log", "answers.jsonl", "--json"]
    words += ["--max-questions", str(most)] if most is not None else []
    words += ["-o", f"seed={SEED}", "--questions", "pairs"] if strategy != "paper" else []
    done = processes.run([str(TOOL), *words], cwd=folder, input="".join(f"{key}\n" for key in keys))
    assert done.returncode in (0, 5), done.stderr  # 5: that was all that it was allowed to ask
    found = json.loads(done.stdout)
    assert found["finished"]
    said = found["recommendation"]
    events = read_log((folder / "answers.jsonl").read_text(encoding="utf-8"))
    return held(events, said["alternative"]["gains"], list(said["weights"].values()))


def on_the_page(client: httpx.Client, acts: list[Act]) -> Held:
    here = begin(client)
    for act in acts:
        page = client.get(here)
        assert page.status_code == 200
        turn = str(turn_of(page.text))
        if act == "undo":
            done = client.post(f"{here}/undo", data={"turn": turn})
        else:
            left = [e for e in read_log(client.get(f"{here}/log").text) if e["event"] == "question"][-1]["left"]
            said = act if act in ("same", "skip") else "left" if act == left else "right"
            done = client.post(f"{here}/answer", data={"turn": turn, "answer": said})
        assert done.status_code == 303 and "notice" not in done.headers["location"]
    assert client.get(here).headers["location"] == f"{here}/result"
    assert client.get(f"{here}/result").status_code == 200
    events = read_log(client.get(f"{here}/log").text)
    assert events[-1]["event"] == "end"
    return held(events, events[-1]["value"], events[-1]["weights"])


def by_the_api(client: httpx.Client, acts: list[Act]) -> Held:
    state = client.post("/api/interviews").json()
    here = f"/api/interviews/{state['id']}"
    shown = []
    for act in acts:
        assert not state["finished"]
        if state["question"]:
            shown.append((state["question"]["first"]["gains"], state["question"]["second"]["gains"]))
        sent = {"turn": state["turn"]} | ({} if act == "undo" else {"answer": act})
        done = client.post(f"{here}/{'undo' if act == 'undo' else 'answers'}", json=sent)
        assert done.status_code == 200, done.text
        state = done.json()
    assert state["finished"]
    found = client.get(f"{here}/recommendation").json()
    events = read_log(client.get(f"/i/{here.rpartition('/')[2]}/log").text)
    own = held(events, found["alternative"]["gains"], list(found["weights"].values()))
    assert own.questions == shown  # what is said over the wire is what is kept
    return own


# --- the law ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case[:2])))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    name, strategy, most = request.param
    folder = tmp_path_factory.mktemp("same")
    words = ["serve", name, "--strategy", strategy, "--seed", str(SEED)]
    words += ["--questions", "pairs"] if strategy != "paper" else []
    with Server(folder, *words, *(["--max-questions", str(most)] if most is not None else [])) as server:
        yield name, strategy, most, folder, server


def test_everywhere_the_same_is_asked_and_the_same_comes_of_it(case: tuple[Any, ...]) -> None:
    name, strategy, most, folder, server = case
    library, keys, acts = in_the_library(name, strategy, most)
    assert len(library.questions) > 1 and "skip" in library.replies  # or nothing was tested
    with server.client() as client:
        ways = {
            "terminal": in_the_terminal(folder, name, strategy, most, keys),
            "page": on_the_page(client, acts),
            "api": by_the_api(client, acts),
        }
    for way, found in ways.items():
        assert found == library, way
    if strategy != "paper":  # and the comparison can fail: another person is asked something else
        other, _, _ = in_the_library(name, "paper", most)
        assert other.questions != library.questions


def test_a_seed_means_the_same_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    words = ["ask", "coffee", "--questions", "pairs", "--seed", str(SEED), "--log", "answers.jsonl"]
    simulated = ["--simulate", "price=3,aroma=1", "--max-questions", "6"]
    done = processes.run([str(TOOL), *words, *simulated], cwd=tmp_path)
    assert done.returncode in (0, 5), done.stderr
    said = read_log((tmp_path / "answers.jsonl").read_text(encoding="utf-8"))
    page = Interview(load("coffee"), **Study.of(load("coffee"), "x", seed=SEED).interview_settings())
    asked = []
    for event in said:
        if event["event"] == "answer":
            question = page.ask()
            assert question is not None
            asked.append((question.first.value.tolist(), question.second.value.tolist()))
            page.tell(event["answer"])
    assert asked == [(event["first"], event["second"]) for event in said if event["event"] == "question"]
