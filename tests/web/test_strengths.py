"""How much better something is, on the page and over the API: with and without scripts, by keyboard, on a phone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browsers import PHONES, accessible, answerable_on_a_phone, opened, start
from tests.web.servers import Server, begin, turn_of
from tests.web.test_api import valid
from tests.web.test_health import Client
from tests.web.test_menus import asked, kept
from tradeoff import load
from tradeoff.apps.web.app import make_app
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Sessions, Study
from tradeoff.studies.export import answer_rows

COFFEE = load("coffee")


def client_of(**settings: Any) -> tuple[Any, Sessions]:
    study = Study.of(COFFEE, "tasting", settings=settings, checks=True)
    sessions = Sessions(study, COFFEE, InMemoryStore())
    return Client(make_app(sessions, COFFEE)), sessions


def test_the_buttons_of_a_pair_say_by_how_much() -> None:
    client, sessions = client_of(strengths=True)
    page = begin(client)
    text = client.get(page).text
    buttons = re.findall(r'<button name="answer" value="([^"]*)" data-keys="([^"]*)"', text)
    assert buttons == [
        ("left", "a"), ("right", "b"), ("left a lot", "1"), ("left a little", "2"), ("right a little", "3"),
        ("right a lot", "4"), ("same", "= e"), ("skip", "s"),
    ]  # fmt: skip
    for number, said in enumerate(["left a lot", "right a little", "left"], start=1):
        assert client.post(f"{page}/answer", data={"turn": number, "answer": said}).status_code == 303
        client.get(page)
    for wrong in ("same a lot", "left very", "up a lot", "skip a little"):
        assert client.post(f"{page}/answer", data={"turn": 4, "answer": wrong}).status_code == 422, wrong
    # The fourth is an attention check: only which side counts there.
    assert client.post(f"{page}/answer", data={"turn": 4, "answer": "left a lot"}).status_code == 303
    result = client.get(f"{page}/result").text
    assert "You preferred A, by a lot." in result and "You preferred B, by a little." in result
    rows = answer_rows(COFFEE, sessions.store.logs("tasting"))
    assert [row["strength"] for row in rows] == ["a lot", "a little", None, None] and rows[3]["kind"] == "dominated"
    assert client.post(f"{page}/undo", data={}).status_code == 303


def test_without_strengths_the_page_has_none_and_takes_none() -> None:
    client, sessions = client_of()
    page = begin(client)
    text = client.get(page).text
    assert "a lot" not in text and "strengths" not in text
    assert client.post(f"{page}/answer", data={"turn": 1, "answer": "left a lot"}).status_code == 422
    assert (
        client.post(f"{page}/answer", data={"turn": turn_of(client.get(page).text), "answer": "left"}).status_code
        == 303
    )
    assert all("strength" not in row for row in answer_rows(COFFEE, sessions.store.logs("tasting")))
    here = f"/api/interviews/{page.rpartition('/')[2]}"
    assert "strengths" not in client.get(f"{here}/question").json()
    reply = client.post(f"{here}/answers", json={"turn": 2, "answer": "first", "strength": "a lot"})
    assert reply.status_code == 409 and "leave strength out" in reply.json()["error"]


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4", "best-of-3"])
def test_over_the_api(questions: str) -> None:
    client, sessions = client_of(strengths=True, questions=questions)
    begun = client.post("/api/interviews").json()
    valid("Begun", begun)
    assert begun["strengths"] == ["a lot", "a little"]
    answers, token = f"/api/interviews/{begun['id']}/answers", begun["id"]
    said = {
        "pairs": {"answer": "first"}, "best-worst-4": {"best": 2, "worst": 1}, "best-of-3": {"best": 2}
    }[questions]  # fmt: skip
    for wrong in ({**said, "strength": "huge"}, {**said, "strength": 2}):
        assert client.post(answers, json={"turn": 1, **wrong}).status_code == 422
    for unfit in ("same", "skip"):
        assert client.post(answers, json={"turn": 1, "answer": unfit, "strength": "a lot"}).status_code == 409
    valid("Given", {"turn": 1, **said, "strength": "a lot"})
    reply = client.post(answers, json={"turn": 1, **said, "strength": "a lot"})
    if questions == "best-of-3":  # better than which?
        assert reply.status_code == 409 and "only the best of several" in reply.json()["error"]
        reply = client.post(answers, json={"turn": 1, **said})
    valid("State", reply.json())
    assert reply.json()["answered"] == 1
    event = sessions.store.read("tasting", token)[2]
    assert event.get("strength") == (None if questions == "best-of-3" else "a lot")
    if questions == "best-worst-4":
        text = client.get(f"/i/{token}/result").text
        assert "You said that 2 is best and 1 worst, by a lot." in text


def test_a_menu_without_scripts_on_a_phone_and_by_keyboard(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("coffee")
    with Server(folder, "serve", "coffee", "--questions", "best-worst-4", "--strengths") as server:
        with opened(browser, server, java_script_enabled=False, viewport=PHONES[0]) as page:
            token = start(page)
            for name in ("2 is best for me", "4 is worst for me", "The best is a little better than the worst"):
                page.get_by_role("radio", name=name).check()
            page.get_by_role("button", name="Go on").click()
            asked(page, 2)
            page.get_by_role("radio", name="1 is best for me").check()
            page.get_by_role("radio", name="2 is worst for me").check()  # and nothing about how much
            page.get_by_role("button", name="Go on").click()
            asked(page, 3)
        choices = [event for event in kept(server, token) if event["event"] == "choice"]
        assert [event.get("strength") for event in choices] == ["a little", None]
        for size in PHONES:
            with opened(browser, server, viewport=size) as page:
                start(page)
                assert answerable_on_a_phone(page) == ["Go on", "All about equal", "Skip this question"]
        with opened(browser, server) as page:
            token = start(page)
            accessible(page)
            for key in "241":  # the best, the worst, a lot
                page.keyboard.press(key)
            expect(page.get_by_role("radio", name="The best is a lot better than the worst")).to_be_checked()
            page.keyboard.press("Enter")
            asked(page, 2)
        assert kept(server, token)[2]["strength"] == "a lot"


def test_a_pair_on_a_phone(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    words = ["A is better", "B is better", "A, a lot", "A, a little", "B, a little", "B, a lot", "About equal", "Skip"]
    folder = tmp_path_factory.mktemp("coffee")
    with Server(folder, "serve", "coffee", "--questions", "pairs", "--strengths") as server:
        for size in PHONES:
            with opened(browser, server, viewport=size) as page:
                token = start(page)
                assert answerable_on_a_phone(page) == words
                for number, (name, strength) in enumerate(
                    [
                        ("B, a little better for me", "a little"),
                        ("A, a lot better for me", "a lot"),
                        ("A is better for me", None),
                    ],
                    start=2,
                ):
                    page.get_by_role("button", name=name).click()
                    expect(page.locator("#progress")).to_contain_text(f"Question {number}")
                    assert kept(server, token)[-2].get("strength") == strength
                answerable_on_a_phone(page, whole=False)
        with opened(browser, server, color_scheme="dark") as page:  # where there is room, the letter stands above
            start(page)
            accessible(page)
            expect(page.get_by_role("group", name="How much better is B?").get_by_role("button")).to_have_text(
                ["a little", "a lot"], use_inner_text=True
            )
