"""Lotteries in notebooks: importing this module makes notebooks show them as a table."""

from __future__ import annotations

from collections.abc import Sequence

from tradeoff.model import Lottery, as_html
from tradeoff.presentation.risk import basis, risks
from tradeoff.presentation.sentences import plan_lead
from tradeoff.presentation.stories import (
    are_frequencies,
    average,
    chance_words,
    common_total,
    heaviest_first,
    outcomes,
    path_words,
    share_words,
)
from tradeoff.presentation.svg import text

SHOWN = 30  # steps of a path; the middle of a longer one is left out


@as_html.register
def lottery_html(lottery: Lottery) -> str:
    """Return a lottery as a small HTML table: all text escaped, nothing loaded, no scripts."""
    lottery = heaviest_first(lottery)
    total = common_total(lottery) or 100
    left, right = 'style="text-align: left; vertical-align: top"', 'style="text-align: right; vertical-align: top"'

    def row(first: str, path: Sequence[str], amounts: Sequence[str], tag: str = "td") -> str:
        cells = "".join(f"<{tag} {right}>{text(amount)}</{tag}>" for amount in amounts)
        return (
            f"<tr><{tag} {left}>{text(first)}</{tag}><{tag} {left}>{'<br>'.join(map(text, path))}</{tag}>{cells}</tr>"
        )

    rows = [
        row(", ".join(filter(None, said)), shortened(path_words(trajectory)), [amount for _, amount in amounts])
        for said, trajectory, amounts in zip(
            zip(share_words(lottery, total), chance_words(lottery), strict=True),
            lottery.trajectories,
            outcomes(lottery),
            strict=True,
        )
    ]
    spread = [f"{risk.name}: {risk.words}." for risk in risks(lottery)]
    below = "".join(f"<p>{text(line)}</p>" for line in filter(None, (*spread, basis(lottery))))
    names, averages = zip(*average(lottery), strict=True)
    # The classes keep notebooks from typesetting names with dollar signs as formulas.
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'
        f'<caption style="text-align: left">{text(plan_lead(lottery))}</caption>'
        f"<thead>{row('how often' if are_frequencies(lottery) else 'weight', ['what happens'], names, 'th')}</thead>"
        f"<tbody>{''.join(rows)}</tbody><tfoot>{row('on average', [], averages, 'th')}</tfoot></table>{below}"
    )


def shortened(path: Sequence[str], most: int = SHOWN) -> list[str]:
    """Return the steps of a path, without the middle of a long one."""
    if len(path) <= most:
        return list(path)
    left_out = len(path) - most + 1
    return [*path[: most // 2], f"… {left_out:,} more …", *path[most // 2 + left_out :]]
