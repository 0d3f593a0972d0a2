"""Models that Storm reads: the same values as Storm's own, from every form of the same model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tradeoff
from tests.messages import refused
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.main import Commands
from tradeoff.errors import ArgumentError, ProblemError, ProblemWarning

stormpy = pytest.importorskip("stormpy")

ROBOT = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "data" / "robot.prism"

# Three things to gather on a strip of land, of which two are risky; k = 3.
GATHERER = """
mdp
module gatherer
  at : [0..5] init 2;
  herbs : bool init false;
  stones : bool init false;
  [left]  at > 0 -> 0.95 : (at' = at - 1) + 0.05 : true;
  [right] at < 5 -> 0.9 : (at' = at + 1) + 0.1 : (at' = max(at - 1, 0));
  [pick]  at = 0 & !herbs -> 0.7 : (herbs' = true) + 0.3 : true;
  [dig]   at = 5 & !stones -> 0.4 : (stones' = true) + 0.35 : true + 0.25 : (at' = 2) & (herbs' = false);
  [sell]  at = 2 & (herbs | stones) -> (herbs' = false) & (stones' = false);
  [rest]  true -> true;
endmodule
rewards "plants" [sell] herbs : 1; endrewards
rewards "ores"   [sell] stones : 1; endrewards
rewards "calm"
  at = 2 : 0.25;
  at = 5 : -0.5;
  [rest] true : 0.5;
endrewards
label "market" = at = 2;
"""

# Modules that act together, commands without labels, rewards of states and of actions, and open constants.
WORKSHOP = """
mdp
const int N;
const double fail = 0.2;
module machine
  heat : [0..N] init 0;
  [work] heat < N -> 1 - fail : (heat' = heat + 1) + fail : (heat' = min(heat + 2, N));
  [cool] heat > 0 -> (heat' = heat - 1);
  [] heat = N -> 0.5 : (heat' = 0) + 0.5 : true;
  [] heat = N -> (heat' = 1);
endmodule
module store
  goods : [0..3] init 0;
  open : bool init true;
  [work] goods < 3 -> 0.75 : (goods' = goods + 1) + 0.25 : true;
  [sell] goods > 0 & open -> 0.5 : (goods' = goods - 1) + 0.5 : (goods' = goods - 1) & (open' = false);
  [cool] true -> (open' = true);
endmodule
rewards "income"  [sell] true : 3; goods > 1 : -0.25; endrewards
rewards "strain"  heat > 0 : heat; [work] heat > 1 : 0.5; endrewards
"""

HORIZON = {"gatherer": 12, "workshop": 9}
CONSTANTS = {"gatherer": "", "workshop": "N=3"}
TEXTS = {"gatherer": GATHERER, "workshop": WORKSHOP}


def program(name: str) -> Any:
    path = Path(name)
    found = stormpy.parse_prism_program(path, prism_compatibility=True)
    return stormpy.instantiate_constants(found, CONSTANTS[path.stem])[0] if CONSTANTS[path.stem] else found


def built(name: str) -> Any:
    """Return the model as Storm builds it."""
    options = stormpy.BuilderOptions(build_full=True)
    return stormpy.build_model(program(name), options=options)


def expected(model: Any, formula: str) -> float:
    """Return what Storm says of a formula in the initial state."""
    checked = stormpy.model_checking(model, stormpy.parse_property(formula))
    return float(checked.get_value(model.initial_states[0]))


def storm_points(model: Any, objectives: Sequence[tradeoff.Objective], steps: int, weights: np.ndarray) -> np.ndarray:
    """Return the outcomes that Storm's checker of several objectives finds optimal for each row of weights."""
    parts = ", ".join(f'R{{"{o.name}"}}{o.goal}=? [C<={steps}]' for o in objectives)
    formula = stormpy.parse_property(f"multi({parts})").get_raw_formula()
    environment = stormpy.Environment()
    checker = stormpy.developer.create_weight_vector_checker(environment, model, formula, False)[0]
    checker.set_weighted_precision(1e-9)
    points = []
    for row in weights:
        checker.check(environment, list(row))
        points.append(checker.get_achievable_point())
    return np.array(points)


def best_outcomes(problem: Any, weights: np.ndarray) -> np.ndarray:
    """Return our optimal outcomes for weights of outcomes (more is better for positive ones)."""
    return np.array([problem.outcome(x.value) for x in problem.best(weights * np.abs(problem.scale))])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(f"{name}.prism").write_text(text)
    return tmp_path


def options_for(name: str, file: str) -> dict[str, str]:
    return {"constants": CONSTANTS[name]} if CONSTANTS[name] and file.endswith((".prism", ".jani")) else {}


def write_explicit(model: Any, stem: str) -> None:
    """Write a model of Storm's as .tra, .lab and files of rewards; rewards of actions are those of their transitions."""
    rows = [list(model.transition_matrix.get_row(c)) for c in range(model.nr_choices)]
    groups = model.nondeterministic_choice_indices
    place = [(s, c - groups[s], c) for s in range(model.nr_states) for c in range(groups[s], groups[s + 1])]
    moves = [(s, a, entry.column, entry.value, c) for s, a, c in place for entry in rows[c]]
    Path(f"{stem}.tra").write_text("mdp\n" + "".join(f"{s} {a} {t} {p!r}\n" for s, a, t, p, _ in moves))
    Path(f"{stem}.lab").write_text(f"#DECLARATION\ninit\n#END\n{model.initial_states[0]} init\n")
    for name, rewards in model.reward_models.items():
        amounts = [*(rewards.state_rewards if rewards.has_state_rewards else ())]
        amounts += [*(rewards.state_action_rewards if rewards.has_state_action_rewards else ())]
        if min(amounts) < 0:
            continue
        if rewards.has_state_rewards:
            earned = "".join(f"{s} {r!r}\n" for s, r in enumerate(rewards.state_rewards) if r)
            Path(f"{stem}.{name}.srew").write_text(earned)
        if rewards.has_state_action_rewards:
            paid = rewards.state_action_rewards
            earned = "".join(f"{s} {a} {t} {paid[c]!r}\n" for s, a, t, _, c in moves if paid[c])
            Path(f"{stem}.{name}.trew").write_text(earned)


# --- the same values as Storm ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_values_are_those_of_storms_multi_objective_checker(folder: Path, name: str) -> None:
    model = built(f"{name}.prism")
    goals = {"strain": "min"}
    wish = ",".join(f"{o}:{goals.get(o, 'max')}" for o in model.reward_models)
    problem = tradeoff.load(f"{name}.prism", horizon=HORIZON[name], objectives=wish, **options_for(name, ".prism"))
    assert len(problem.states) == model.nr_states
    weights = np.random.default_rng(3).dirichlet(np.ones(len(problem.objectives)), size=50)
    ours = best_outcomes(problem, weights)
    storms = storm_points(model, problem.objectives, HORIZON[name], weights)
    signs = np.array([o.sign for o in problem.objectives])
    np.testing.assert_allclose((ours * signs * weights).sum(1), (storms * signs * weights).sum(1), atol=1e-6, rtol=0)
    assert len(np.unique(ours.round(6), axis=0)) > 3, "the weights must make a difference, or nothing is tested"
    # With weights in general position the optimum is one point, so that the outcomes agree one by one.
    np.testing.assert_allclose(ours, storms, atol=1e-6)


@pytest.mark.parametrize("name", TEXTS)
def test_single_objectives_are_those_of_storm(folder: Path, name: str) -> None:
    model, steps = built(f"{name}.prism"), HORIZON[name]
    problem = tradeoff.load(f"{name}.prism", horizon=steps, **options_for(name, ".prism"))
    k = len(problem.objectives)
    for j, objective in enumerate(problem.objectives):
        best, worst = best_outcomes(problem, np.array([np.eye(k)[j], -np.eye(k)[j]]))[:, j]
        for direction, ours in (("max", best), ("min", worst)):
            formula = f'R{{"{objective.name}"}}{direction}=? [C<={steps}]'
            assert ours == pytest.approx(expected(model, formula), abs=1e-6), formula


@pytest.mark.parametrize("name", TEXTS)
def test_every_form_of_a_model_has_the_same_values(folder: Path, name: str) -> None:
    model = built(f"{name}.prism")
    stormpy.io.export_to_umb(model, f"{name}.umb")
    stormpy.io.export_to_drn(model, f"{name}.drn")
    parsed = stormpy.parse_prism_program(f"{name}.prism", prism_compatibility=True)
    stormpy.io.export_jani_to_file(f"{name}.jani", parsed.to_jani([])[0])
    write_explicit(model, name)
    found = {}
    for suffix in ("prism", "jani", "drn", "umb", "tra"):
        file = f"{name}.{suffix}"
        names = sorted(model.reward_models)
        if suffix == "tra":  # files of rewards have no negative numbers
            names = sorted({path.name.split(".")[1] for path in Path().glob("*.?rew")})
        options = {"horizon": HORIZON[name], "objectives": names}
        problem = tradeoff.load(file, **options, **options_for(name, file))
        same = problem
        if suffix != "prism":
            same = tradeoff.load("prism:" + f"{name}.prism", **options, **options_for(name, ".prism"))
        assert len(problem.states) == model.nr_states and len(names) >= 1
        weights = np.random.default_rng(5).normal(size=(20, len(names)))
        np.testing.assert_allclose(best_outcomes(problem, weights), best_outcomes(same, weights), atol=1e-9)
        found[suffix] = (problem, weights)
    assert set(found["jani"][0].states) == set(found["umb"][0].states) == set(found["prism"][0].states)
    assert set(found["drn"][0].actions) == set(found["prism"][0].actions)


def test_rewards_of_states_and_transitions_are_earned_when_storm_earns_them(folder: Path) -> None:
    Path("coin.tra").write_text("mdp\n0 0 0 0.5\n0 0 1 0.5\n0 1 2 1\n1 0 0 0.25\n1 0 2 0.75\n2 0 2 1\n")
    Path("coin.lab").write_text("#DECLARATION\ninit home\n#END\n0 init\n2 home\n")
    Path("coin.srew").write_text("0 1\n1 2.5\n2 0.125\n")
    Path("coin.trew").write_text("0 0 1 3\n0 1 2 7\n1 0 2 0.5\n")
    model = stormpy.build_model_from_explicit(
        "coin.tra", "coin.lab", state_rewards="coin.srew", transition_rewards="coin.trew"
    )
    for steps in (1, 2, 3, 10):
        problem = tradeoff.load("coin.tra", horizon=steps)
        best, worst = best_outcomes(problem, np.array([[1.0], [-1.0]]))[:, 0]
        assert best == pytest.approx(expected(model, f"Rmax=? [C<={steps}]"), abs=1e-9)
        assert worst == pytest.approx(expected(model, f"Rmin=? [C<={steps}]"), abs=1e-9)
    assert [o.name for o in problem.objectives] == ["reward"] and problem.states == ("0", "1", "2 (home)")
    # Trajectories earn what their own branches earn.
    assert problem.layers[0].branch_reward is not None


def test_a_chain_is_a_process_with_one_action(folder: Path) -> None:
    text = "dtmc\nmodule a\nx : [0..2] init 0;\n[] x<2 -> 0.3 : (x'=x+1) + 0.7 : true;\n[] x=2 -> true;\nendmodule\n"
    Path("chain.prism").write_text(text + 'rewards "time" x<2 : 1; endrewards\n')
    problem = tradeoff.load("chain.prism", horizon=6)
    model = stormpy.build_model(stormpy.parse_prism_program("chain.prism"))
    assert problem.actions == ("go on",) and problem.states == ("x=0", "x=1", "x=2")
    assert best_outcomes(problem, np.array([[1.0]]))[0, 0] == pytest.approx(expected(model, 'R{"time"}=? [C<=6]'))
    assert any("lead to themselves and earn nothing: 1" in note for note in problem.notes)


# --- names, options and notes ----------------------------------------------------------------------------------------


def test_states_and_actions_have_names_that_people_read(folder: Path) -> None:
    problem = tradeoff.load("workshop.prism", horizon=3, constants={"N": 2})
    assert "open=true, heat=0, goods=0" in problem.states
    assert set(problem.actions) == {"work", "cool", "sell", "choice 1", "choice 2"}


def test_the_direction_is_an_assumption_that_is_noted(folder: Path) -> None:
    problem = tradeoff.load("workshop.prism", horizon=3, constants="N=2")
    assert [(o.name, o.goal) for o in problem.objectives] == [("income", "max"), ("strain", "max")]
    assert any("more is taken to be better for 'income', 'strain'" in note for note in problem.notes)
    problem = tradeoff.load("workshop.prism", horizon=3, constants="N=2", objectives="strain:min")
    assert [(o.name, o.goal) for o in problem.objectives] == [("strain", "min")]
    assert not any("taken to be better" in note for note in problem.notes)


def test_ends_and_start_are_labels_or_states(folder: Path) -> None:
    # What is at the end of a plan earns nothing: as if those states led to themselves without rewards.
    first = "at=1, herbs=false, stones=false"  # in any order
    with pytest.warns(ProblemWarning, match="cannot be reached"):
        problem = tradeoff.load("gatherer.prism", horizon=8, objectives="calm", start=first, ends="market")
    text = GATHERER.replace("->", "& at != 2 ->").replace("[rest]", "[] at = 2 -> true;\n[rest]", 1)
    text = text.replace("at = 2 : 0.25;", "").replace("init 2;", "init 1;")
    Path("stopped.prism").write_text(text)
    stopped = stormpy.build_model(stormpy.parse_prism_program("stopped.prism"))
    ours = best_outcomes(problem, np.array([[1.0], [-1.0]]))[:, 0]
    assert ours[0] == pytest.approx(expected(stopped, 'R{"calm"}max=? [C<=8]'), abs=1e-9)
    assert ours[1] == pytest.approx(expected(stopped, 'R{"calm"}min=? [C<=8]'), abs=1e-9)
    with refused(ProblemError, "gatherer.prism", "reward", "start"):
        tradeoff.load("gatherer.prism", horizon=8, ends="market")
    with refused(ArgumentError, "ends is 'maket'", "'market'", "at="):
        tradeoff.load("gatherer.prism", horizon=8, ends="maket")


def test_several_initial_states_need_a_word_of_the_caller(folder: Path) -> None:
    text = GATHERER.replace(" init 2;", ";").replace(" init false;", ";") + "init at < 3 & !herbs & !stones endinit\n"
    Path("several.prism").write_text(text)
    with refused(ProblemError, "several.prism", "3 initial states", "start=NAME", "start=uniform"):
        tradeoff.load("several.prism", horizon=5)
    model = stormpy.build_model(stormpy.parse_prism_program("several.prism"))
    values = stormpy.model_checking(model, stormpy.parse_property('R{"calm"}max=? [C<=5]'))
    each = [values.get_value(state) for state in model.initial_states]
    problem = tradeoff.load("several.prism", horizon=5, start="uniform", objectives="calm")
    assert best_outcomes(problem, np.array([[1.0]]))[0, 0] == pytest.approx(np.mean(each))
    first = "at=0, herbs=false, stones=false"
    other = "at=1, herbs=false, stones=false"
    problem = tradeoff.load("several.prism", horizon=5, start={first: 0.25, other: 0.75}, objectives="calm")
    singles = [
        best_outcomes(tradeoff.load("several.prism", horizon=5, start=s, objectives="calm"), np.array([[1.0]]))[0, 0]
        for s in (first, other)
    ]
    assert best_outcomes(problem, np.array([[1.0]]))[0, 0] == pytest.approx(0.25 * singles[0] + 0.75 * singles[1])


def test_deadlocks_stay_where_they_are_and_are_noted(folder: Path) -> None:
    text = "mdp\nmodule a\nx : [0..2] init 0;\n[a] x=0 -> (x'=1);\n[b] x=0 -> (x'=2);\nendmodule\n"
    Path("stuck.prism").write_text(text + 'rewards "r" x=0 : 1; x=1 : 2; [b] true : 0.5; endrewards\n')
    problem = tradeoff.load("stuck.prism", horizon=5)
    model = stormpy.build_model(stormpy.parse_prism_program("stuck.prism"))
    assert best_outcomes(problem, np.array([[1.0]]))[0, 0] == expected(model, 'R{"r"}max=? [C<=5]') == 1.5
    assert any("deadlocks" in note for note in problem.notes)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({}, ("horizon=20", "--with horizon=20")),
        ({"horizon": "ten"}, ("horizon is 'ten'",)),
        ({"horizon": 5}, ("workshop.prism", "constants N ", "constants=N=1")),
        ({"horizon": 5, "constants": "N=3,M=2"}, ("workshop.prism", "'M'", ": N")),
        ({"horizon": 5, "constants": "N=x"}, ("workshop.prism", "integer constant: x")),
        ({"horizon": 5, "constants": "N"}, ("constants is 'N'", "NAME=VALUE")),
        ({"horizon": 5, "constants": "N=1,N=2"}, ("'N'", "twice")),
        ({"horizon": 5, "constants": "N=3", "objectives": "speed"}, ("'speed'", "'income'")),
        ({"horizon": 5, "constants": "N=3", "speed": 2}, ("'speed'", "constants")),
    ],
)
def test_wrong_options_are_said(folder: Path, options: dict[str, Any], facts: tuple[str, ...]) -> None:
    with refused(ArgumentError, *facts):
        tradeoff.load("workshop.prism", **options)


SMALL = 'module a\n x : [0..1] init 0;\n [] x=0 -> {};\n [] x=1 -> true;\nendmodule\nrewards "t" true : 1; endrewards\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ctmc\n" + SMALL.format("2.5 : (x'=1)"), "time is continuous in a CTMC"),
        ("ma\n" + SMALL.format("(x'=1)"), "time is continuous in a Markov automaton"),
        ("pta\n" + SMALL.format("(x'=1)"), "time is continuous in a timed automaton"),
        ("pomdp\nobservables x endobservables\n" + SMALL.format("(x'=1)"), "POMDP"),
        ("smg\nplayer p a endplayer\n" + SMALL.format("(x'=1)"), "several players"),
        ("mdp\n" + SMALL.format("[0.2,0.5] : (x'=1) + [0.5,0.8] : true"), "probabilities are intervals"),
        ("mdp\n" + SMALL.format("0.2 : (x'=1) + 0.5 : true"), r"state 'x=0', action 'go on' sum to 0.7, not 1"),
        ("mdp\n" + SMALL.format("(x'=2)"), "a value outside its range"),
        ("mdp\n" + SMALL.format("(x'="), "Parsing error at 4:16"),
        ("mdp\n" + SMALL.format("true").replace("rewards", "// rewards"), "no reward structures"),
        ("", "Parsing error at 1:1"),
        ("\x00\x01\x02", "Storm cannot read it"),
        ("mdp\n" + SMALL.format("(" * 200_000 + "1" + ")" * 200_000 + " : true"), "nested too deeply"),
    ],
)  # fmt: skip
def test_programs_that_cannot_be_planned_with_are_refused_with_the_reason(
    folder: Path, text: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("bad.prism").write_text(text)
    with pytest.raises(ProblemError, match=message) as caught:
        tradeoff.load("bad.prism", horizon=3)
    assert "bad.prism" in str(caught.value) and len(str(caught.value)) < 500
    assert capfd.readouterr() == ("", ""), "Storm's own messages must not be printed"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.jani", "[" * 200_000, "parse error"),
        ("bad.jani", "{}", "Storm cannot read it"),
        ("bad.drn", "rubbish", "Could not parse line 'rubbish'"),
        ("bad.drn", "@type: MDP\n@nr_states\n99999999999999\n@model\nstate 0 init\n", "more than 2 GiB"),
        ("bad.tra", "mdp\n0 0 0 1\n", "no file 'bad.lab' beside it"),
    ],
)
def test_other_files_that_are_damaged_are_refused(folder: Path, name: str, text: str, message: str) -> None:
    Path(name).write_text(text)
    with pytest.raises(ProblemError, match=message) as caught:
        tradeoff.load(name, horizon=3)
    assert name in str(caught.value)


def test_garbage_is_refused(folder: Path) -> None:
    garbage = np.random.default_rng(0).bytes(50_000)
    for name in ("bad.prism", "bad.jani", "bad.drn"):
        Path(name).write_bytes(garbage)
        with pytest.raises(ProblemError, match=f"{name}: Storm c"):
            tradeoff.load(name, horizon=3)


def test_drn_probabilities_that_are_no_numbers_are_refused(folder: Path) -> None:
    stormpy.io.export_to_drn(built("gatherer.prism"), "gatherer.drn")
    text = Path("gatherer.drn").read_text()
    for other in ("nan", "0.5"):
        Path("bad.drn").write_text(text.replace(": 0.95", f": {other}"))
        with pytest.raises(ProblemError, match=r"bad.drn: .*probabilit.*state .*action 'left'"):
            tradeoff.load("bad.drn", horizon=3)


def test_only_the_files_of_the_model_are_its_rewards(folder: Path) -> None:
    Path("a.b.tra").write_text("mdp\n0 0 0 1\n")
    Path("a.b.lab").write_text("#DECLARATION\ninit\n#END\n0 init\n")
    for other in ("a.srew", "a.bc.srew", "a.x.trew", "xa.b.srew", "a.b..srew", "a.b.rew"):
        Path(other).write_text("0 5\n")
    Path("a.b.toll.srew").write_text("0 2\n")
    problem = tradeoff.load("a.b.tra", horizon=3)
    assert [o.name for o in problem.objectives] == ["toll"]
    assert best_outcomes(problem, np.array([[1.0]]))[0, 0] == 6


def test_a_tra_file_without_rewards_says_where_they_belong(folder: Path) -> None:
    Path("bare.tra").write_text("mdp\n0 0 0 1\n")
    Path("bare.lab").write_text("#DECLARATION\ninit\n#END\n0 init\n")
    with refused(ProblemError, "bare.tra", "bare.NAME.srew", "bare.NAME.trew"):
        tradeoff.load("bare.tra", horizon=3)


def test_without_storm_the_way_to_install_it_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(ProblemError, match=r"gatherer.prism needs the package 'stormpy'.*pip install '\.\[checker\]'"):
        tradeoff.load("gatherer.prism", horizon=3)


# --- the whole way ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["prism", "umb"])
def test_a_simulated_person_is_asked_about_a_model(folder: Path, suffix: str) -> None:
    app = Commands("tradeoff", commands={"ask": ask})
    file = str(ROBOT)
    constants = ["--with", "constants=slip=0.25"]
    if suffix == "umb":
        found = stormpy.instantiate_constants(stormpy.parse_prism_program(file, prism_compatibility=True), "slip=0.25")[
            0
        ]
        stormpy.io.export_to_umb(
            stormpy.build_model(found, options=stormpy.BuilderOptions(build_full=True)), "robot.umb"
        )
        file, constants = "robot.umb", []
    call = ["ask", file, "--with", "horizon=10", *constants, "--objectives", "parcels:max,broken:min,energy:min",
            "--simulate", "parcels=3,broken=2,energy=1", "--precision", "0.001", "--json"]  # fmt: skip
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and 0 <= result["relative_regret"] <= 0.02
    words = json.dumps(result["recommendation"]["option"]["stories"])
    assert "place=" in words and "hand_over" in words
