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
from tradeoff import Interview, LinearRespondent, load
from tradeoff.log import Event, read_log
from tradeoff.model import SKIP, Question, Reply
from tradeoff.presentation.data import reply_data
from tradeoff.studies import Study

SEED = 5  # of the strategy; with another one "careful" and "certified" ask something else
ORDER = 3

Act = Reply | None  # a reply by position; None: undo

CASES = [
    ("coffee", "careful", "pairs", None),
    ("coffee", "careful", "best-worst-4", None),
    ("coffee", "certified", "pairs", None),
    ("coffee", "paper", None, 15),
    ("commute", "careful", "pairs", 6),
    ("commute", "certified", "pairs", 6),
    ("dependent", "paper", None, None),
]


@dataclass(frozen=True)
class Held:
    """An interview as it was held somewhere: what was asked, in order, and what came of it."""

    questions: list[list[list[float]]]
    replies: list[Any]
    value: list[float]
    weights: list[float]


def held(events: list[Event], value: list[float], weights: list[float]) -> Held:
    asked = [event["options"] for event in events if event["event"] == "question"]
    said = [
        event.get("reply", (event.get("best"), event.get("worst"))) if event["event"] == "answer" else "undo"
        for event in events
        if event["event"] in ("answer", "undo")
    ]
    return Held(asked, said, value, weights)


def person(name: str) -> Callable[[int, Question], list[Act]]:
    """Return what somebody does at their n-th question: they skip the second and change their mind about the fourth."""
    problem = load(name)
    user = LinearRespondent.scaled(problem, [3.0, 1.0, 2.0, 1.0, 0.5][: len(problem.objectives)], 0.01)

    def acts(number: int, question: Question) -> list[Act]:
        said = user(question)
        other = next(reply for reply in question.replies if reply != said)
        return [SKIP] if number == 2 else [other, None] if number == 4 else [said]

    return acts


def settings_of(strategy: str, questions: str | None, most: int | None) -> dict[str, Any]:
    return {"max_questions": most} | ({} if questions is None else {"seed": SEED, "questions": questions})


# --- the four ways ---------------------------------------------------------------------------------------------------


def in_the_library(
    name: str, strategy: str, questions: str | None, most: int | None
) -> tuple[Held, list[str], list[Act]]:
    """Hold it; return also the keys that say the same in the terminal, and what was done."""
    interview = Interview(load(name), strategy, order_seed=ORDER, **settings_of(strategy, questions, most))
    acts, keys, done = person(name), [], []
    number = 0
    while (question := interview.ask()) is not None:
        number += 1
        for act in acts(number, question):
            if act is None:
                interview.undo()
                keys.append("u")
            else:
                shown = interview.next()
                assert shown is not None
                keys.append(key_of(shown.by_place(act), question))
                interview.tell(act)
            done.append(act)
            if act is not None and len(acts(number, question)) > 1:
                interview.ask()  # as everybody else does, who is shown the next question before they undo
    found = interview.recommendation
    return held(list(interview.log), found.option.value.tolist(), found.weights.tolist()), keys, done


def key_of(placed: Reply, question: Question) -> str:
    """Return what is typed in the terminal."""
    if placed.word is not None:
        return {"skip": "s", "equal": "="}[placed.word]
    assert placed.best is not None
    if question.is_pair:
        return "ab"[placed.best]
    return f"{placed.best + 1}" if placed.worst is None else f"{placed.best + 1} {placed.worst + 1}"


def in_the_terminal(
    folder: Path, name: str, strategy: str, questions: str | None, most: int | None, keys: list[str]
) -> Held:
    words = ["ask", name, "--strategy", strategy, "--seed", str(ORDER), "--log", "answers.jsonl", "--json"]
    words += ["--max-questions", str(most)] if most is not None else []
    words += ["-o", f"seed={SEED}", "--questions", questions] if questions is not None else []
    done = processes.run([str(TOOL), *words], cwd=folder, input="".join(f"{key}\n" for key in keys))
    assert done.returncode in (0, 5), done.stderr  # 5: that was all that it was allowed to ask
    found = json.loads(done.stdout)
    assert found["finished"]
    said = found["recommendation"]
    events = read_log((folder / "answers.jsonl").read_text(encoding="utf-8"))
    return held(events, said["option"]["gains"], list(said["weights"].values()))


def on_the_page(client: httpx.Client, acts: list[Act]) -> Held:
    here = begin(client)
    for act in acts:
        page = client.get(here)
        assert page.status_code == 200
        turn = str(turn_of(page.text))
        if act is None:
            done = client.post(f"{here}/undo", data={"turn": turn})
        else:
            order = [e for e in read_log(client.get(f"{here}/log").text) if e["event"] == "question"][-1]["order"]
            said = reply_data(act.renumbered([order.index(position) for position in range(len(order))]))
            fields = {"reply": said} if isinstance(said, str) else said
            done = client.post(f"{here}/answer", data={"turn": turn, **fields})
        assert done.status_code == 303 and "notice" not in done.headers["location"]
    assert client.get(here).headers["location"] == f"{here}/result"
    assert client.get(f"{here}/result").status_code == 200
    events = read_log(client.get(f"{here}/log").text)
    assert events[-1]["event"] == "end"
    return held(events, events[-1]["value"], events[-1]["weights"])


def by_the_api(client: httpx.Client, acts: list[Act]) -> Held:
    state = client.post("/api/interviews").json()
    here = f"/api/interviews/{state['id']}"
    log = f"/i/{here.rpartition('/')[2]}/log"
    for act in acts:
        assert not state["finished"]
        last = [e for e in read_log(client.get(log).text) if e["event"] == "question"][-1]
        # What is sent is what is logged.
        shown = [option["gains"] for option in state["question"]["options"]]
        assert shown == [last["options"][position] for position in last["order"]]
        assert state["question"]["asks"] == last.get("asks", "best")
        sent: dict[str, Any] = {"turn": state["turn"]}
        if act is not None:
            order = last["order"]
            sent["reply"] = reply_data(act.renumbered([order.index(position) for position in range(len(order))]))
        done = client.post(f"{here}/{'undo' if act is None else 'answers'}", json=sent)
        assert done.status_code == 200, done.text
        state = done.json()
    assert state["finished"]
    found = client.get(f"{here}/recommendation").json()
    return held(read_log(client.get(log).text), found["option"]["gains"], list(found["weights"].values()))


# --- the law ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case[:3])))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    name, strategy, questions, most = request.param
    folder = tmp_path_factory.mktemp("same")
    words = ["serve", name, "--strategy", strategy, "--seed", str(SEED)]
    words += ["--questions", questions] if questions is not None else []
    with Server(folder, *words, *(["--max-questions", str(most)] if most is not None else [])) as server:
        yield name, strategy, questions, most, folder, server


def test_everywhere_the_same_is_asked_and_the_same_comes_of_it(case: tuple[Any, ...]) -> None:
    name, strategy, questions, most, folder, server = case
    library, keys, acts = in_the_library(name, strategy, questions, most)
    assert len(library.questions) > 1 and "skip" in library.replies  # or nothing was tested
    with server.client() as client:
        ways = {
            "terminal": in_the_terminal(folder, name, strategy, questions, most, keys),
            "page": on_the_page(client, acts),
            "api": by_the_api(client, acts),
        }
    for way, found in ways.items():
        assert found == library, way
    if strategy != "paper":  # and the comparison can fail: another person is asked something else
        other, _, _ = in_the_library(name, "paper", None, most)
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
            asked.append(question.values.tolist())
            page.tell(Reply(event.get("best"), event.get("worst"), event.get("reply")))
    assert asked == [event["options"] for event in said if event["event"] == "question"]
