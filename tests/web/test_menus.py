"""Menus in a real browser and over the API: by mouse without scripts, by keyboard, on a phone, for screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browsers import PHONES, accessible, answerable_on_a_phone, no_sideways_scroll, opened, start
from tests.web.servers import Server
from tradeoff.stores import open_store
from tradeoff.studies import Study


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("coffee"), "serve", "coffee", "--questions", "best-worst-4") as server:
        yield server


def kept(server: Server, token: str) -> list[dict[str, Any]]:
    with open_store(f"sqlite:///{server.folder / 'tradeoff.db'}", write=False) as store:
        (study,) = Study.names(store)
        return store.read(study, token)


def choose(page: Page, best: int, worst: int) -> None:
    page.get_by_role("radio", name=f"{best} is best for me").check()
    page.get_by_role("radio", name=f"{worst} is worst for me").check()
    page.get_by_role("button", name="Next", exact=True).click()


def asked(page: Page, number: int) -> None:
    expect(page.locator("#progress")).to_contain_text(f"Question {number}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Which of these four is best for you, and which worst?")


def test_on_phones_and_by_mouse_without_scripts(browser: Browser, coffee: Server) -> None:
    for size in PHONES:
        with opened(browser, coffee, viewport=size) as page:
            start(page)
            assert answerable_on_a_phone(page) == ["Next", "All about equal", "Skip this question"]
    with opened(browser, coffee, java_script_enabled=False, viewport=PHONES[0]) as page:
        token = start(page)
        asked(page, 1)
        no_sideways_scroll(page)
        for head in page.locator(".menu thead .goal").all():  # what plays no part in the question is shown all the same
            expect(head).to_have_text(re.compile(r"^.+, .+"))
        expect(page.locator("dl.meanings:visible")).to_have_count(1)  # on the first question only
        choose(page, 2, 4)
        asked(page, 2)
        expect(page.locator("dl.meanings:visible")).to_have_count(0)
        choose(page, 3, 3)  # the same twice
        expect(page.get_by_role("status")).to_contain_text("two different ones")
        asked(page, 2)
        page.get_by_role("button", name="All about equal").click()
        asked(page, 3)
        page.get_by_role("button", name="Undo my last answer").click()
        asked(page, 2)
        page.get_by_role("button", name="Skip this question").click()
        asked(page, 3)
        page.get_by_role("link", name="See the result so far").click()
        page.get_by_role("heading", name="Your answers").click()
        expect(page.get_by_text("You said that 2 is best and 4 worst.").first).to_be_visible()
        no_sideways_scroll(page)
    events = kept(coffee, token)
    question, answer = events[1:3]
    assert question["event"] == "question" and question["asks"] == "best-worst"
    order = question["order"]
    assert sorted(order) == [0, 1, 2, 3] and (answer["best"], answer["worst"]) == (order[1], order[3])
    assert [event["event"] for event in events[3:8]] == ["question", "answer", "question", "undo", "question"]


@pytest.mark.parametrize(("width", "height"), [(768, 900), (900, 800), (1024, 768), (1280, 720)])
def test_buttons_are_on_the_first_screen_with_their_words_whole(
    browser: Browser, coffee: Server, width: int, height: int
) -> None:
    with opened(browser, coffee, viewport={"width": width, "height": height}) as page:
        start(page)
        answerable_on_a_phone(page)
        for part in page.locator(".menu-answers > button, .pick, .hint").all():
            box = part.bounding_box()
            assert box is not None and box["height"] < 60, part.inner_text()  # one line of text


def test_by_keyboard_and_for_screen_readers(browser: Browser, coffee: Server) -> None:
    with opened(browser, coffee) as page:
        token = start(page)
        asked(page, 1)
        accessible(page)
        page.keyboard.press("d")
        expect(page.locator("details.details")).to_have_attribute("open", "")
        page.keyboard.press("3")
        expect(page.get_by_role("radio", name="3 is best for me")).to_be_checked()
        page.get_by_role("radio", name="3 is worst for me").check()  # cannot be both
        expect(page.get_by_role("radio", name="3 is best for me")).not_to_be_checked()
        expect(page.locator(".hint")).to_contain_text("Now choose the best.")
        page.locator(".menu tbody td:nth-child(2)").first.click()  # a tap chooses a column, another undoes that
        expect(page.get_by_role("radio", name="1 is best for me")).to_be_checked()
        page.locator(".menu thead th:nth-child(2)").click()
        expect(page.get_by_role("radio", name="1 is best for me")).not_to_be_checked()
        page.keyboard.press("1")
        expect(page.get_by_role("radio", name="1 is best for me")).to_be_checked()
        expect(page.locator(".hint")).to_contain_text(re.compile("^Best: .* Worst: "))
        page.keyboard.press("Enter")
        asked(page, 2)
        page.keyboard.press("2")
        page.keyboard.press("4")
        page.keyboard.press("Enter")
        asked(page, 3)
        expect(page.locator("#shortcuts[data-seen]")).to_be_visible()
        page.keyboard.press("=")
        expect(page.locator("#progress")).to_contain_text("Question 4")
    replies = [event.get("reply") for event in kept(coffee, token) if event["event"] == "answer"]
    assert replies == [None, None, "equal"]


def test_over_the_api(coffee: Server) -> None:
    with coffee.client() as client:
        begun = client.post("/api/interviews").raise_for_status().json()
        address = f"/api/interviews/{begun['id']}"
        assert begun["question"]["asks"] == "best-worst" and len(begun["question"]["options"]) == 4
        unfit = ({"best": 1}, {"best": 5, "worst": 1}, {"best": 1, "worst": 1})
        senseless = ("first", {"best": 0, "worst": 1}, {"worst": 2}, {}, [1, 2])
        for status, wrong in [*((409, one) for one in unfit), *((422, one) for one in senseless)]:
            reply = client.post(f"{address}/answers", json={"turn": 1, "reply": wrong})
            assert reply.status_code == status, (wrong, reply.text)
        sent = {"turn": 1, "reply": {"best": 2, "worst": 4}}
        told = client.post(f"{address}/answers", json=sent).raise_for_status().json()
        assert (told["turn"], told["answered"]) == (2, 1)
        assert client.post(f"{address}/answers", json=sent).status_code == 409
        told = client.post(f"{address}/answers", json={"turn": 2, "reply": "equal"}).raise_for_status().json()
        assert told["answered"] == 2
        told = client.post(f"{address}/undo", json={"turn": 3}).raise_for_status().json()
        assert told["answered"] == 1
        told = client.post(f"{address}/statements", json={"text": "price > aroma"}).raise_for_status().json()
        assert told["answered"] == 2 and told["question"] is not None
        assert client.post(f"{address}/statements", json={"text": "speed > price"}).status_code == 409
