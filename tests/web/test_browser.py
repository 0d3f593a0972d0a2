"""People in a real browser: by mouse, by keyboard, without JavaScript, on a phone, with a screen reader's eyes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web import browsers
from tests.web.browsers import accessible, no_sideways_scroll, opened, start
from tests.web.servers import Server
from tradeoff import LinearRespondent, load
from tradeoff.stores import open_store
from tradeoff.studies import Session, Study

BUTTONS = {"left": "A is better for me", "right": "B is better for me", "same": "About equal"}
KEYS = {"left": "a", "right": "b", "same": "="}


@pytest.fixture(scope="module")
def commute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("commute"), "serve", "commute") as server:
        yield server


def person(problem: Any) -> LinearRespondent:
    return LinearRespondent.scaled(problem, [3.0, 2.0, 1.0, 2.0, 0.5][: len(problem.objectives)], 0.01)


def log_of(server: Server, token: str) -> list[dict[str, Any]]:
    with open_store(f"sqlite:///{server.folder / 'tradeoff.db'}", write=False) as store:
        (study,) = Study.names(store)
        return store.read(study, token)


def interviewed(name: str, server: Server, token: str, say: Any, most: int = 40) -> list[str]:
    """Answer as a simulated person would, driving the library beside the page; return what was said, by side."""
    problem = load(name)
    session = Session.resume(problem, log_of(server, token)[:1], checks=False)
    user, said = person(problem), []
    while (prompt := session.ask()) is not None and len(said) < most:
        placed = prompt.by_place(user(prompt.question))
        said.append("same" if placed.best is None else ("left", "right")[placed.best])
        say(said[-1], len(said))
        session.tell(prompt.turn, placed)
    return said


def kept(server: Server, token: str) -> list[str]:
    """Return the kinds of the stored events; an answer that skips is a "skip"."""
    return ["skip" if event.get("reply") == "skip" else event["event"] for event in log_of(server, token)]


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_a_whole_interview_by_mouse(browser: Browser, commute: Server, script: bool) -> None:
    with opened(browser, commute, java_script_enabled=script) as page:
        token = start(page)

        def click(side: str, number: int) -> None:
            expect(page.get_by_text(re.compile(rf"^Question {number}\b")).first).to_be_visible()
            page.get_by_role("button", name=BUTTONS[side]).click()

        said = interviewed("commute", commute, token, click)
        page.wait_for_url("**/result")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert kept(commute, token).count("answer") == len(said) and kept(commute, token)[-1] == "end"
        with page.expect_download() as download:
            page.get_by_role("link", name="Download my answers").click()
        assert download.value.path().read_text().count("\n") == len(kept(commute, token))


def test_a_whole_interview_by_keyboard(browser: Browser, commute: Server) -> None:
    with opened(browser, commute) as page:
        page.goto("/")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/i/*")
        token = page.url.rpartition("/")[2]

        def ready(number: int) -> None:
            expect(page.get_by_text(re.compile(rf"^Question {number}\b")).first).to_be_visible()
            expect(page.locator("#shortcuts[data-seen]")).to_be_visible()  # the script has come, and keys count

        def press(side: str, number: int) -> None:
            ready(number)
            page.keyboard.press(KEYS[side])
            if number == 2:  # undo it, skip the question, undo that, and answer again
                for key, then in (("u", 2), ("s", 3), ("u", 2)):
                    ready(5 - then)
                    page.keyboard.press(key)
                ready(2)
                page.keyboard.press(KEYS[side])

        interviewed("commute", commute, token, press)
        page.wait_for_url("**/result")
        assert kept(commute, token).count("undo") == 2 and kept(commute, token).count("skip") == 1


def test_keys_can_be_switched_off_and_stay_off(browser: Browser, commute: Server) -> None:
    with opened(browser, commute) as page:
        token = start(page)
        page.get_by_label("keyboard shortcuts").uncheck()
        page.keyboard.press("a")
        page.reload()
        assert not page.get_by_label("keyboard shortcuts").is_checked()
        page.keyboard.press("b")
        page.keyboard.press("Control+a")
        page.wait_for_load_state("networkidle")  # nothing was sent
        assert "answer" not in kept(commute, token)
        page.get_by_label("keyboard shortcuts").check()
        page.get_by_role("heading", level=1).focus()
        expect(page.locator("#shortcuts[data-seen]")).to_be_visible()
        page.keyboard.press("a")
        expect(page.get_by_text(re.compile(r"^Question 2\b")).first).to_be_visible()
        assert kept(commute, token).count("answer") == 1


def test_a_key_pressed_twice_answers_one_question(browser: Browser, commute: Server) -> None:
    with opened(browser, commute) as page:
        token = start(page)
        expect(page.locator("#shortcuts[data-seen]")).to_be_visible()
        sent: list[str] = []
        page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
        # Two more presses come on the next page, before it can have been read: at once, and 0.2 seconds after it is shown.
        page.add_init_script(
            "if (!sessionStorage.pressed) document.addEventListener('DOMContentLoaded', () => {"
            "  sessionStorage.pressed = 'on the next page only';"
            "  const press = () => document.body.dispatchEvent("
            "    new KeyboardEvent('keydown', {key: 'a', bubbles: true, cancelable: true}));"
            "  press(); requestAnimationFrame(() => setTimeout(press, 200)); })"
        )
        page.keyboard.press("a")
        expect(page.locator("#progress")).not_to_contain_text("Question 1")
        expect(page.locator("#shortcuts[data-seen]")).to_be_visible()  # what was sent at once is under way by now
        assert len(sent) == 1 and "Question 2" in page.locator("#progress").inner_text()
        page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true}))")
        expect(page.locator("#progress")).to_contain_text("Question 3")
        assert len(sent) == 2 and kept(commute, token).count("answer") == 2


@pytest.mark.parametrize(
    ("name", "scheme"), [("commute", "light"), ("vacuum", "light"), ("coffee", "light"), ("commute", "dark")]
)
def test_pages_are_accessible_and_fit_a_phone(browser: Browser, tmp_path: Path, name: str, scheme: Any) -> None:
    with Server(tmp_path, "serve", name, "--questions", "pairs", "--max-questions", "2") as server:
        for width in (360, 1280):
            with opened(browser, server, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
                page.goto("/")
                accessible(page)
                no_sideways_scroll(page)
                start(page)
                for number in (1, 2):
                    expect(page.get_by_text(re.compile(rf"^Question {number}\b")).first).to_be_visible()
                    accessible(page)
                    no_sideways_scroll(page)
                    heights = [button.bounding_box() for button in page.locator("form.answers button").all()]
                    assert len(heights) == 4 and all(box is not None and box["height"] >= 44 for box in heights)
                    page.locator("details.details > summary").click()
                    accessible(page)
                    cards = [card.bounding_box() for card in page.locator(".pair > .card").all()]
                    assert cards[0] is not None and cards[1] is not None
                    beside = cards[1]["x"] > cards[0]["x"] + cards[0]["width"] - 1
                    assert beside == (width > 720)
                    page.get_by_role("button", name=BUTTONS["right"]).click()
                page.wait_for_url("**/result")
                for details in page.locator("details").all():
                    details.locator("summary").click()
                accessible(page)
                no_sideways_scroll(page)
        with opened(browser, server, color_scheme=scheme) as page:
            page.goto(server.admin)
            accessible(page)
        with browsers.context(browser, server.address, color_scheme=scheme) as context:
            page = context.new_page()  # which may complain that nothing is there
            missing = page.goto("/nowhere")
            assert missing is not None and missing.status == 404
            accessible(page)


@pytest.mark.parametrize("name", ["commute", "portfolio", "vacuum", "coffee"])
def test_a_question_fits_the_first_screen_of_a_phone(browser: Browser, tmp_path: Path, name: str) -> None:
    with (
        Server(tmp_path, "serve", name, "--questions", "pairs") as server,
        opened(browser, server, viewport={"width": 390, "height": 844}) as page,
    ):
        token = start(page)

        def look(side: str, number: int) -> None:
            expect(page.get_by_text(re.compile(rf"^Question {number}\b")).first).to_be_visible()
            form, compared = page.locator("form.answers"), page.locator("section.compare")
            end, below = form.bounding_box(), compared.bounding_box()
            assert end is not None and end["y"] + end["height"] <= 844
            assert (
                below is not None and below["y"] >= 0 and below["y"] + below["height"] <= end["y"]
            )  # nothing is hidden
            main = (
                "document.querySelector('form.answers').offsetTop + document.querySelector('form.answers').offsetHeight"
            )
            assert page.evaluate(main) <= 844
            details = page.locator("details.details")
            expect(details.locator(".pair")).to_be_hidden()
            details.locator("summary").first.click()
            expect(details.locator(".pair")).to_be_visible()
            no_sideways_scroll(page)
            page.get_by_role("button", name=BUTTONS[side]).click()

        assert len(interviewed(name, server, token, look)) > 2


def test_the_result_lists_what_would_change(browser: Browser, commute: Server) -> None:
    with opened(browser, commute) as page:
        token = start(page)
        interviewed("commute", commute, token, lambda side, _: page.get_by_role("button", name=BUTTONS[side]).click())
        page.wait_for_url("**/result")
        part = page.locator("details.whatif").first
        part.locator("summary").click()
        texts = [stretch.inner_text() for stretch in part.locator(".stops > li").all()]
        assert len(set(texts)) == len(texts) > 1
        assert sum("as recommended" in text for text in texts) == 1


@pytest.mark.parametrize("script", [True, False])
def test_a_result_is_ranked_weighed_asked_about_kept_and_shared(
    browser: Browser, commute: Server, script: bool
) -> None:
    with opened(browser, commute, java_script_enabled=script) as page:
        token = start(page)
        interviewed(
            "commute", commute, token, lambda side, _: page.get_by_role("button", name=BUTTONS[side]).click(), 4
        )
        page.goto(f"/i/{token}/result")
        assert page.locator(".ranking > li").count() >= 2
        page.get_by_label("Why not another one?").select_option(index=0)
        page.get_by_role("button", name="Tell me").click()
        expect(page.get_by_role("heading", name=re.compile("^Why not .*[?]$"))).to_be_visible()
        sliders = page.locator("form.weigh input[type=range]")
        for i in range(sliders.count()):
            sliders.nth(i).fill("100" if i == 1 else "0")  # nothing but money counts
        button = page.get_by_role("button", name="Rank by these")
        if script:
            expect(button).to_be_hidden()
        else:
            button.click()
        prices = [
            float(price) for price in re.findall(r"money ([\d.]+) EUR", page.locator(".weighed").text_content() or "")
        ]
        assert prices == sorted(prices) and prices[0] == 0
        page.locator("form.weigh input[type=number]").first.fill("60")  # at most so many minutes
        if not script:
            button.click()
        within = [float(time) for time in re.findall(r"time ([\d.]+) min", page.locator(".weighed").inner_text())]
        assert within and max(within) <= 60
        expect(page.get_by_text(re.compile(r"^\d+ of \d+ meet these limits\.$"))).to_be_visible()
        with page.expect_download() as kept_file:
            page.get_by_role("link", name="Keep this result").click()
        assert "How to repeat it" in Path(kept_file.value.path()).read_text()
        expect(page.locator("p.shared")).to_contain_text("all your answers, including later ones")
        page.get_by_role("button", name="Make a link to share").click()
        expect(page.locator("p.shared")).to_contain_text("all your answers, including later ones")
        expect(page.locator("a.whole")).to_be_in_viewport()  # the link appears where it was made
        expect(page.get_by_role("button", name="Copy", exact=True)).to_have_count(int(script))
        address = page.locator("a.whole").get_attribute("href") or ""
        assert token not in address
        page.goto(address)
        expect(page.get_by_role("heading", name="The questions and the answers")).to_be_visible()
        assert token not in page.content() and not page.locator("form").count()
        expect(page.locator("p.shared")).to_contain_text("all their answers")
        if script:
            accessible(page)
        no_sideways_scroll(page)
        before = kept(commute, token)
        page.goto(f"/i/{token}/result")
        page.get_by_role("button", name="Stop sharing").click()
        assert kept(commute, token) == before
    with commute.client() as client:
        assert client.get(address).status_code == 404
        client.post(f"/i/{token}/share")  # with somebody else
        assert client.get(address).status_code == 404


def test_an_invited_person_presses_start(browser: Browser, commute: Server) -> None:
    with commute.client() as client:
        client.post(f"{commute.admin}/links", data={"count": "1"})
        link = re.findall(r'href="(/i/[^"]+)"', client.get(commute.admin).text)[-1]
    with opened(browser, commute) as page:
        for _ in range(2):
            page.goto(link)
            accessible(page)
        assert kept(commute, link.rpartition("/")[2]) == ["header"]
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_text(re.compile(r"^Question 1\b")).first).to_be_visible()
        page.goto(link)
        expect(page.get_by_text(re.compile(r"^Question 1\b")).first).to_be_visible()
        assert kept(commute, link.rpartition("/")[2]) == ["header", "question"]


def test_two_tabs_answer_once(browser: Browser, commute: Server) -> None:
    with browsers.context(browser, commute.address) as context:
        one, two = context.new_page(), context.new_page()
        token = start(one)
        two.goto(one.url)
        one.get_by_role("button", name=BUTTONS["left"]).click()
        expect(one.get_by_text(re.compile(r"^Question 2\b")).first).to_be_visible()
        two.get_by_role("button", name=BUTTONS["right"]).click()
        expect(two.get_by_role("status")).to_contain_text("already been answered")
        expect(two.get_by_role("button", name="Undo my last answer")).to_be_visible()
        assert kept(commute, token).count("answer") == 1


def test_a_form_of_another_site_is_refused_by_a_real_browser(browser: Browser, commute: Server, tmp_path: Path) -> None:
    """A page from elsewhere sends an answer; the browser says where it comes from, and it does not count."""
    with browsers.context(browser, commute.address) as context:
        page = context.new_page()
        token = start(page)
        form = f'<form method=post action="{commute.address}/i/{token}/answer"><input name=turn value=1><button name=best value=1>x</button></form>'  # noqa: E501
        (tmp_path / "evil.html").write_text(form)
        page.goto((tmp_path / "evil.html").as_uri())
        with page.expect_response("**/answer") as response:
            page.get_by_role("button").click()
        assert response.value.status == 403
        assert "answer" not in kept(commute, token)
