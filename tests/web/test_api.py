from __future__ import annotations

from typing import Any

import httpx
import jsonschema
import pytest

from tests.studies.test_service import Full, NoQuestions, new_service
from tests.web.servers import AppClient, Server
from tradeoff import Interview, LinearRespondent, load
from tradeoff.apps.web.app import make_app
from tradeoff.apps.web.openapi import document
from tradeoff.presentation.data import reply_data

COFFEE = load("coffee")


def valid(name: str, data: Any) -> None:
    """Raise unless the data is what the OpenAPI document says."""
    schemas = document()["components"]["schemas"]
    jsonschema.validate(data, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


def begun(client: httpx.Client) -> tuple[str, dict[str, Any]]:
    done = client.post("/api/interviews")
    assert done.status_code == 201
    valid("BegunData", done.json())
    return f"/api/interviews/{done.json()['id']}", done.json()


def test_a_whole_interview_asks_what_the_library_asks(coffee: Server) -> None:
    person = LinearRespondent.scaled(COFFEE, [3, 1, 2, 1, 1], 0.01)
    interview = Interview(COFFEE, "paper")
    with coffee.client() as client:
        here, state = begun(client)
        while not state["finished"]:
            question = interview.ask()
            assert question is not None
            assert state["question"]["asks"] == "best" and state["at_most"] == interview.at_most
            assert [o["name"] for o in state["objectives"]] == [o.name for o in COFFEE.objectives]
            gains = [option["gains"] for option in state["question"]["options"]]
            places = [gains.index(option.value.tolist()) for option in question.options]
            assert sorted(places) == [0, 1]  # the same options, in an order of this participant's own
            reply = person(question)
            interview.tell(reply)
            sent = {"turn": state["turn"], "reply": reply_data(reply.renumbered(places))}
            done = client.post(f"{here}/answers", json=sent)
            assert done.status_code == 200
            state = done.json()
            valid("StateData", state)
        found = client.get(f"{here}/recommendation").json()
        valid("RecommendationData", found)
        assert interview.finished and found["complete"]
        assert found["option"]["gains"] == interview.recommendation.option.value.tolist()
        assert list(found["weights"].values()) == interview.recommendation.weights.tolist()
        ranked = client.get(f"{here}/ranking").json()
        valid("RankingData", ranked)
        assert ranked["ranking"][0]["gains"] == found["option"]["gains"] and ranked["drawn"] == 4_000
        for name in (COFFEE.names[0], ranked["ranking"][1]["name"], "1"):
            told = client.get(f"{here}/why-not", params={"name": name})
            valid("WhyNotData", told.json())
        for name, status in (("", 422), ("x" * 300, 422), ("no such coffee", 404)):
            refused = client.get(f"{here}/why-not", params={"name": name})
            assert refused.status_code == status
            valid("ErrorData", refused.json())


def test_undo_and_skip_and_looking_on_the_way(coffee: Server) -> None:
    with coffee.client() as client:
        here, first = begun(client)
        second = client.post(f"{here}/answers", json={"turn": 1, "reply": "skip"}).json()
        assert second["turn"] == 2 and second["answered"] == 1
        back = client.post(f"{here}/undo", json={"turn": 2}).json()
        assert back["question"] == first["question"] and back["turn"] == 3
        assert client.get(f"{here}/question").json() == back
        client.post(f"{here}/answers", json={"turn": 3, "reply": "equal"})
        client.post(f"{here}/answers", json={"turn": 4, "reply": {"best": 1}})
        by_number = client.post(f"{here}/undo", json={"number": 2}).json()
        assert by_number["answered"] == 1
        found = client.get(f"{here}/recommendation").json()
        valid("RecommendationData", found)
        assert not found["finished"] and not found["complete"]


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("answers", {"turn": 7, "reply": {"best": 1}}, 409),
        ("answers", {"turn": 1, "reply": {"best": 3}}, 409),  # of two
        ("answers", {"turn": 1, "reply": {"best": 1, "worst": 2}}, 409),  # only the best is asked for
        ("answers", {"turn": 1, "reply": "first"}, 422),
        ("answers", {"turn": 1, "reply": "none"}, 422),
        ("answers", {"turn": 1, "reply": {"best": 0}}, 422),
        ("answers", {"turn": 1, "reply": {"best": "1"}}, 422),
        ("answers", {"turn": 1, "reply": {}}, 422),
        ("answers", {"turn": 1, "reply": {"best": 1, "more": 1}}, 422),
        ("answers", {"turn": 1, "answer": "first"}, 422),  # version 1
        ("answers", {"turn": 1}, 422),
        ("answers", {"turn": True, "reply": "equal"}, 422),
        ("answers", {"turn": 0, "reply": "equal"}, 422),
        ("answers", {"turn": 1, "reply": "equal", "more": 1}, 422),
        ("answers", [1], 422),
        ("undo", {}, 422),
        ("undo", {"turn": 1}, 409),
        ("statements", {"turn": 1}, 422),
        ("statements", {"text": "price > aroma", "turn": 1}, 409),  # this strategy learns only from its questions
        ("undo", {"turn": 5}, 409),
        ("undo", {"number": 1}, 409),
        ("undo", {"number": "1"}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(coffee: Server, path: str, sent: Any, status: int) -> None:
    with coffee.client() as client:
        here, before = begun(client)
        done = client.post(f"{here}/{path}", json=sent)
        assert done.status_code == status
        valid("ErrorData", done.json())
        assert client.get(f"{here}/question").json()["turn"] == before["turn"]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("answers", {"turn": 2, "reply": {"best": 1}}),
        ("undo", {"turn": 2}),
        ("statements", {"text": "price > aroma"}),
    ],
)
def test_what_was_saved_is_not_called_unsaved_when_the_next_question_cannot_be_stored(path: str, sent: Any) -> None:
    """The question is shown all the same; it is stored with its answer."""
    store = NoQuestions()
    client: Any = AppClient(make_app(new_service(store, strategy="careful")))
    here = f"/api/interviews/{client.post('/api/interviews').json()['id']}"
    assert client.post(f"{here}/answers", json={"turn": 1, "reply": {"best": 1}}).status_code == 200
    before = len(store.read("tasting", here.rpartition("/")[2]))
    store.failing = True
    done = client.post(f"{here}/{path}", json=sent)
    assert done.status_code == 200 and done.json()["turn"] == 3 and done.json()["question"] is not None
    assert len(store.read("tasting", here.rpartition("/")[2])) == before + 1
    assert client.get(f"{here}/question").json() == done.json()
    assert client.post("/api/interviews").status_code == 503  # who has not begun yet is told so
    store.failing = False
    assert client.get(f"{here}/question").json() == done.json()
    assert len(store.read("tasting", here.rpartition("/")[2])) == before + 2


def test_an_answer_that_cannot_be_stored_is_said_and_can_be_sent_again() -> None:
    store = Full()
    client: Any = AppClient(make_app(new_service(store, strategy="careful")))
    here = f"/api/interviews/{client.post('/api/interviews').json()['id']}"
    store.full = True
    for path, sent in (("answers", {"turn": 1, "reply": "equal"}), ("statements", {"text": "price > aroma"})):
        done = client.post(f"{here}/{path}", json=sent)
        assert done.status_code == 503 and "retry-after" in done.headers and "may not" in done.json()["error"]
        valid("ErrorData", done.json())
    store.full = False
    assert client.post(f"{here}/answers", json={"turn": 1, "reply": "equal"}).json()["answered"] == 1


def test_deep_and_broken_json_is_refused(coffee: Server) -> None:
    headers = {"content-type": "application/json"}
    with coffee.client() as client:
        here, _ = begun(client)
        for body in (
            b"[" * 6_000,
            b"{",
            b"\xff",
            b'{"turn": 1e999, "reply": "skip"}',
            b'{"turn": NaN, "reply": "equal"}',
        ):
            done = client.post(f"{here}/answers", content=body, headers=headers)
            assert done.status_code in (400, 422), body[:20]
        assert client.post(f"{here}/answers", content=b"{}").status_code == 415
        assert client.get(f"{here}/answers").status_code == 405
