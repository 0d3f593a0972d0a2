"""Logged episodes: the model is the counts of what was logged, and says that it is estimated."""

from __future__ import annotations

import csv
import gc
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeoff import MDP, ArgumentError, Objective, ProblemError, ProblemWarning, load
from tradeoff.apps.cli.main import main

HEAD = ["episode", "step", "state", "action", "next", "time [min] (min)", "money [EUR] (min)"]
AIMS = [Objective("time", "min", "min"), Objective("money", "EUR", "min")]
TRIPS = """episode,step,state,action,next,time [min] (min),money [EUR] (min)
mon,0,home,drive,work,40,5
tue,0,home,drive,work,90,5
wed,0,home,walk,station,10,0
wed,1,station,train,work,25,3
thu,0,home,walk,station,10,0
thu,1,station,train,work,35,3
fri,0,home,cycle,work,50,0
"""


def counted(rows: list[tuple[Any, ...]]) -> dict[tuple[str, str, str], tuple[float, list[float]]]:
    """Return the share and the mean rewards of each (state, action, next) in rows as ``MDP.from_log`` takes them."""
    tried = Counter((s, a) for _, _, s, a, _, _ in rows)
    seen = Counter((s, a, n) for _, _, s, a, _, n in rows)
    return {
        key: (
            count / tried[key[:2]],
            np.mean([np.atleast_1d(r) for _, _, s, a, r, n in rows if (s, a, n) == key], axis=0).tolist(),
        )
        for key, count in seen.items()
    }


def modelled(mdp: MDP) -> dict[tuple[str, str, str], tuple[float, list[float]]]:
    assert len(mdp.layers) == 1
    columns = (column.tolist() for column in mdp.layers[0].branches())
    return {
        (mdp.states[s], mdp.actions[a], mdp.states[t]): (p, r) for s, a, p, t, r in zip(*columns, strict=True)
    }  # fmt: skip


def assert_counts(mdp: MDP, rows: list[tuple[Any, ...]]) -> None:
    """The model is exactly what was counted, and it says so."""
    found, expected = modelled(mdp), counted(rows)
    assert found.keys() == expected.keys()
    for key, (share, means) in expected.items():
        assert found[key][0] == pytest.approx(share, rel=1e-12)
        assert found[key][1] == pytest.approx(means, rel=1e-9, abs=1e-12)
    episodes: dict[str, str] = {}
    for episode, step, state, *_ in rows:
        if step == 0:
            episodes[episode] = state
    starts = Counter(episodes.values())
    chances = {mdp.states[i]: float(mdp.start[i]) for i in np.flatnonzero(mdp.start)}
    assert chances == pytest.approx({state: count / len(episodes) for state, count in starts.items()})
    assert mdp.notes[0].startswith(f"estimated from {len(rows):,} logged steps")
    assert any(f"learned from {len(episodes)} episodes" in note for note in mdp.notes)


# --- tables -----------------------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    name = st.sampled_from(["home", "work", "0", "1.0", "ü, x", 'say "hi"', "-"])
    rows = []
    for episode in range(draw(st.integers(1, 5))):
        state = draw(name)
        for step in range(draw(st.integers(1, 4))):
            after = draw(name)
            amounts = [float(draw(st.integers(-5, 5))), draw(st.floats(-1e6, 1e6))]
            rows.append((f"e{episode}", step, state, draw(st.sampled_from(["go", "stay"])), amounts, after))
            state = after
    return draw(st.permutations(rows))


def table_of(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[e, t, s, a, n, *r] for e, t, s, a, r, n in rows]


def write(path: Path, head: list[str], rows: list[list[Any]]) -> Path:
    if path.suffix == ".parquet":
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        pq.write_table(pa.Table.from_arrays(columns, names=head), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows])
    return path


@pytest.mark.parametrize("file", ["log.csv", "log.parquet"])
def test_a_log_in_a_file_is_learned_as_the_same_rows_are(file: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("logs")

    @settings(max_examples=60, deadline=None)
    @given(logs())
    def law(rows: list[tuple[Any, ...]]) -> None:
        found = load(f"log:{write(folder / file, HEAD, table_of(rows))}")
        assert isinstance(found, MDP)
        assert found.fingerprint == MDP.from_log(rows, objectives=AIMS).fingerprint
        assert_counts(found, rows)

    law()


def log(tmp_path: Path, text: str = TRIPS, **options: Any) -> MDP:
    path = tmp_path / "trips.csv"
    path.write_text(text)
    found = load(f"log:{path}", **options)
    assert isinstance(found, MDP)
    return found


def test_options_of_a_log(tmp_path: Path) -> None:
    plain = log(tmp_path)
    assert plain.horizon == 2 and plain.objectives == tuple(AIMS) and plain.name == "trips"
    assert any("the horizon is the longest episode, 2 steps" in note for note in plain.notes)
    longer = log(tmp_path, horizon="5")
    assert longer.horizon == 5 and not any("longest episode" in note for note in longer.notes)
    one = log(tmp_path, objectives="money:max")
    assert one.objectives == (Objective("money", "EUR", "max"),)
    assert any("columns that were not used: 'time [min] (min)'" in note for note in one.notes)
    with pytest.warns(ProblemWarning, match="'home'"):
        late = log(tmp_path, start="station")
    assert late.states[int(np.argmax(late.start))] == "station" and "home" not in late.states
    with pytest.raises(ProblemError, match="does not say clearly whether less or more is better for 'time'"):
        log(tmp_path, TRIPS.replace(" (min)", "", 1))
    renamed = log(tmp_path, TRIPS.replace("next,", "Next_State,").replace("episode", "EPISODE"))
    assert renamed.fingerprint == plain.fingerprint
    semicolons = log(tmp_path, TRIPS.replace(",", ";").replace("40", "40,0"), decimal=",")
    assert semicolons.fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "step,",
            "when,",
            "has no column 'step'; a log has the columns episode, step, state, action, next and one per",
        ),
        ("time [min] (min)", "Step", "has several columns 'step'"),
        ("fri,0", "fri,0.5", "line 8, column 'step': '0.5' is not a whole number"),
        ("fri,0", "fri,", "line 8, column 'step': '' is not a whole number"),
        ("fri,0,home", "fri,0,", "line 8, column 'state': the cell is empty"),
        ("fri,0", " ,0", "line 8, column 'episode': the cell is empty"),
        ("50,0", "nan,0", "line 8, column 'time [min] (min)': 'nan' is not a finite number"),
        ("50,0", '"1,299",0', "'1,299' can be read in several ways"),
        ("50,0", "slow,0", "line 8, column 'time [min] (min)': 'slow' is not a number; correct it"),
        ("wed,1", "wed,2", "step 1 of episode 'wed' is missing"),
        ("wed,1,station", "wed,1,airport", "ends in state 'station', but step 1 begins in 'airport'"),
        ("fri", "mon", "step 0 of episode 'mon' is logged twice"),
        (TRIPS[TRIPS.index("\n") + 1 :], "", "has no rows"),
        (TRIPS, "episode,step,state,action,next\ne,0,a,go,b\n", "has no column for an objective"),
    ],
)
def test_rubbish_in_a_log_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TRIPS
    with pytest.raises(ProblemError) as caught:
        log(tmp_path, TRIPS.replace(old, new))
    assert message in str(caught.value) and str(tmp_path / "trips.csv") in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": "soon"}, "horizon is 'soon'; it must be a whole number"),
        ({"objectives": "speed"}, "has no column 'speed'"),
        ({"objectives": "step:min"}, "the column 'step' describes a step"),
        ({"keep_dominated": True}, "'keep_dominated' is not an option of the source"),
    ],
)
def test_bad_options_of_a_log(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        log(tmp_path, **options)
    assert message in str(caught.value)


def test_a_horizon_that_nobody_can_work_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="correct the horizon"):
        log(tmp_path, horizon=10**13)


@pytest.mark.parametrize("file", ["trips.csv", "trips.parquet"])
def test_a_simulated_person_is_served_from_a_log(tmp_path: Path, file: str) -> None:
    head, *rows = csv.reader(TRIPS.splitlines())
    typed = [[e, int(t), s, a, n, float(time), float(money)] for e, t, s, a, n, time, money in rows]
    path = write(tmp_path / file, head, typed)
    call = ["ask", f"log:{path}", "--simulate", "time=1,money=3", "--precision", "0.001", "--json"]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and 0 <= result["relative_regret"] <= 0.01
    average = result["recommendation"]["option"]["average"]
    assert [one["amount"] for one in average] == pytest.approx([50, 0])  # by bicycle
    checked = CliRunner().invoke(main, ["check", f"log:{path}", "--with", "horizon=3", "--json"])
    said = json.loads(checked.stdout)
    assert said["horizon"] == 3 and said["notes"][0].startswith("estimated from 7 logged steps")


# --- Minari -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which Minari keeps datasets of a few real environments."""
    folder = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        patched.setenv("MINARI_DATASETS_PATH", str(folder))
        warnings.simplefilter("ignore")  # that nobody is named as the author, and about folders that it leaves behind
        import gymnasium
        import mo_gymnasium

        collect(gymnasium.make("FrozenLake-v1", max_episode_steps=12), "toy/lake-v0", 60)
        collect(gymnasium.make("Blackjack-v1"), "toy/blackjack-v0", 40)
        collect(gymnasium.make("CartPole-v1"), "toy/pole-v0", 2)
        collect(mo_gymnasium.make("deep-sea-treasure-v0", max_episode_steps=15), "toy/sea-v0", 40)
        collect(
            with_fuel(gymnasium.make("CliffWalking-v1", max_episode_steps=20)), "toy/cliff-v0", 30, record_infos=True
        )
        gc.collect()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MINARI_DATASETS_PATH", str(folder))
        yield folder


def with_fuel(environment: Any) -> Any:
    """Return the environment with what a step costs in its infos."""
    import gymnasium

    class Wrapped(gymnasium.Wrapper):  # type: ignore[misc, type-arg]
        def reset(self, **options: Any) -> Any:
            seen, info = self.env.reset(**options)
            return seen, info | {"fuel": 0.0, "both": np.zeros(2)}

        def step(self, action: Any) -> Any:
            seen, reward, terminated, truncated, info = self.env.step(action)
            fuel = 1.5 if action == 1 else 0.5
            return seen, reward, terminated, truncated, info | {"fuel": fuel, "both": np.array([fuel, float(reward)])}

    return Wrapped(environment)


def collect(environment: Any, name: str, episodes: int, *, record_infos: bool = False) -> None:
    """Make a dataset of a few episodes; Minari's own collector would need a package of several hundred megabytes."""
    import minari
    from minari.data_collector import EpisodeBuffer

    environment.action_space.seed(0)
    buffers = []
    for seed in range(episodes):
        seen, info = environment.reset(seed=seed)
        states, actions, steps, infos = [seen], [], [], [info]
        while not steps or not (steps[-1][1] or steps[-1][2]):
            actions.append(environment.action_space.sample())
            seen, reward, terminated, truncated, info = environment.step(actions[-1])
            states.append(seen)
            infos.append(info)
            steps.append((reward, terminated, truncated))
        rewards, ends, cuts = (list(column) for column in zip(*steps, strict=True))
        kept = columns(infos) if record_infos else {}
        buffers.append(EpisodeBuffer(seed, seed, None, columns(states), columns(actions), rewards, ends, cuts, kept))
    minari.create_dataset_from_buffers(name, buffers, env=environment)
    environment.close()


def columns(parts: list[Any]) -> Any:
    """Return a list of tuples or of mappings as a tuple or a mapping of lists."""
    if isinstance(parts[0], tuple):
        return tuple(columns(list(column)) for column in zip(*parts, strict=True))
    if isinstance(parts[0], dict):
        return {key: columns([part[key] for part in parts]) for key in parts[0] if all(key in part for part in parts)}
    return parts


def logged_rows(name: str, rewards: Callable[[Any], Any] = lambda episode: episode.rewards) -> list[tuple[Any, ...]]:
    """Return a dataset's steps as ``MDP.from_log`` takes them, read by Minari itself."""
    import minari

    rows = []
    for episode in minari.load_dataset(name).iterate_episodes():
        seen = episode.observations
        if isinstance(seen, tuple):
            seen = np.stack(seen, axis=1)
        words = [", ".join(str(int(part)) for part in np.atleast_1d(state)) for state in seen]
        earned = rewards(episode)
        for t, action in enumerate(episode.actions):
            rows.append(
                (str(episode.id), t, words[t], str(int(action)), np.atleast_1d(earned[t]).astype(float), words[t + 1])
            )
    return rows


@pytest.mark.parametrize(("name", "objectives"), [("lake", 1), ("blackjack", 1), ("sea", 2)])
def test_a_dataset_is_learned_by_counting(datasets: Path, name: str, objectives: int) -> None:
    found = load(f"minari:toy/{name}-v0")
    rows = logged_rows(f"toy/{name}-v0")
    assert isinstance(found, MDP) and len(found.objectives) == objectives and found.name == f"toy/{name}-v0"
    assert_counts(found, rows)
    assert found.horizon == max(row[1] for row in rows) + 1


def test_the_estimate_comes_near_the_true_environment(datasets: Path) -> None:
    """In FrozenLake every move goes each of three ways with probability 1/3: the counts must agree with that."""
    import gymnasium

    with gymnasium.make("FrozenLake-v1") as environment:
        truth = environment.unwrapped.P
    found = load("minari:toy/lake-v0")
    for (state, action, after), (share, _) in modelled(found).items():
        true = sum(p for p, to, _, _ in truth[int(state)][int(action)] if to == int(after))
        tried = found.evidence.visits[state, action]
        assert true > 0 and abs(share - true) <= 5 * np.sqrt(true * (1 - true) / tried) + 1e-12


def test_a_dataset_that_is_loaded_already(datasets: Path) -> None:
    import minari

    dataset = minari.load_dataset("toy/sea-v0")
    found = load(dataset, objectives="treasure:max,fuel:max", horizon=4, start="0, 0")
    assert found.objectives == (Objective("treasure"), Objective("fuel")) and found.horizon == 4
    some = dataset.filter_episodes(lambda episode: episode.id < 5)
    assert len(load(some).notes) and load(some).evidence.episodes == 5
    assert [o.name for o in load(dataset).objectives] == ["reward 1", "reward 2"]


def test_rewards_can_be_taken_from_the_infos(datasets: Path) -> None:
    fuel = load("minari:toy/cliff-v0", rewards="fuel", objectives="fuel:min")
    assert fuel.objectives == (Objective("fuel", "", "min"),)
    assert_counts(fuel, logged_rows("toy/cliff-v0", lambda episode: episode.infos["fuel"][1:]))
    assert {round(r[0], 9) for _, r in modelled(fuel).values()} == {0.5, 1.5}
    both = load("minari:toy/cliff-v0", rewards="both")
    assert_counts(both, logged_rows("toy/cliff-v0", lambda episode: episode.infos["both"][1:]))
    assert [o.name for o in load("minari:toy/cliff-v0", rewards="fuel,prob").objectives] == ["fuel", "prob"]


def test_what_was_cut_off_is_noted(datasets: Path) -> None:
    import minari

    cut = sum(not episode.terminations[-1] for episode in minari.load_dataset("toy/lake-v0").iterate_episodes())
    assert cut and any(note.startswith(f"{cut} episodes were cut off") for note in load("minari:toy/lake-v0").notes)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("toy/pole-v0", {}, ProblemError, "the observations of the dataset 'toy/pole-v0' are continuous (Box("),
        ("toy/none-v0", {}, ProblemError, "there is no Minari dataset 'toy/none-v0' in"),
        ("nonsense", {}, ProblemError, "there is no Minari dataset 'nonsense' in"),
        ("", {}, ProblemError, "there is no Minari dataset ''"),
        ("toy/lake-v0", {"objectives": "a,b"}, ArgumentError, "2 objectives are named, but the dataset has 1 rewards"),
        ("toy/lake-v0", {"rewards": "gold"}, ProblemError, "have no 'gold'; there are none"),
        ("toy/cliff-v0", {"rewards": "gold"}, ProblemError, "have no 'gold'; there are 'both', 'fuel', 'prob'"),
        ("toy/lake-v0", {"horizon": "0"}, ArgumentError, "horizon is 0"),
        ("toy/lake-v0", {"start": "99"}, ProblemError, "the start state '99' does not exist"),
    ],
)
def test_datasets_that_are_refused(
    datasets: Path, name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        load(f"minari:{name}", **options)
    assert message in str(caught.value)


def test_a_dataset_never_runs_a_program(datasets: Path, tmp_path: Path) -> None:
    """Without its spaces Minari would make the environment that the dataset names, which can be any function."""
    import shutil

    shutil.copytree(datasets / "toy" / "lake-v0", datasets / "toy" / "trap-v0")
    about = datasets / "toy" / "trap-v0" / "data" / "metadata.json"
    content = json.loads(about.read_text())
    mark = tmp_path / "mark"
    spec = json.loads(content["env_spec"]) | {"entry_point": "os:mkdir", "kwargs": {"path": str(mark)}}
    about.write_text(json.dumps({"total_steps": 1, "env_spec": json.dumps(spec), "data_format": "hdf5"}))
    with pytest.raises(ProblemError, match="does not say what observations and actions are"):
        load("minari:toy/trap-v0")
    assert not mark.exists()
    for damage in ("{", "[" * 100_000, "[]"):
        about.write_text(damage)
        with pytest.raises(ProblemError, match="does not say what"):
            load("minari:toy/trap-v0")
    about.write_text(json.dumps(content))
    (about.parent / "main_data.hdf5").write_bytes(b"nothing")
    with pytest.raises(ProblemError, match="cannot be read"):
        load("minari:toy/trap-v0")


def test_a_whole_interview_about_a_dataset(datasets: Path) -> None:
    call = ["ask", "minari:toy/sea-v0", "--objectives", "treasure,time", "--simulate", "treasure=1,time=1", "--json"]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and 0 <= result["relative_regret"] <= 0.05
