"""Sessions of menus: checks stay pairs, the best and the worst are asked about again, and the data tells all of it."""

from __future__ import annotations

import numpy as np
import pytest

from tradeoff import Answer, LinearUser, load
from tradeoff.errors import ArgumentError
from tradeoff.log import fold
from tradeoff.menus import Choice
from tradeoff.studies import MenuPrompt, Prompt, Session, Study
from tradeoff.studies.export import answer_rows, columns_of, largest_question

COFFEE = load("coffee")


def held(flip: bool = False) -> Session:
    """Return a finished session with checks; ``flip`` answers the repeated pair the other way round."""
    session = Session.begin(COFFEE, checks=True, questions="best-worst-4", sides=2)
    person = LinearUser.scaled(COFFEE, [3, 1, 2, 1, 2], 0.01)
    while (prompt := session.ask()) is not None:
        reply = person(prompt.question)
        if isinstance(prompt, Prompt) and prompt.check == "repeat" and flip:
            reply = reply.swapped
        session.tell(prompt.turn, reply)
    return session


def test_the_best_and_the_worst_are_asked_about_again() -> None:
    state = held().state
    assert state.flags == {"dominated": "passed", "repeat": "passed"}
    menu = next(one for one in state.given if isinstance(one.reply, Choice) and not one.reply.equal)
    repeat = next(one.shown for one in state.given if one.check == "repeat")
    assert repeat.first == menu.shown.alternatives[menu.reply.best]
    assert repeat.second == menu.shown.alternatives[menu.reply.worst]
    assert repeat.expected is Answer.FIRST
    assert held(flip=True).state.flags["repeat"] == "failed"


def test_a_check_takes_no_choice() -> None:
    session = Session.begin(COFFEE, checks=True, questions="best-worst-4")
    person = LinearUser.scaled(COFFEE, [3, 1, 2, 1, 2], 0.01)
    while isinstance(prompt := session.ask(), MenuPrompt):
        session.tell(prompt.turn, person(prompt.question))
    assert prompt.check == "dominated"
    with pytest.raises(ArgumentError, match="two alternatives are being compared"):
        session.tell(prompt.turn, Choice.of_best(0, 4))


def test_an_export_has_a_column_for_each_alternative() -> None:
    session = held()
    rows = answer_rows(COFFEE, {"ann": session.events})
    study = Study.of(COFFEE, "tasting", settings={"questions": "best-worst-4"})
    columns = columns_of(COFFEE, largest_question(study))[0]
    assert all(list(row) == columns for row in rows)
    menu, pair = (next(row for row in rows if row["asks"] == asks) for asks in ("best-worst", "pair"))
    assert pair["fourth price"] is None and pair["left"] in ("first", "second") and pair["order"] is None
    given = next(one for one in fold(session.events).given if one.check is None)
    assert menu["order"] == " ".join(str(i + 1) for i in given.shown.order)
    assert menu["answer"].count(" > ") == 2 and menu["chosen"].startswith("best ")
    best = given.shown.order[int(menu["chosen"].split()[1].rstrip(",")) - 1]
    assert menu["answer"].split(" > ")[0] == str(best + 1)
    place = ("first", "second", "third", "fourth")[best]
    outcome = COFFEE.outcome(np.array(given.shown.alternatives[best]))
    assert menu[f"{place} price"] == pytest.approx(float(outcome[4]))


def test_what_is_said_without_being_asked_is_in_the_data() -> None:
    session = Session.begin(COFFEE, checks=False)
    session.know("price > aroma")
    (row,) = answer_rows(COFFEE, {"ann": session.events})
    assert row["kind"] == "statement" and row["chosen"] == "price > aroma" and row["first price"] is None
    session.undo()
    assert session.answered == 0
