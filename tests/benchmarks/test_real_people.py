"""The benchmark on real people: files are read as described, the models it compares are fitted well, and it runs."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "real_people.py"
METHODS = {"equal", "pooled", "hierarchical Bayes", "tradeoff", "tradeoff, learned", "tradeoff, slips"}


@pytest.fixture(scope="module")
def real_people():
    spec = importlib.util.spec_from_file_location("benchmark_real_people", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def simulated(real_people, people, tasks, mean, spread, options=3, seed=1):
    """Return choices of people with normal part-worths, by a logit."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(people):
        partworths = rng.normal(mean, spread)
        menus = rng.random((tasks, options, len(mean)))
        chosen = (menus @ partworths + rng.gumbel(size=(tasks, options))).argmax(axis=1)
        order = [[best, *(i for i in range(options) if i != best)] for best in chosen]
        made.append(tuple(real_people.Task(menu[row]) for menu, row in zip(menus, order, strict=True)))
    return real_people.ChoiceData("simulated", tuple("abcdef"[: len(mean)]), tuple(made))


def log_marginal(real_people, data, normal):
    """Return how likely all choices are if part-worths have this distribution, by simulation."""
    values = normal.draw(6000, 5)
    each = [[np.log(real_people.choice_probabilities(values, task)[:, 0]) for task in tasks] for tasks in data.people]
    return sum(np.logaddexp.reduce(np.sum(logs, axis=0)) - np.log(len(values)) for logs in each)


@pytest.mark.parametrize("seed", [1, 2])
def test_hierarchical_bayes_explains_choices_as_well_as_the_true_distribution(real_people, seed):
    mean, spread = np.array([8.0, -6.0, 2.0]), np.array([3.0, 2.0, 4.0])
    data = simulated(real_people, 200, 15, mean, spread, seed=seed)
    fitted = real_people.fit_hierarchical(data.people, 3)
    true = real_people.Normal(mean, np.diag(spread**2))
    assert log_marginal(real_people, data, fitted) > log_marginal(real_people, data, true) - 2


def test_a_pooled_logit_finds_the_partworths_that_everybody_has(real_people):
    mean = np.array([4.0, -3.0])
    data = simulated(real_people, 200, 15, mean, 0.0)
    assert real_people.fit_pooled(data.people, np.eye(2)) == pytest.approx(mean, abs=0.3)


def test_an_option_that_is_as_likely_as_another_is_half_right(real_people):
    assert real_people.score(np.array([0.5, 0.5])) == (0.5, 0.5, 0.5)
    assert real_people.score(np.array([0.2, 0.8])) == (0.2, 0.8, 0.0)
    assert real_people.score(np.array([0.4, 0.2, 0.4])) == (0.4, 0.4, 0.5)


def test_a_file_is_read_in_the_order_of_tasks_with_the_chosen_option_first(real_people, tmp_path):
    path = tmp_path / "routes.csv"
    path.write_text(
        "person,task,alternative,chosen,cost,time\n"
        "7,2,1,0,10,30\n7,2,2,1,20,20\n"
        "7,1,1,1,30,10\n7,1,2,0,20,20\n"
        "7,3,1,0,10,10\n7,3,2,0,20,20\n",  # none of these
        encoding="utf-8",
    )
    data = real_people.read_file(path)
    assert (data.name, data.attributes) == ("routes", ("cost", "time"))
    first, second = data.people[0]
    assert first.options.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert second.options.tolist() == [[0.5, 0.5], [0.0, 1.0]]


def test_a_file_without_a_needed_column_is_refused(real_people, tmp_path):
    path = tmp_path / "routes.csv"
    path.write_text("person,task,chosen,cost\n1,1,1,2\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no column 'alternative'"):
        real_people.read_file(path)


def test_every_method_predicts_and_answers_help(real_people):
    data = simulated(real_people, 20, 8, np.array([6.0, -3.0]), 2.0, options=2)
    trained = real_people.train(data, 0)
    assert trained.orientation == ((0, 1), (1, -1))
    rows = [row for i in (0, 5) for row in real_people.predict_person("simulated", i, data.people[i], trained)]
    assert {row.method for row in rows} == METHODS
    assert {(row.split, row.known) for row in rows} == {(s, m) for s in ("random", "late") for m in (0, 1, 3, 5)}
    assert all(0 < row.chosen <= row.likeliest <= 1 for row in rows)
    assert all(row.right == 0 for row in rows if row.chosen < row.likeliest)


def test_calibration_counts_an_answer_once_for_each_number_of_known_answers(real_people):
    rows = real_people.pl.DataFrame(
        [
            real_people.Prediction("d", "random", i, known, "tradeoff", 0.8, 0.8, float(i < 15))._asdict()
            for i in range(20)
            for known in (3, 5, 7)
        ]
    )
    found = real_people.calibration(rows).select("known", "said", "was", "answers").rows()
    assert found == [(3, pytest.approx(0.8), 0.75, 20), (7, pytest.approx(0.8), 0.75, 20)]
