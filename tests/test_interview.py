"""Law 3 and the machinery of interviews: replay is the only state."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies.people import KINDS, person, random_catalogue, run
from tradeoff import ArgumentError, Catalogue, Interview, LinearRespondent, LogError, Recommendation, Reply, load
from tradeoff.interview import read_log
from tradeoff.log import write_log
from tradeoff.model import FIRST, SECOND
from tradeoff.problem import Problem
from tradeoff.strategies import Strategy, paper

seeds = st.integers(0, 2**32 - 1)
SETTINGS = [
    {"strategy": "paper"},
    {"strategy": "paper", "basis": "spanner"},
    {"strategy": "paper", "theorem": 2},
    {"strategy": "paper", "max_questions": 7},
]


def same(a: Recommendation, b: Recommendation) -> bool:
    return (
        a.option.value.tobytes() == b.option.value.tobytes()
        and a.weights.tobytes() == b.weights.tobytes()
        and (a.questions, a.reason, a.complete, a.regret_bound) == (b.questions, b.reason, b.complete, b.regret_bound)
    )


def through_text(log) -> list[dict]:
    """Return the log as it comes back from a file."""
    return read_log("".join(json.dumps(event) + "\n" for event in log))


def other_than(reply: Reply) -> Reply:
    """Return another reply to a pair: the opposite one, or the first option if none was preferred."""
    return SECOND if reply == FIRST else FIRST


@given(seeds, st.integers(2, 5), st.sampled_from(KINDS), st.sampled_from(SETTINGS), st.floats(0, 0.2))
def test_law_3_replay_gives_the_same_questions_and_recommendation(
    seed: int, k: int, kind: str, settings: dict, precision: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, k, kind=kind)
    user = person(rng, problem, precision)
    first = Interview(problem, **settings)
    checkpoints = []
    while (question := first.ask()) is not None:
        checkpoints.append((through_text(first.log), question.key, first.recommendation))
        first.tell(user(question))
    for log, key, recommendation in checkpoints[:: max(1, len(checkpoints) // 4)]:
        again = Interview.resume(problem, log)
        question = again.ask()
        assert question is not None and question.key == key
        assert same(again.recommendation, recommendation)
        assert list(again.log) == log
    again = Interview.resume(problem, through_text(first.log))
    assert again.finished and same(again.recommendation, first.recommendation)


@given(seeds, st.sampled_from(SETTINGS), st.integers(1, 6))
def test_undo_is_as_if_it_had_never_been_said(seed: int, settings: dict, back: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, 3)
    user = person(rng, problem, 0.01)
    plain, edited = Interview(problem, **settings), Interview(problem, **settings)
    for _ in range(back):
        if plain.ask() is None:
            break
        answer = user(plain.ask())
        plain.tell(answer)
        assert edited.ask() is not None
        edited.tell(other_than(answer))
        edited.ask()
        edited.undo()
        edited.ask()
        edited.tell(answer)
    a, b = plain.ask(), edited.ask()
    assert (a is None) == (b is None) and (a is None or a.key == b.key)
    assert same(plain.recommendation, edited.recommendation)
    again = Interview.resume(problem, through_text(edited.log))
    assert same(again.recommendation, edited.recommendation)


def test_any_answer_can_be_undone() -> None:
    problem = load("coffee")
    user = person(np.random.default_rng(0), problem, 0.01)
    interview = Interview(problem, "paper")
    for _ in range(12):
        interview.tell(user(interview.ask()))
    second = interview.answers[1]
    interview.undo(2)
    assert 2 not in [answer.number for answer in interview.answers]
    question = interview.ask()
    assert question.key == second.question.key  # it is asked again, and the later answers are still there
    interview.tell(second.reply)
    assert len(interview.answers) == 12
    resumed = Interview.resume(problem, through_text(interview.log))
    assert [answer.number for answer in resumed.answers] == [answer.number for answer in interview.answers]


def test_nonsense_changes_nothing() -> None:
    interview = Interview(load("commute"), "paper")
    with pytest.raises(ArgumentError, match=r"call ask\(\) first"):
        interview.tell("first")
    question = interview.ask()
    before = interview.log
    for nonsense in ("maybe", "", None, 3, -1, 0.5, True, "FIRST", "same", ["first"], Reply(0, 1), Reply(word="none")):
        with pytest.raises(ArgumentError, match=r"2 options|none of these"):
            interview.tell(nonsense)
    assert interview.log == before and interview.ask() is question
    with pytest.raises(ArgumentError, match="no answer to undo"):
        interview.undo()
    with pytest.raises(ArgumentError, match="no answer number 9"):
        interview.undo(9)
    interview.tell("first")
    assert len(interview.answers) == 1
    finished = Interview(Catalogue([[1.0], [2.0]]), "paper")
    with pytest.raises(ArgumentError, match="finished"):
        finished.tell("first")


def test_wrong_arguments_are_explained(tmp_path) -> None:
    with pytest.raises(ArgumentError, match=r"load it first: tradeoff.load\('commute'\)"):
        Interview("commute")  # type: ignore[arg-type]
    coffee = load("coffee")
    for target in ("abc", "0.01", 0, 2):
        with pytest.raises(ArgumentError, match="target"):
            Interview(coffee, target=target)
    for settings in ({}, {"questions": "best-worst-4"}):
        with pytest.raises(ArgumentError, match="2 and 5"):
            LinearRespondent([1, 2])(Interview(coffee, **settings).ask())
    with pytest.raises(ArgumentError, match="3 to undo; the numbers of the answers are: none"):
        Interview(coffee).undo(3)


def test_a_log_file_is_resumed_by_its_path(tmp_path) -> None:
    coffee, path = load("coffee"), tmp_path / "ann.jsonl"
    interview = Interview(coffee)
    interview.ask()
    interview.tell("first")
    path.write_text(write_log(interview.log))
    for log in (path, str(path)):
        assert Interview.resume(coffee, log).log == interview.log
    assert "coffee" in repr(interview) and "1 answer>" in repr(interview)
    found = interview.recommendation
    assert found.option.plan.name in repr(found)
    with pytest.raises(LogError, match=r"none\.jsonl.*No such file"):
        Interview.resume(coffee, tmp_path / "none.jsonl")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LogError, match=r"ann\.jsonl.*not text"):
        Interview.resume(coffee, path)


def test_a_skipped_question_can_be_undone_and_resumed() -> None:
    problem = load("commute")
    interview = Interview(problem, "paper", basis="spanner")
    first = interview.ask()
    interview.skip()
    assert interview.ask().key != first.key
    again = Interview.resume(problem, through_text(interview.log))
    assert again.ask().key == interview.ask().key
    interview.undo()
    assert interview.ask().key == first.key


def test_the_budget_is_kept_and_said() -> None:
    problem = load("commute")
    user = person(np.random.default_rng(1), problem, 0.001)
    for budget in (0, 1, 5):
        interview = Interview(problem, "paper", max_questions=budget)
        if budget:
            assert interview.at_most == budget
        result = run(interview, user)
        assert result.questions == budget and not result.complete and "budget" in result.reason
    assert Interview(problem, "paper", max_questions=10_000).at_most < 10_000


def test_recommendations_get_better_on_the_way() -> None:
    problem = load("commute")
    rng = np.random.default_rng(2)
    start, end = [], []
    for _ in range(20):
        user = person(rng, problem, 0.001)
        interview = Interview(problem, "paper")
        start.append(user.worth(interview.recommendation.option.value))
        end.append(user.worth(run(interview, user).option.value))
    assert np.mean(end) > np.mean(start) and np.mean(end) > 0.99


def test_implied_questions_are_skipped_and_nothing_is_lost() -> None:
    rng = np.random.default_rng(5)
    asked, skipping = [], []
    for _ in range(15):
        problem = random_catalogue(rng, 4)
        user = person(rng, problem, 0.01)
        everything = Interview(problem, "paper", skip_implied=False)
        less = Interview(problem, "paper", skip_implied=True)
        a, b = run(everything, user), run(less, user)
        asked.append(a.questions)
        skipping.append(b.questions)
        assert a.option.value.tobytes() == b.option.value.tobytes()
        order = iter([answer.question.key for answer in everything.answers])
        assert all(answer.question.key in order for answer in less.answers)  # a subsequence
    assert sum(skipping) < 0.8 * sum(asked)


@pytest.fixture
def log() -> list[dict]:
    problem = load("commute")
    interview = Interview(problem, "paper", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
    for reply in ("first", "second", "equal"):
        interview.ask()
        interview.tell(reply)
    interview.ask()
    return through_text(interview.log)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log: log.clear(), "does not begin with a header"),
        (lambda log: log.pop(0), "does not begin with a header"),
        (lambda log: log[0].update(format="tradeoff-log/0"), "format is 'tradeoff-log/0'; this version reads"),
        (lambda log: log[0].update(problem="x"), "about another problem"),
        (lambda log: log[0].update(strategy="oracle"), "no strategy 'oracle'"),
        (lambda log: log[0].update(settings=None), "the header of the log: .*settings"),
        (lambda log: log[0]["settings"].update(volume=11), "cannot be used by this version"),
        (lambda log: log[1].update(options=[[0.5] * 5, [0.4] * 5]), "event 2 of the log: the question was about"),
        (lambda log: log[1].update(options="?"), "event 2 of the log: .*options"),
        (lambda log: log[2].update(best="perhaps"), "event 3 of the log: .*best"),
        (lambda log: log[2].update(best=2), "event 3 of the log: .*does not name the best of 2 options"),
        (lambda log: log[2].update(number=7), "answers question 7, which was not asked"),
        (lambda log: log.pop(1), "which was not asked"),
        (lambda log: log.append({"event": "party"}), "'party'"),
        (lambda log: log.append({"event": "undo", "number": 99, "time": log[0]["time"]}), "no answer number 99"),
    ],
)
def test_a_log_that_does_not_fit_is_a_clear_error(log: list[dict], change, message: str) -> None:
    Interview.resume(load("commute"), log)
    change(log)
    with pytest.raises(LogError, match=message):
        Interview.resume(load("commute"), log)


def test_a_log_of_another_problem_is_refused(log: list[dict]) -> None:
    with pytest.raises(LogError, match=r"another problem \('commute'"):
        Interview.resume(load("coffee"), log)


def test_log_times_and_texts(log: list[dict]) -> None:
    assert [event["event"] for event in log] == ["header", *["question", "answer"] * 3, "question"]
    assert all(event["time"] == "2026-01-02T00:00:00Z" for event in log)
    text = "".join(json.dumps(event) + "\n" for event in log)
    assert read_log(text) == log
    assert read_log(text + '{"event": "ans') == log  # a torn last line was never acknowledged
    with pytest.raises(LogError, match="line 3 of the log is not an event"):
        read_log("\n".join([*text.split("\n")[:2], "garbage", *text.split("\n")[2:]]))
    with pytest.raises(LogError, match="line 1"):
        read_log("[" * 200_000 + "\n")


def test_fingerprints_tell_problems_apart() -> None:
    base = Catalogue([[1.0, 2.0], [2.0, 1.0]])
    assert base.fingerprint == Catalogue([[1.0, 2.0], [2.0, 1.0]]).fingerprint
    assert base.fingerprint != Catalogue([[1.0, 2.0], [2.0, 1.5]]).fingerprint
    assert base.fingerprint != Catalogue([[1.0, 2.0], [2.0, 1.0]], names=["a", "b"]).fingerprint
    assert load("commute").fingerprint == load("commute").fingerprint != load("vacuum").fingerprint


def test_doubtful_answers_are_known_by_their_numbers_whatever_was_undone() -> None:
    """A strategy counts in its own order; what it doubts must be the answer that is named."""
    problem = load("coffee")
    seen = doubted = 0
    for seed in range(30):
        interview = Interview(problem, "careful", max_questions=14)
        user = LinearRespondent.scaled(problem, np.random.default_rng(seed).dirichlet(np.ones(5)), 0.01)
        while (question := interview.ask()) is not None:
            wrong = len(interview.answers) % 5 == 4
            interview.tell(other_than(user(question)) if wrong else user(question))
        interview.undo(2)
        while (question := interview.ask()) is not None:
            interview.tell(user(question))
        standing = {answer.number: answer for answer in interview.answers}
        for number in interview.recommendation.doubtful:
            doubted += 1
            seen += standing[number].reply != user(standing[number].question)
    assert doubted > 5 and seen > 0.6 * doubted  # most of what is doubted was wrong indeed, under that very number


# --- record, then think ----------------------------------------------------------------------------------------------


class Watched:
    """The paper's strategy, which notes what it is told and can be made to fail."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.broken = False

    def __call__(self, problem: Problem) -> Strategy:
        inner = paper(problem)
        step = next(inner)
        while True:
            reply = yield step
            self.told.append(reply)
            if self.broken:
                raise RuntimeError("the strategy fails")
            try:
                step = inner.send(reply)
            except StopIteration as end:
                return end.value


def test_telling_and_undoing_run_no_strategy() -> None:
    watched = Watched()
    interview = Interview(load("coffee"), watched)
    first = interview.ask()
    interview.tell("first")
    assert watched.told == [] and interview.log[-1]["event"] == "answer"
    second = interview.ask()
    assert watched.told == [FIRST]
    interview.skip()
    interview.undo()  # of what was not told to the strategy yet
    assert watched.told == [FIRST] and interview.log[-1]["event"] == "undo"
    assert interview.ask().key == second.key and watched.told == [FIRST] * 2  # which began anew
    interview.undo()
    assert interview.ask().key == first.key


def test_what_was_recorded_survives_a_strategy_that_fails() -> None:
    problem, watched = load("coffee"), Watched()
    interview = Interview(problem, watched)
    interview.ask()
    interview.tell("second")
    watched.broken = True
    for look in (interview.ask, lambda: interview.recommendation, lambda: interview.finished, interview.conflicts):
        with pytest.raises(RuntimeError):
            look()
    assert [event["event"] for event in interview.log] == ["header", "question", "answer"]
    with pytest.raises(ArgumentError, match="no answer number 7"):
        interview.undo(7)
    again = Interview.resume(problem, through_text(interview.log), strategy=watched)  # which does not think either
    watched.broken = False
    plain = Interview(problem, "paper")
    plain.ask()
    plain.tell("second")
    expected = plain.ask().key
    assert interview.ask().key == again.ask().key == expected
    assert len(interview.answers) == 1


def always_the_corners(problem: Problem) -> Strategy:
    return (yield from paper(problem, basis="spanner"))


def test_a_strategy_of_one_s_own_is_logged_by_its_name_and_given_again() -> None:
    problem = load("coffee")
    interview = Interview(problem, always_the_corners, max_questions=3)
    while interview.ask() is not None:
        interview.tell("first")
    header = interview.log[0]
    assert header["strategy"] == interview.strategy == f"{__name__}:always_the_corners"
    log = through_text(interview.log)
    again = Interview.resume(problem, log, strategy=always_the_corners)
    assert again.log == interview.log and again.finished
    with pytest.raises(LogError, match=r"give it again: Interview.resume\(problem, log, strategy=\.\.\.\)"):
        Interview.resume(problem, log)
    with pytest.raises(LogError, match="not with 'paper'; give that one"):
        Interview.resume(problem, log, strategy="paper")
    with pytest.raises(ArgumentError, match="does not take these options"):
        Interview(problem, always_the_corners, colour=1)
    with pytest.raises(ArgumentError):
        Interview(problem, 3)
