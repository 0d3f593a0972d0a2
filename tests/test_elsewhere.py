"""What was said elsewhere: earlier answers on a similar problem hold here, whatever the references, scales and orders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff import (
    NOTHING,
    Alternative,
    Answer,
    Catalogue,
    Interview,
    LinearUser,
    Menu,
    Mixture,
    Objective,
    Question,
    Recommendation,
    Reference,
    earlier_answers,
    imported_comparisons,
    load,
)
from tradeoff.apps.cli.main import main
from tradeoff.errors import ArgumentError, LogError, ProblemError
from tradeoff.knowledge import statement
from tradeoff.log import read_log, write_log
from tradeoff.menus import Statement, comparisons
from tradeoff.model import Vector
from tradeoff.strategies import Step
from tradeoff.strategies.polytope import half_spaces
from tradeoff.users import relative_regret

AIMS = (Objective("price", "EUR", "min"), Objective("range", "km"), Objective("noise", "dB", "min"))
COFFEE = load("coffee")


def curious(problem, *, questions=6, seed=0):
    """Ask about anything: pairs, menus, lotteries with nothing; for logs, not for recommendations."""
    rng = np.random.default_rng(seed)
    some = Recommendation(problem.alternative(0), np.ones(len(problem.objectives)), 0, "asked")

    def anything() -> Alternative:
        kind, item = rng.integers(4), problem.alternative(int(rng.integers(len(problem.names))))
        if kind == 0:
            return problem.nothing
        chance = float(rng.random()) if kind == 1 else 1.0
        return Alternative(chance * item.value, Mixture((chance, 1 - chance), (item.plan, NOTHING)))

    for left in range(questions, 0, -1):
        if rng.random() < 0.5:
            asked = Question(anything(), anything())
        else:
            asks = "best" if rng.random() < 0.5 else "best-worst"
            asked = Menu(tuple(anything() for _ in range(int(rng.integers(3, 5)))), asks)
        yield Step(asked, lambda: some, left)
    return some


def catalogue(rng: np.random.Generator, items: int = 8, *, constant: bool = False) -> Catalogue:
    """A catalogue with the objectives in any order, its own ranges, and perhaps a reference far below everything."""
    aims = [AIMS[j] for j in rng.permutation(3)]
    ranges = {"price": (200, 900), "range": (20, 120), "noise": (30, 70)}
    spans = [np.sort(rng.uniform(*ranges[aim.name], 2)) for aim in aims]
    values = np.array([rng.uniform(*span, items) for span in spans]).T
    if constant:
        values[:, rng.integers(3)] = 50.0
    worst = {aim.name: float(2000 if aim.goal == "min" else 0) for aim in aims}
    return Catalogue(values, aims, reference=Reference("the worst", worst) if rng.random() < 0.5 else None)


def on_gains(problem: Catalogue, worth: dict[str, float]) -> Vector:
    """The weights on a problem's gains of somebody to whom a unit of each objective is worth this much."""
    return np.array([worth[o.name] for o in problem.objectives]) * np.abs(problem.scale)


@given(st.integers(0, 100_000), st.floats(0, 0.3), st.booleans())
def test_whoever_answered_then_fits_what_is_known_now(seed: int, precision: float, constant: bool) -> None:
    rng = np.random.default_rng(seed)
    then, now = catalogue(rng), catalogue(rng, constant=constant)
    worth = dict(zip(("price", "range", "noise"), rng.dirichlet(np.ones(3)) / [700, 100, 40], strict=True))
    earlier = Interview(then, curious, seed=seed)
    person = LinearUser(on_gains(then, worth), precision)
    while (question := earlier.ask()) is not None:
        earlier.tell(person(question)) if rng.random() < 0.8 else earlier.skip()
    if earlier.answers and rng.random() < 0.3:
        earlier.undo()
    # From the log alone, as a file has it.
    said = earlier_answers(now, json.loads(json.dumps(earlier.log)))
    meant = [record for record in earlier.answers if record[2] is not None]
    assert len(said.statements) + len(said.left_out) == len(meant)
    weights = on_gains(now, worth)
    # Cones have no precision above everything that can be gained; who cannot tell that apart counts with just that.
    person = np.append(weights, min(precision, weights.sum()))
    for one in said.statements:
        rows = half_spaces(*comparisons(one, Answer.FIRST))
        assert (rows @ person >= -1e-9 * np.abs(rows).max()).all(), one.text
        assert not one.differences[:, ~np.array(now.matters)].any()
    # What differs by no more than things here do says exactly what the same outcomes would say here.
    order = [then.objectives.index(o) for o in now.objectives]
    for _, question, answer in meant:
        differences, outcomes = comparisons(question, answer)
        natural = np.where(outcomes == -1, -1, 1)[:, None] * differences[:, order] * then.scale[order]
        if constant or np.abs(natural / now.scale).max() > 1 or (np.abs(differences) <= 1e-12).all():
            continue
        assert any(
            one.outcomes.tolist() == np.abs(outcomes).tolist()
            and np.allclose(one.differences * now.scale, natural, rtol=0, atol=1e-6)
            for one in said.statements
        )


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from(["certified", "careful", "paper"]), st.sampled_from([0.0, 0.02, 0.1]))
def test_knowledge_of_exact_people_never_contradicts_and_certificates_hold(
    seed: int, first: str, precision: float
) -> None:
    rng = np.random.default_rng(seed)
    then, now = catalogue(rng), catalogue(rng)
    worth = dict(zip(("price", "range", "noise"), rng.dirichlet(np.ones(3)) / [700, 100, 40], strict=True))
    earlier = Interview(then, first, max_questions=12)
    while (question := earlier.ask()) is not None:
        earlier.tell(LinearUser(on_gains(then, worth), precision)(question))
    person = LinearUser(on_gains(now, worth), precision)
    interview = Interview(now, "certified")
    for one in earlier_answers(now, earlier).statements:
        interview.know(one)
    known = len(interview.answers)
    while True:
        assert interview.conflicts() == ()
        found = interview.recommendation
        assert relative_regret(now, person, found.alternative) <= found.regret_bound + 1e-9
        question = interview.ask()
        if question is None:
            break
        interview.tell(person(question))
    assert found.questions == len(interview.answers) - known


def two_years() -> tuple[Catalogue, Catalogue, dict[str, float]]:
    """Two catalogues of the same things, and what somebody wants of them."""
    rng = np.random.default_rng(4)
    return catalogue(rng, 12), catalogue(rng, 12), {"price": 0.5 / 700, "range": 0.2 / 100, "noise": 0.3 / 40}


@pytest.mark.parametrize("strategy", ["certified", "careful"])
def test_earlier_answers_are_kept_resumed_undone_and_not_counted(strategy: str) -> None:
    then, now, worth = two_years()
    earlier = Interview(then, strategy)
    while (question := earlier.ask()) is not None:
        earlier.tell(LinearUser(on_gains(then, worth), 0.005)(question))
    interview = Interview(now, strategy)
    said = earlier_answers(now, earlier)
    for one in said.statements:
        interview.know(one)
    assert [one.text for _, one, _ in interview.answers] == [
        one.text for one in said.statements
    ]  # all, also after the end
    assert interview.recommendation.questions == 0
    again = Interview.resume(now, json.loads(json.dumps(interview.log)))
    assert [number for number, _, _ in again.answers] == [number for number, _, _ in interview.answers]
    mine, theirs = interview.ask(), again.ask()
    assert (mine is None) == (theirs is None) and (mine is None or mine.key == theirs.key)
    interview.undo(1)
    assert 1 not in [number for number, _, _ in interview.answers]
    person = LinearUser(on_gains(now, worth), 0.005)
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    assert interview.recommendation.questions == len(interview.answers) - (len(said.statements) - 1)


def test_knowledge_leaves_as_many_questions_as_before() -> None:
    interview = Interview(two_years()[1])
    before = interview.at_most
    assert before is not None and before < 25
    for _ in range(25):  # more than the strategy asks at most
        interview.know("price >= 1%")
    assert interview.at_most == before and interview.recommendation.questions == 0
    assert interview.ask() is not None


def test_what_is_stated_after_the_end_counts_and_a_contradiction_is_named() -> None:
    interview = Interview(COFFEE, "certified")
    person = LinearUser.scaled(COFFEE, [1, 1, 1, 1, 6])
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    asked = interview.recommendation.questions
    interview.know("price <= 1%")
    assert interview.recommendation.reason.startswith("the answers contradict")
    conflict = interview.conflicts()
    assert "price <= 1%" in [getattr(one, "text", "") for _, one, _ in conflict] and len(conflict) > 1
    assert interview.recommendation.questions == asked
    again = Interview.resume(COFFEE, json.loads(json.dumps(interview.log)))
    assert [number for number, _, _ in again.conflicts()] == [number for number, _, _ in conflict]
    interview.undo()
    assert interview.conflicts() == () and interview.finished


def test_other_objectives_are_refused_and_each_difference_is_named() -> None:
    rng = np.random.default_rng(0)
    then = Interview(catalogue(rng), curious)
    values = rng.random((4, 3))
    for aims, facts in [
        ([Objective("price", "USD", "min"), *AIMS[1:]], ["price", "USD", "EUR"]),
        ([Objective("price", "EUR", "max"), *AIMS[1:]], ["price", "max", "min"]),
        ([Objective("weight", "kg", "min"), *AIMS[1:]], ["weight", "only here", "price", "only there"]),
    ]:
        with refused(ArgumentError, *facts):
            earlier_answers(Catalogue(values, aims), then)
    with refused(ArgumentError, "'range'", "only there"):
        earlier_answers(Catalogue(values[:, :2], [AIMS[0], AIMS[2]]), then)


def test_logs_without_units_need_their_problem() -> None:
    golden = Path(__file__).parent / "golden"
    lines, about = golden / "log-2-careful.jsonl", load(golden / "problem-1-bicycles.json")
    with refused(ArgumentError, "units", "about="):
        earlier_answers(about, lines)
    assert earlier_answers(about, lines, about=about).statements
    with refused(LogError, "another problem"):
        earlier_answers(about, lines, about=load("dependent"))
    with refused(LogError, "missing.jsonl"):
        earlier_answers(about, "missing.jsonl")


@pytest.mark.parametrize(
    "changes",
    [{"units": ["EUR"]}, {"goals": ["min", "max", "up", "max", "max"]}, {"scale": [0.0, 1, 1, 1, 1]}, {"origin": None}],
)
def test_an_edited_header_is_found(changes: dict[str, object]) -> None:
    header = dict(Interview(COFFEE).log[0]) | changes
    with refused(LogError, next(iter(changes))):
        earlier_answers(COFFEE, [header])
    turned = dict(Interview(COFFEE).log[0])
    turned["scale"] = [-one for one in turned["scale"]]
    with refused(LogError, "'scale'"):
        earlier_answers(COFFEE, [turned])


# --- amounts and tables -------------------------------------------------------------------------------------------------


def test_amounts_are_compared_in_the_units_of_the_person() -> None:
    one = statement(COFFEE, "price 19 EUR/kg, crema 6 > price 16.5, crema 4")
    assert one.outcomes.tolist() == [1]
    np.testing.assert_allclose(one.differences[0] * COFFEE.scale, [0, 0, 2, 0, 2.5], atol=1e-12)
    assert statement(COFFEE, "price 19, crema 6 = crema 4, price 16.5").outcomes.tolist() == [0]
    for text, *facts in [
        ("price 19 > crema 4", "both sides"),
        ("price 19 > Slow", "both sides"),
        ("price 19, speed 3 > price 4, speed 3", "speed"),
        ("price 19 > price 19", "itself"),
        ("price 1900 = price 19", "more than anything"),
    ]:
        with refused(ArgumentError, *facts):
            statement(COFFEE, text)


def test_what_is_the_same_everywhere_says_nothing() -> None:
    flat = Catalogue([[1, 5, 2], [2, 5, 1]], AIMS)
    for text in ("range > price", "range >= 20%", "range 5, price 2 > range 4, price 1"):
        with refused(ArgumentError, "'range'", "the same"):
            statement(flat, text)


def test_a_table_of_comparisons(tmp_path: Path) -> None:
    names = [*load("coffee").names[:3], next(iter(load("coffee").beaten), load("coffee").names[3])]
    path = tmp_path / "said.csv"
    path.write_text(f"better;worse;equal\n{names[0]};{names[1]};\n{names[2]};{names[3]};yes\n")
    said = imported_comparisons(COFFEE, path)
    assert [one.text for one in said] == [f"{names[0]} > {names[1]}", f"{names[2]} = {names[3]}"]
    assert [one.outcomes.tolist() for one in said] == [[1], [0]]
    direct = statement(COFFEE, f"{names[0]} > {names[1]}")
    assert said[0].key == direct.key
    path.write_text(f"better,worse\n{names[0]},Nobody\n{names[1]},{names[1]}\n")
    with refused(ProblemError, "line 2", "Nobody", "line 3", "itself"):
        imported_comparisons(COFFEE, path)
    path.write_text(f"better,worse,equal\n{names[0]},{names[1]},perhaps\n")
    with refused(ProblemError, "line 2", "perhaps"):
        imported_comparisons(COFFEE, path)
    path.write_text("good,bad\na,b\n")
    with refused(ArgumentError, "better"):
        imported_comparisons(COFFEE, path)


def test_beaten_items_can_be_compared() -> None:
    whole = Catalogue([[300, 50, 40], [200, 40, 50], [400, 30, 60]], AIMS, names=["Alto", "Brio", "Dull"])
    kept = whole.subset(np.array([0, 1]))
    kept.whole = whole
    one = statement(kept, "Brio > Dull")
    np.testing.assert_allclose(one.differences[0] * kept.scale, [-200, 10, -10])


def test_in_the_terminal(tmp_path: Path) -> None:
    earlier = Interview(COFFEE, "certified", max_questions=2)
    person = LinearUser.scaled(COFFEE, [3, 1, 2, 1, 2])
    while (question := earlier.ask()) is not None:
        earlier.tell(person(question))
    log, table = tmp_path / "before.jsonl", tmp_path / "said.csv"
    log.write_text(write_log(earlier.log))
    table.write_text(f"better,worse\n{COFFEE.names[0]},{COFFEE.names[1]}\n")
    new = tmp_path / "new.jsonl"
    call = ["ask", "coffee", "--strategy", "certified", "--know-from", str(log), "--know-from", str(table), "--json"]
    result = CliRunner().invoke(main, [*call, "--log", str(new)], input="q\n")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert len([one for one in data["answers"] if "statement" in one]) == 3
    assert data["recommendation"]["questions"] == 0
    assert len(new.read_text().splitlines()) == 5  # the header, what is known, and a question
    again = Interview.resume(COFFEE, read_log(new.read_text()))
    assert all(isinstance(one, Statement) for _, one, _ in again.answers)
