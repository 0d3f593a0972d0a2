from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tradeoff
from tradeoff.apps.cli.arguments import settings_from
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.main import Commands
from tradeoff.log import ShownQuestion, fold
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Reply
from tradeoff.presentation import sentences
from tradeoff.presentation.data import reply_data
from tradeoff.presentation.question import reply_sentence
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.stores import JsonLines

app = Commands("tradeoff", commands={"ask": ask})
PAPER = ("--strategy", "paper")
SPANNER = (*PAPER, "-o", "basis=spanner")
PROMPT = "a prefer A"  # the first of the keys that are named below a pair
KEY = {FIRST: "a", SECOND: "b", EQUAL: "=", SKIP: "s"}
BUNDLED = ["coffee", "commute", "dependent", "portfolio", "vacuum"]


def run(*arguments: str, keys: Sequence[str] | str = (), columns: int = 100, **environment: str) -> Result:
    typed = "".join(f"{key}\n" for key in keys)
    return CliRunner(env={"COLUMNS": str(columns)} | environment).invoke(app, ["ask", *arguments], input=typed)


def interviewed(name: str, weights: Sequence[float], **settings: Any) -> tuple[list[str], tradeoff.Interview]:
    """Return the keys that a person would press, found by driving the library beside the command, and the interview."""
    problem = tradeoff.load(name)
    person = LinearRespondent.scaled(problem, weights, 0.01)
    interview = tradeoff.Interview(problem, "paper", order_seed=0, **settings)
    keys = []
    while shown := interview.next():
        interview.ask()
        keys.append(key(shown, person(shown.question)))
        interview.tell(person(shown.question))
    return keys, interview


def key(shown: ShownQuestion, reply: Reply) -> str:
    """Return the key that gives this reply to a pair, by which option is shown as A."""
    return KEY[shown.by_place(reply)]


def replies(log: Path) -> list[Reply]:
    """Return every reply in a log, undone or not."""
    return [given.reply for given in fold(tradeoff.interview.read_log(log.read_text())).given]


def found(done: Result) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# --- whole interviews ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "settings"), [("dependent", ()), ("commute", SPANNER[2:]), ("coffee", SPANNER[2:])])
def test_piped_answers_are_asked_what_the_library_asks(name: str, settings: tuple[str, ...]) -> None:
    weights = [3.0, 1.0, 2.0, 1.0, 0.5][: len(tradeoff.load(name).objectives)]
    keys, interview = interviewed(name, weights, **({"basis": "spanner"} if settings else {}))
    done = run(name, *PAPER, *settings, "--json", keys=keys)
    assert done.exit_code == 0, done.output
    result = found(done)
    assert [answer["reply"] for answer in result["answers"]] == [reply_data(a.reply) for a in interview.answers]
    for shown, answer in zip(result["answers"], interview.answers, strict=True):
        assert [option["gains"] for option in shown["options"]] == answer.asked.values.tolist()
    assert result["recommendation"]["option"]["gains"] == interview.recommendation.option.value.tolist()
    assert list(result["recommendation"]["weights"].values()) == interview.recommendation.weights.tolist()
    assert result["recommendation"]["finished"] and result["recommendation"]["complete"]
    assert f"Question {len(keys)}," in done.stderr
    page = run(name, *PAPER, *settings, keys=keys)
    assert page.exit_code == 0 and f"{len(keys)} questions: " in page.stdout and "about " in page.stdout


@pytest.mark.parametrize("name", BUNDLED)
def test_a_simulated_person_is_served_on_every_bundled_problem(name: str) -> None:
    first = tradeoff.load(name).objectives[0].name
    other = tradeoff.load(name).objectives[1].name
    call = (name, *SPANNER, "--simulate", f"{first}=3,{other}=1", "--precision", "0.001")
    result = found(run(*call, "--json"))
    assert result["recommendation"]["finished"] and 0 <= result["relative_regret"] <= 0.02
    stories = result["recommendation"]["option"]["stories"]
    assert sum(story["share"] for story in stories) == pytest.approx(1) and all(story["words"] for story in stories)
    page = run(*call)
    assert page.exit_code == 0 and page.stderr == ""
    assert "The best plan for you" in page.stdout and "simulated person loses" in page.stdout
    numbered = re.findall(r"^ +\d+\. (?:A|B|about equal) +[AB] ", page.stdout, re.MULTILINE)
    assert len(numbered) == result["recommendation"]["questions"] == len(result["answers"])


def test_undo_takes_back_and_skip_passes_over() -> None:
    interview = tradeoff.Interview(tradeoff.load("dependent"), "paper", order_seed=0)
    keys = ["u"]
    for reply in (FIRST, SKIP, SECOND, None, EQUAL):
        shown = interview.next()
        interview.ask()
        if reply is None:
            keys.append("u")
            interview.undo()
        else:
            keys.append(key(shown, reply).replace("=", "E"))
            interview.tell(reply)
    done = run("dependent", *PAPER, "--json", keys=[*keys, "q"])
    assert done.exit_code == 0
    result = found(done)
    assert [answer.reply for answer in interview.answers] == [FIRST, SKIP, EQUAL]
    assert [answer["reply"] for answer in result["answers"]] == [{"best": 1}, "skip", "equal"]
    assert list(result["recommendation"]["weights"].values()) == interview.recommendation.weights.tolist()
    assert all(reply_sentence(reply, 2) in done.stderr for reply in (FIRST, SECOND, EQUAL, SKIP))


def test_nonsense_says_what_is_possible_and_changes_nothing() -> None:
    keys = ["x", "yes please", "\x1b[A", "ab", "", "a"]
    done = run("dependent", *PAPER, keys=keys)
    assert done.exit_code == 0
    assert done.stdout.count("is not an answer") == 4 and "\x1b" not in done.stdout
    assert done.stdout.count(reply_sentence(FIRST, 2)) == 1 and "1 question so far." in done.stdout


def test_when_the_answers_end_early_it_ends_as_with_q() -> None:
    ended, quit_ = (run("dependent", *PAPER, keys=keys) for keys in (["a", "b"], ["a", "b", "q"]))
    assert ended.exit_code == quit_.exit_code == 0 and ended.stdout == quit_.stdout
    assert "The best plan for you, so far" in ended.stdout and "2 questions so far." in ended.stdout
    assert "tradeoff ask dependent --log answers.jsonl" in ended.stdout
    assert PROMPT not in ended.stdout  # nobody is there to be prompted


def test_a_budget_that_runs_out_is_said_and_exits_with_5() -> None:
    done = run("dependent", *PAPER, "--max-questions", "3", keys=["a"] * 9)
    assert done.exit_code == 5 and "The best plan for you, so far" in done.stdout
    assert (
        "3 questions: the budget of 3 questions is used up" in done.stdout and "Question 3, the last one" in done.stdout
    )
    assert "Question 2, at most 1 more" in done.stdout
    none = run("dependent", *PAPER, "--max-questions", "0", "--json")
    assert none.exit_code == 5 and found(none)["recommendation"]["questions"] == 0


def test_many_questions_are_warned_of_once(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    assert "at most 104" in run("coffee", *PAPER, "--log", log, keys=["a", "q"]).stderr
    assert run("coffee", "--resume", log, keys=["q"]).stderr == ""
    assert run("coffee", *PAPER, "--max-questions", "3", keys=["q"]).stderr == ""
    warned = run("coffee", *PAPER, keys=["a", "a"])
    assert warned.stderr.count("note: with 5 objectives this strategy asks many questions") == 1
    assert run("coffee", *SPANNER, keys=["a"]).stderr == run("vacuum", *PAPER, keys=["q"]).stderr == ""


def test_help_is_there_at_every_question() -> None:
    done = " ".join(run("coffee", *PAPER, keys=["?", "q"]).stdout.split())
    assert "about equal to you" in done and '"the worst coffee imaginable"' in done


@pytest.mark.parametrize("name", ["coffee", "commute", "dependent", "vacuum"])
def test_without_a_strategy_it_is_the_careful_one_and_json_says_all_it_knows(name: str) -> None:
    names = [o.name for o in tradeoff.load(name).objectives]
    result = found(run(name, "--max-questions", "2", "--json", keys=["a", "a"]))
    plan = result["recommendation"]
    assert result["strategy"] == "careful" and plan["questions"] <= 2
    for key in ("regret_bound", "likely_regret", "likely_worst"):
        assert 0 <= plan[key] <= 1
    assert plan["robust_bound"] is None or 0 <= plan["robust_bound"] <= 1
    assert plan["expected_left"] >= 0 and plan["target"] == 0.01
    assert list(plan["importance"]) == names
    assert all(0 <= low <= high <= 1 + 1e-9 for low, high in plan["importance"].values())
    assert set(plan["unidentified"]) <= set(names) and set(plan["doubtful"]) <= {1, 2}
    paper = found(run(name, *PAPER, "--json", keys=["q"]))["recommendation"]
    assert paper["regret_bound"] is paper["importance"] is paper["expected_left"] is None


# --- contradictions --------------------------------------------------------------------------------------------------


def contradiction() -> tuple[list[str], list[int]]:
    """Return keys that contradict each other, and the numbers of the answers that do; without the second, more is asked."""
    problem = tradeoff.load("commute")
    for seed in range(50):
        interview = tradeoff.Interview(problem, "certified", order_seed=0)
        rng, keys = np.random.default_rng(seed), []
        while shown := interview.next():
            interview.ask()
            reply = (FIRST, SECOND, EQUAL)[rng.integers(3)]
            keys.append(key(shown, reply))
            interview.tell(reply)
        numbers = [answer.number for answer in interview.conflicts()]
        if len(numbers) > 1:
            interview.undo(numbers[1])
            if not interview.finished:
                return keys, numbers
    raise AssertionError("nobody contradicts themselves")


def test_a_contradiction_is_shown_and_an_answer_can_be_taken_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    keys, conflict = contradiction()
    call = ("commute", "--strategy", "certified")
    done = run(*call, "--log", str(log), keys=[*keys, "x", "0", str(len(conflict) + 1), "2", "q"])
    assert done.exit_code == 0, done.output
    shown, _, rest = re.split("(Undid that answer)", done.stdout)
    first_words = " ".join(sentences.CONTRADICTION.split()[:4])
    listed = shown.rpartition("contradict each other")[2]
    assert first_words in shown
    assert re.findall(r"^ +(\d+)\. ", listed, re.MULTILINE) == [str(n + 1) for n in range(len(conflict))]
    assert "Question " in rest and "The best plan for you, so far" in rest and f"--resume {log}" in rest
    events = tradeoff.interview.read_log(log.read_text())
    assert [e["number"] for e in events if e["event"] == "undo"] == [conflict[1]]
    assert found(run("commute", "--resume", str(log), "--json", keys=["q"]))["recommendation"]["finished"] is False
    for left in (["q"], []):
        ended = run(*call, keys=[*keys, *left])
        assert ended.exit_code == 5 and "the answers contradict each other" in ended.stdout
        assert "Undid" not in ended.stdout


# --- logs ------------------------------------------------------------------------------------------------------------


def test_quitting_and_resuming_gives_what_is_found_without_a_pause(tmp_path: Path) -> None:
    log = tmp_path / "my log.jsonl"
    keys, _ = interviewed("dependent", [1, 3, 1])
    whole = found(run("dependent", *PAPER, "--json", keys=keys))
    begun = run("dependent", *PAPER, "--log", str(log), keys=[*keys[:3], "s", "u", "q"])
    assert begun.exit_code == 0 and f"--resume '{log}'" in begun.stdout
    paused = run("dependent", "--resume", str(log), keys=[*keys[3:5], "q"])
    assert paused.exit_code == 0 and "Question 4," in paused.stdout
    ended = found(run("dependent", "--resume", str(log), "--json", keys=keys[5:]))
    assert ended["recommendation"] == whole["recommendation"]
    assert [a["reply"] for a in ended["answers"]] == [a["reply"] for a in whole["answers"]]
    kinds = [event["event"] for event in tradeoff.interview.read_log(log.read_text())]
    assert len(replies(log)) == kinds.count("answer") == len(keys) + 1
    assert replies(log).count(SKIP) == kinds.count("undo") == 1
    again = found(run("dependent", "--resume", str(log), "--json"))
    assert again == ended  # nothing is left to ask


def test_a_simulated_interview_can_be_kept_and_resumed(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    run("dependent", *PAPER, "--log", log, keys=["a"])
    (reply,) = replies(Path(log))
    done = run("dependent", "--resume", log, "--simulate", "first=1", "--json")
    assert done.exit_code == 0 and found(done)["answers"][0]["reply"] == reply_data(reply)


def test_a_log_is_never_begun_over_another(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run("dependent", *PAPER, "--log", str(log), keys=["a", "q"])
    before = log.read_bytes()
    refused = run("dependent", *PAPER, "--log", str(log), keys=["b"])
    assert refused.exit_code == 4 and "exists and is not empty" in refused.stderr
    other = run("coffee", "--resume", str(log), keys=["b"])
    assert other.exit_code == 4 and "another problem ('dependent'" in other.stderr and str(log) in other.stderr
    with JsonLines.open(log):
        held = run("dependent", "--resume", str(log), keys=["b"])
    assert held.exit_code == 4 and "in use by another process" in held.stderr
    mine = tmp_path / "thesis.txt"
    mine.write_text("years of work")
    for option in ("--log", "--resume"):
        assert run("dependent", *(PAPER if option == "--log" else ()), option, str(mine), keys=["a"]).exit_code == 4
    assert log.read_bytes() == before and mine.read_text() == "years of work"
    assert run("dependent", "--resume", str(tmp_path / "nowhere")).exit_code == 4


def test_a_torn_line_is_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run("dependent", *PAPER, "--log", str(log), keys=["a", "b", "q"])
    events, before = tradeoff.interview.read_log(log.read_text()), replies(log)
    last = max(i for i, event in enumerate(events) if event["event"] == "answer")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:last]) + lines[last][:-9])
    done = run("dependent", "--resume", str(log), keys=["=", "q"])
    assert done.exit_code == 0 and "Question 2," in done.stdout
    assert replies(log) == [before[0], EQUAL]


def test_which_option_is_a_is_drawn_and_kept(tmp_path: Path) -> None:
    """Over seeds both sides come first about equally often; "a" is what is shown as A, and the log says which it was."""
    first = []
    for seed in range(40):
        log = tmp_path / f"log-{seed}"
        done = run("coffee", *PAPER, "--seed", str(seed), "--log", str(log), keys=["a", "q"])
        events = tradeoff.interview.read_log(log.read_text())
        assert events[0]["order_seed"] == seed and events[2]["best"] == events[1]["order"][0]
        first.append((events[1]["order"][0], done.stdout.split("Question 2")[0]))
    assert 8 < [option for option, _ in first].count(0) < 32
    assert [len({page for option, page in first if option == shown_as_a}) for shown_as_a in (0, 1)] == [1, 1]


def test_a_log_of_a_page_can_be_gone_on_with_in_the_terminal(tmp_path: Path) -> None:
    """It holds more than the interview's own events; nothing is lost or written twice."""
    from tradeoff.studies import Session

    problem = tradeoff.load("coffee")
    session = Session.begin(problem, checks=True, strategy="paper", order_seed=3)
    while (asked := session.ask()) is not None and asked.check is None:
        session.tell(asked.turn, FIRST)
    log = tmp_path / "mine.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in session.events))
    for _ in range(2):
        done = run("coffee", "--resume", str(log), keys=["a", "b", "q"])
        assert done.exit_code == 0, done.output
    events = tradeoff.interview.read_log(log.read_text())
    answered = [event["number"] for event in events if event["event"] == "answer"]
    assert answered == list(range(1, len(answered) + 1)) and len(answered) == 3 + 4
    tradeoff.Interview.resume(problem, events)


def test_without_a_log_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("dependent", *PAPER, keys=["a", "b", "q"])
    assert list(tmp_path.iterdir()) == []


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--strategy", "magic"), "there is no strategy 'magic'"),
        (("-o", "basis"), "'basis' is not of the form NAME=VALUE"),
        (("-o", "basis=spanner", "-o", "basis=paper"), "given twice"),
        ((*PAPER, "-o", "basis=magic"), "basis is 'magic'"),
        ((*PAPER, "-o", "bassis=1"), "does not take these options"),
        (("-o", "max_questions=3"), "use --max-questions"),
        (("-o", "clock=3"), "'clock' is not an option of a strategy; leave it out"),
        (("--max-questions", "-1"), "max-questions"),
        (("--simulate", "speed=1"), "there is no objective 'speed'"),
        (("--simulate", "first=-1"), "numbers >= 0"),
        (("--simulate", "first=1", "--precision", "nan"), "precision"),
        (("--precision", "0.1"), "--simulate"),
        (("--resume", "x", "--log", "y"), "leave out --log"),
        (("--resume", "x", "--max-questions", "3"), "--max-questions"),
    ],
)
def test_bad_arguments_exit_with_2(arguments: tuple[str, ...], message: str) -> None:
    done = run("dependent", *arguments)
    assert done.exit_code == 2 and message in done.stderr and done.stdout == ""


def test_a_bad_problem_exits_with_3() -> None:
    assert run("nowhere").exit_code == 3


def test_option_values_are_numbers_and_switches_where_they_look_like_it() -> None:
    for command in ("ask", "simulate"):
        given = settings_from(["a=1", "b=0.5", "c=true", "d=x=y", "e=False"], command)
        assert given == {"a": 1, "b": 0.5, "c": True, "d": "x=y", "e": False} and given["e"] is False


# --- what is seen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
@pytest.mark.parametrize("name", BUNDLED)
def test_questions_fit_the_terminal_and_say_everything_in_units(name: str, columns: int) -> None:
    problem = tradeoff.load(name)
    page = run(name, *PAPER, keys=["a", "b"] * 4, columns=columns).stdout
    assert max(map(len, page.splitlines())) <= max(columns, len(f"  tradeoff ask {name} --log answers.jsonl"))
    questions = re.split(r"^Question \d+", page, flags=re.MULTILINE)[1:]
    assert len(questions) == 9
    for question in questions[:-1]:
        assert len(question.splitlines()) <= 24
        flowing = " ".join(question.split())
        assert "Which would you rather have, A or B?" in flowing
        for objective in problem.objectives:  # each has its row, or is named among what hardly differs
            name = re.escape(objective.name)
            row = rf"^{name}(: A)? +\S+.*\s+\b[AB]: \S+.* (more|less)|^(Nearly the same|same for both): .*{name}"
            assert re.search(row, question, re.MULTILINE), (objective.name, question)
    assert "│" not in page


def test_what_is_the_same_for_both_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    objectives = [{"name": "x", "unit": "m"}, {"name": "y"}, {"name": "z", "unit": "kg"}]
    items = [["p", 3, 0, 5], ["q", 0, 3, 5], ["r", 1, 1, 7]]
    path.write_text(
        json.dumps({"format": "tradeoff-problem/1", "kind": "catalogue", "objectives": objectives, "items": items})
    )
    page = run(str(path), *PAPER, keys=["q"]).stdout
    assert "same for both: z 5 kg" in page and "B: 3 m more" in page and "A: 3 more" in page


def test_a_mixture_names_the_reference_and_no_weight_is_called_a_count_of_times() -> None:
    page = run("commute", *PAPER, keys=["a"] * 6, columns=100).stdout
    assert "the worst trip imaginable" in page
    page = run("commute", *PAPER, keys=["d", "a"] * 6, columns=100).stdout
    assert re.search(r"weight \d", page) and not re.search(r"\d of [\d,]+\)", page)


@pytest.mark.parametrize("kind", ["catalogue", "mdp"])
@pytest.mark.parametrize("columns", [60, 100])
def test_hostile_names_stay_inert(kind: str, columns: int, tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "format": "tradeoff-problem/1",
        "kind": kind,
        "title": "\x1b]0;owned\x07 [link=x]y[/link]",
        "objectives": [{"name": "[red]a[/red]"}, {"name": "b\x1b[2J", "unit": "[bold]"}],
    }
    if kind == "catalogue":
        document["items"] = [
            ["\x1b[31m[bold]x[/bold]<script>", 1, 2],
            ["=cmd()", 0, 3],
            ["\N{CJK UNIFIED IDEOGRAPH-4E00}" * 90, 0.9, 2.9],
        ]
    else:
        moves = [["[i]s[/i]", f"\x1b[2Jgo{j}", 0.5, end, j, -j] for j in (1, 2) for end in ("[i]s[/i]", "end\x07")]
        document |= {"horizon": 3, "start": "[i]s[/i]", "ends": ["end\x07"], "transitions": moves}
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(document))
    done = run(str(path), *PAPER, keys=["a", "?", "b", "\x1b[31m", "s", "=", "q"], columns=columns)
    simulated_ = run(str(path), *PAPER, "--simulate", "[red]a[/red]=1", columns=columns)
    for shown in (done, simulated_):
        assert shown.exit_code == 0, shown.output
        assert all(c.isprintable() or c == "\n" for c in shown.output)
        assert "[red]a[/red]" in shown.output and "[bold]" in shown.output
    assert "[link=x]y[/link]" in done.output


def test_rounding_is_no_negative_regret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradeoff.simulation.respondents.relative_regret", lambda *_: -1.9e-11)
    call = ("coffee", "--simulate", "price=1,aroma=1")
    assert re.search(r"simulated person loses 0% of", run(*call).stdout)
    assert found(run(*call, "--json"))["relative_regret"] == 0
