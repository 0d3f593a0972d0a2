from __future__ import annotations

from typing import Any

import httpx
import jsonschema
import pytest

from tests.web.servers import Server
from tradeoff import Interview, LinearUser, load
from tradeoff.apps.web.openapi import document

COFFEE = load("coffee")


def valid(name: str, data: Any) -> None:
    """Raise unless the data is what the OpenAPI document says."""
    schemas = document()["components"]["schemas"]
    jsonschema.validate(data, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


def begun(client: httpx.Client) -> tuple[str, dict[str, Any]]:
    done = client.post("/api/interviews")
    assert done.status_code == 201
    valid("Begun", done.json())
    return f"/api/interviews/{done.json()['id']}", done.json()


def test_a_whole_interview_asks_what_the_library_asks(coffee: Server) -> None:
    person = LinearUser.scaled(COFFEE, [3, 1, 2, 1, 1], 0.01)
    interview = Interview(COFFEE, "paper")
    with coffee.client() as client:
        here, state = begun(client)
        while not state["finished"]:
            question = interview.ask()
            assert question is not None
            assert state["question"]["first"]["gains"] == question.first.value.tolist()
            assert state["question"]["second"]["gains"] == question.second.value.tolist()
            assert state["at_most"] == interview.at_most
            answer = person(question)
            interview.tell(answer)
            done = client.post(f"{here}/answers", json={"turn": state["turn"], "answer": answer.value})
            assert done.status_code == 200
            state = done.json()
            valid("State", state)
        found = client.get(f"{here}/recommendation").json()
        valid("Recommendation", found)
        assert interview.finished and found["complete"]
        assert found["alternative"]["gains"] == interview.recommendation.alternative.value.tolist()
        assert list(found["weights"].values()) == interview.recommendation.weights.tolist()
        ranked = client.get(f"{here}/ranking").json()
        valid("Ranking", ranked)
        assert ranked["ranking"][0]["gains"] == found["alternative"]["gains"] and ranked["drawn"] == 4_000
        for name in (COFFEE.names[0], ranked["ranking"][1]["name"], "1"):
            told = client.get(f"{here}/why-not", params={"name": name})
            valid("WhyNot", told.json())
        for name, status in (("", 422), ("x" * 300, 422), ("no such coffee", 404)):
            refused = client.get(f"{here}/why-not", params={"name": name})
            assert refused.status_code == status
            valid("Error", refused.json())


def test_undo_and_skip_and_looking_on_the_way(coffee: Server) -> None:
    with coffee.client() as client:
        here, first = begun(client)
        second = client.post(f"{here}/answers", json={"turn": 1, "answer": "skip"}).json()
        assert second["turn"] == 2 and second["answered"] == 1
        back = client.post(f"{here}/undo", json={"turn": 2}).json()
        assert back["question"] == first["question"] and back["turn"] == 3
        assert client.get(f"{here}/question").json() == back
        client.post(f"{here}/answers", json={"turn": 3, "answer": "same"})
        client.post(f"{here}/answers", json={"turn": 4, "answer": "first"})
        by_number = client.post(f"{here}/undo", json={"number": 2}).json()
        assert by_number["answered"] == 1
        found = client.get(f"{here}/recommendation").json()
        valid("Recommendation", found)
        assert not found["finished"] and not found["complete"]


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        ("answers", {"turn": 7, "answer": "first"}, 409),
        ("answers", {"turn": 1, "answer": "left"}, 422),
        ("answers", {"turn": 1}, 422),
        ("answers", {"turn": True, "answer": "first"}, 422),
        ("answers", {"turn": 0, "answer": "first"}, 422),
        ("answers", {"turn": 1, "answer": "first", "more": 1}, 422),
        ("answers", [1], 422),
        ("undo", {}, 409),
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
        valid("Error", done.json())
        assert client.get(f"{here}/question").json()["turn"] == before["turn"]


def test_deep_and_broken_json_is_refused(coffee: Server) -> None:
    headers = {"content-type": "application/json"}
    with coffee.client() as client:
        here, _ = begun(client)
        for body in (
            b"[" * 6_000,
            b"{",
            b"\xff",
            b'{"turn": 1e999, "answer": "first"}',
            b'{"turn": NaN, "answer": "same"}',
        ):
            done = client.post(f"{here}/answers", content=body, headers=headers)
            assert done.status_code in (400, 422), body[:20]
        assert client.post(f"{here}/answers", content=b"{}").status_code == 415
        assert client.get(f"{here}/answers").status_code == 405
