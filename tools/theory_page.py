"""The page and the pictures of theory_and_practice.py, from its measurements."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from theory_and_practice import Cell, Cells, Plan

COLORS = {"Theorem 1": "#3b6ea8", "Theorem 2": "#b5651d", "spanner": "#3a8a4d"}
# Fewer than two precisions with a mean above zero are no line.
LINE = 2


def families(cells: Cells) -> list[str]:
    """Return the families, in order."""
    return list(dict.fromkeys(family for family, *_ in cells))


def pooled(cells: Cells, k: int, eps: float, method: str, name: str) -> np.ndarray:
    """Return one quantity of all families together."""
    parts = [getattr(cell, name) for (_, k_, eps_, m), cell in cells.items() if (k_, eps_, m) == (k, eps, method)]
    return np.concatenate([np.asarray(part, dtype=float) for part in parts])


def everywhere(cells: Cells, method: str, name: str, k: int | None = None) -> np.ndarray:
    """Return one quantity of all cells of a method."""
    parts = [getattr(cell, name) for (_, k_, _, m), cell in cells.items() if m == method and k in (None, k_)]
    return np.concatenate([np.asarray(part, dtype=float) for part in parts])


def slope(precisions: Sequence[float], means: Sequence[float]) -> tuple[float, int]:
    """Return the slope of log mean against log eps where the mean is not zero, and at how many eps that is so."""
    points = [(math.log(eps), math.log(mean)) for eps, mean in zip(precisions, means, strict=True) if mean > 0]
    if len(points) < LINE:
        return math.nan, len(points)
    across, up = np.array(points).T
    return float(np.polyfit(across, up, 1)[0]), len(points)


def exponent(precisions: Sequence[float], means: Sequence[float]) -> str:
    """Return that slope and that number as a cell of a table."""
    found, count = slope(precisions, means)
    return "-" if math.isnan(found) else f"{found:.2f} ({count})"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; all columns but the first are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def percent(amount: float) -> str:
    """Return a share as a percentage with three digits."""
    return f"{100 * amount:.3g}%"


def mean_and_worst(amounts: np.ndarray) -> str:
    """Return the mean of shares, and the largest in brackets."""
    return f"{percent(float(amounts.mean()))} ({percent(float(amounts.max()))})"


def wrapped(text: str) -> str:
    """Return Markdown with its paragraphs and lists broken at 120 columns: numbers have changed their lengths."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if block[0] not in "|#!`":
            parts = re.split(r"\n(?=- )", block)
            parts = [" ".join(part.split()) for part in parts]
            block = "\n".join(
                textwrap.fill(part, 120, subsequent_indent="  " * part.startswith("- "), break_on_hyphens=False)
                for part in parts
            )
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"


# --- pictures ---------------------------------------------------------------------------------------------------------


def save(figure: Figure, path: Path) -> None:
    """Write an SVG that is the same for the same numbers, without small ticks (they were most of its bytes)."""
    for axis in figure.axes:
        axis.minorticks_off()
    with matplotlib.rc_context({"svg.hashsalt": "tradeoff", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def write_pictures(plan: Plan, cells: Cells, folder: Path) -> None:
    """Draw questions and regret against eps, the misjudgement against eps, and both against k."""
    matplotlib.rcParams.update({"font.size": 8})
    methods = list(COLORS)
    names = families(cells)
    k = plan.fixed_objectives
    eps = np.array(plan.precisions)

    def cell(family: str, k: int, e: float, method: str) -> Cell:
        return cells[family, k, e, method]

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    grid = figure.subplots(3, len(names), sharex=True, sharey="row")
    for column, family in enumerate(names):
        top, middle, bottom = grid[:, column]
        for method in methods:
            found = [cell(family, k, e, method) for e in plan.precisions]
            color = COLORS[method]
            top.plot(eps, [np.mean(c.questions) for c in found], "o-", ms=3, color=color, label=method)
            mean, worst = (np.array([f(c.regret) for c in found]) for f in (np.mean, np.max))
            middle.plot(eps, np.where(mean > 0, mean, np.nan), "o-", ms=3, color=color, label=f"{method}, mean")
            middle.plot(eps, np.where(worst > 0, worst, np.nan), "--", lw=0.8, color=color)
            bottom.plot(eps, [np.mean(c.misjudged) for c in found], "o-", ms=3, color=color, label=method)
        for axis in (middle, bottom):
            axis.plot(eps, 0.3 * eps ** (1 / 3), ":", color="grey", lw=1)
            axis.plot(eps, 0.3 * eps, "-.", color="grey", lw=1)
        top.set(title=family, xscale="log")
        middle.set(xscale="log", yscale="log")
        bottom.set(xscale="log", yscale="log", xlabel="precision eps, relative")
    grid[0, 0].set_ylabel("questions, mean")
    grid[1, 0].set_ylabel("relative regret\n(solid: mean, dashed: worst)")
    grid[2, 0].set_ylabel("largest misjudgement of any\nalternative's worth, mean")
    grid[0, 0].legend(frameon=False)
    grid[2, -1].plot([], [], ":", color="grey", label="slope 1/3")
    grid[2, -1].plot([], [], "-.", color="grey", label="slope 1")
    grid[2, -1].legend(frameon=False)
    save(figure, folder / "theory-precision.svg")

    figure = Figure(figsize=(10, 5), layout="constrained")
    grid = figure.subplots(2, len(names), sharex=True, sharey="row")
    for column, family in enumerate(names):
        for method in methods:
            found = [cell(family, k, plan.fixed_precision, method) for k in plan.objectives]
            grid[0, column].plot(plan.objectives, [np.mean(c.questions) for c in found], "o-", ms=3,
                                 color=COLORS[method], label=method)  # fmt: skip
            means = np.array([np.mean(c.regret) for c in found])
            grid[1, column].plot(plan.objectives, np.where(means > 0, means, np.nan), "o-", ms=3, color=COLORS[method])
        grid[0, column].set(title=family)
        grid[1, column].set(yscale="log", xlabel="objectives k")
    grid[0, 0].set_ylabel("questions, mean")
    grid[1, 0].set_ylabel("relative regret, mean")
    grid[0, 0].legend(frameon=False)
    save(figure, folder / "theory-objectives.svg")


# --- page -------------------------------------------------------------------------------------------------------------


def first_bound(k: int, eps: float) -> float:
    """Return Theorem 1's bound on the regret with d = k and 1 for its unstated constant."""
    return float((math.sqrt(k) + 1) ** (k + 14 / 3) * eps ** (1 / 3))


def second_bound(k: int, eps: float) -> float:
    """Return Theorem 2's bound on the regret with 1 for its unstated constant."""
    return float(k ** (13 / 6) * eps ** (1 / 3))


def write_page(plan: Plan, cells: Cells, path: Path, *, quick: bool) -> None:
    """Write the page."""
    methods, names = list(COLORS), families(cells)
    k, eps = plan.fixed_objectives, plan.fixed_precision
    interviews = sum(len(cell.questions) for cell in cells.values())
    command = "python tools/theory_and_practice.py" + (" --quick" if quick else "") + f" --seed {plan.seed}"

    def means(family: str, method: str, name: str) -> list[float]:
        return [float(np.mean(getattr(cells[family, k, e, method], name))) for e in plan.precisions]

    def overview(label: str, points: Iterable[tuple[str, int, float]]) -> str:
        """Return a table of questions and regret, all problems together."""
        header = [label, *(f"{m}: questions" for m in methods), *(f"{m}: regret, mean (worst)" for m in methods)]
        rows = []
        for name, j, e in points:
            asked = [f"{pooled(cells, j, e, m, 'questions').mean():.1f}" for m in methods]
            rows.append([name, *asked, *(mean_and_worst(pooled(cells, j, e, m, "regret")) for m in methods)])
        return table(header, rows)

    by_precision = overview("eps", ((f"{e:g}", k, e) for e in plan.precisions))
    by_objectives = overview("k", ((str(j), j, eps) for j in plan.objectives))
    exponents = table(
        ["problems", *(f"{m}: regret" for m in methods), *(f"{m}: misjudgement" for m in methods)],
        (
            [
                family,
                *(exponent(plan.precisions, means(family, m, "regret")) for m in methods),
                *(exponent(plan.precisions, means(family, m, "misjudged")) for m in methods),
            ]
            for family in names
        ),
    )
    counts = sorted(dict.fromkeys((*plan.objectives, k)))
    lemma = table(
        ["k", "(v*/<w*,V1>) / 2k", "ratio error / (4k² eps/v*)", "questions / bound", "spanner: questions / bound",
         "spanner: regret / (4(d-1) eps)"],
        (
            [
                j,
                *(
                    f"{everywhere(cells, 'Theorem 1', name, j).max(initial=0):.3f}"
                    for name in ("benchmark_share", "ratio_share", "question_share")
                ),
                *(
                    f"{everywhere(cells, 'spanner', name, j).max(initial=0):.3f}"
                    for name in ("question_share", "regret_share")
                ),
            ]
            for j in counts
        ),
    )  # fmt: skip
    kept = table(
        ["eps", "delta = k^(5/3) eps^(1/3)", *names],
        (
            [
                f"{e:g}",
                f"{k ** (5 / 3) * e ** (1 / 3):.2f}",
                *(percent(float(np.mean(cells[family, k, e, "Theorem 2"].kept))) for family in names),
            ]
            for e in plan.precisions
        ),
    )
    loose = table(
        ["k", "Theorem 1's bound", "worst measured", "below eps =", "Theorem 2's bound", "worst measured",
         "below eps =", "spanner theorem's bound", "worst measured"],
        (
            [
                j,
                percent(first_bound(j, eps)),
                percent(pooled(cells, j, eps, "Theorem 1", "regret").max()),
                f"{first_bound(j, 1) ** -3:.1g}",
                percent(second_bound(j, eps)),
                percent(pooled(cells, j, eps, "Theorem 2", "regret").max()),
                f"{second_bound(j, 1) ** -3:.1g}",
                percent(4 * (j - 1) * eps),
                percent(pooled(cells, j, eps, "spanner", "regret").max()),
            ]
            for j in plan.objectives
        ),
    )  # fmt: skip
    lost = [e for e in plan.precisions if np.mean(pooled(cells, k, e, "Theorem 2", "kept")) < 0.05]
    truncated = (
        f"At k = {k} it left out more than 95% of the ratios at every eps from {max(lost):g} down to {min(lost):g}; "
        "what is left is little more than the benchmark, and the regret is that of hardly having asked."
        if lost
        else f"At k = {k} it never left out more than 95% of the ratios."
    )
    checked = everywhere(cells, "Theorem 1", "benchmark_share")
    ratios = everywhere(cells, "Theorem 1", "ratio_share")
    certified = everywhere(cells, "spanner", "regret_share")
    broken = {
        "Lemma 1's first bound": int(np.sum(checked > 1 + 1e-9)),
        "Lemma 1's second bound": int(np.sum(ratios > 1 + 1e-9)),
        "the bound on the questions": int(
            np.sum(np.append(everywhere(cells, "Theorem 1", "question_share"),
                             everywhere(cells, "spanner", "question_share")) > 1)
        ),
        "the spanner theorem's bound": int(np.sum(certified > 1 + 1e-9)),
    }  # fmt: skip
    asked = {m: float(pooled(cells, k, eps, m, "questions").mean()) for m in methods}
    fewer = 1 - asked["spanner"] / asked["Theorem 1"]
    worse = [
        a / b
        for f in names
        for a, b in zip(means(f, "Theorem 1", "misjudged"), means(f, "spanner", "misjudged"), strict=True)
    ]
    sweep = {e: float(pooled(cells, k, e, "Theorem 2", "regret").max()) for e in plan.precisions}
    worst = max(sweep, key=lambda e: sweep[e])
    slopes = [slope(plan.precisions, means(f, m, "misjudged")) for f in names for m in ("Theorem 1", "spanner")]
    smallest, largest = min(s for s, _ in slopes), max(s for s, _ in slopes)
    # The theorem's own page is another's; a link to nowhere is worse than none.
    spanner = "; [the theorem](spanner.md)" if (path.parent / "spanner.md").exists() else ""
    text = f"""# Theory and practice

What the paper proves about its elicitation, beside what is measured: {interviews:,} simulated interviews.

This page and its pictures are made by

```bash
{command}
```

and every number on it is printed by that script. Three ways of asking are compared: the paper's basis with the
estimate
of **Theorem 1** (`basis="paper"`), the same with **Theorem 2**'s truncated estimate (`theorem=2`), and the paper's
strategy with a **spanner** for its basis (`basis="spanner"`{spanner}). Nothing is skipped as
implied and `literal=True` is set, so that each asks what its pseudo-code asks.
An estimate with negative weights is replaced by the nearest one
without (see strategies/_paper.py), so that nothing dominated is recommended.

**Problems**, {plan.instances} of each kind and number of objectives: *uniform catalogue*, 300 points uniform in a
cube;
*sphere catalogue*, 300 points on the positive part of a sphere, all of them on the frontier; *thin catalogue*, 300
points within 5% of a simplex; *random MDP*, 30 states, 4 actions, 6 steps, three successors per choice. All values
are
gains over the problem's reference, each between 0 and 1. **Users**: {plan.users_of(k)} of each problem with {k}
objectives and {plan.users_of(k + 1)} of each other one; weights Dirichlet(1), scaled so that the user's best
alternative is worth v* = 1. So eps is relative, and regret is too. The same problems and users stand behind every eps
and every method.

## Against the precision

![Questions, regret and misjudgement against eps](pictures/theory-precision.svg)

k = {k}, all problems together:

{by_precision}

Questions grow with log(1/eps), as the theorems say. At eps = {eps:g} the spanner asks {percent(fewer)} fewer
questions
than the paper's basis: its ratios lie in [0, 1], where the paper searches [0, 4k] and gets about log2(4k) foregone
answers per ratio.

## The exponent of eps

The slope of log(mean) against log(eps), and in brackets over how many values of eps. The mean is over all users,
those
with regret 0 included; a regret below 1e-12 counts as 0; where the mean itself is 0 (nobody lost anything) there is
no
logarithm, and that eps is left out. *Misjudgement* is the quantity that all the proofs bound: the largest error, over
all alternatives, in the worth that the estimated weights give them, sup |<w-hat - w', V>| <w*, V1>. It does not
vanish
as the regret does, and the regret is at most twice as large.

{exponents}

**The paper's bound has exponent 1/3 and the spanner theorem's has 1. The misjudgement of Theorem 1's and of the
spanner's estimate falls with exponents between {smallest:.2f} and {largest:.2f}.** On these problems the paper's
basis is
about as accurate as the spanner (its misjudgement is {min(worse):.2f} to {max(worse):.2f} times the spanner's,
family by
family and eps by eps): what the spanner adds is fewer questions, and a guarantee for all problems.

Regret itself falls faster on average, because a misjudgement of eps costs something only to the few users who are
within about eps of preferring something else, and costs them about eps. Theorem 2's line is no power of eps: it is
flat while delta truncates, and
falls to Theorem 1's when that ends.

## Against the number of objectives

![Questions and regret against k](pictures/theory-objectives.svg)

eps = {eps:g}, all problems together:

{by_objectives}

## The bounds, checked

The largest share of each bound that any interview used up; 1 would be tight, above 1 would be a violation. Lemma 1
needs eps <= v*/2k; {len(checked):,} interviews and {len(ratios):,} ratios are in its range. The bound on the
questions
is (k - 1) + (d - 1) (ceil(log2(2k/eps)) + 1) for the paper's basis, and (d - 1) + (d - 1) (ceil(log2(1/2eps)) + 1)
for
the spanner: the tournament, and halving [0, 4k] or [0, 1] until its middle is within eps of the ratio.

{lemma}

Violations: {", ".join(f"{count} of {what}" for what, count in broken.items())}.

## Where the bounds are loose

With 1 for the constants that the paper does not state, d = k and eps = {eps:g}. A regret cannot exceed 100%, so a
bound
above that says nothing; "below eps =" is where it begins to say something.

{loose}

- **Theorem 1** says nothing at any eps that a person could have. Its factor (sqrt(k) + 1)^(d + 14/3) is exponential
  in
  d and its exponent is 1/3; the measured regret has neither.
- **Lemma 1** is loose by the factors in the table above: the benchmark is worth only v*/2k if one plan reaches the
  best of every objective while each objective's own optimum is worth nothing on the others, and the comparisons err
  as
  much as they may; and the bound on the ratio's error takes the largest ratio and the smallest benchmark at once.
- **Theorem 2** trades the exponential factor for delta, and delta is what hurts. Gains are at most 1, so no value is
  longer than sqrt(k), and a delta above that leaves out every ratio of every problem: that is eps > k^(-7/2), or
  {k ** (-7 / 2):.2g} at k = {k} and {10 ** (-7 / 2):.2g} at k = 10. {truncated}
  Its largest regret at k = {k} is {percent(sweep[worst])}, at eps = {worst:g}. (The paper's delta = k^(5/3)
  eps^(1/3) leaves
  out the size of the values and v*, and so depends on the unit they are measured in; here that is the attainable
  range.)
- **The spanner theorem** is loose by a factor of {1 / max(float(certified.max(initial=0)), 1e-9):.0f} in its worst
  interview.
- **The bound on the questions** is nearly tight.

The share of the ratios that Theorem 2's estimate uses, k = {k}:

{kept}
"""
    path.write_text(wrapped(text), encoding="utf-8")
