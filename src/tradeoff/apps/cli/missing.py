"""What a command says when no problem is given: what can be given, with an example."""

from __future__ import annotations

import click

EXAMPLE = "commute"
# What stands for the other arguments and the required options of a command in its example.
PLACEHOLDERS = {
    "name": "mine",
    "log": "answers.jsonl",
    "logs": "ann.jsonl bo.jsonl",
    "weights": "time=3,comfort=1",
}


class ProblemName(click.types.StringParamType):
    """The type of the argument PROBLEM: any text, and advice where there is none."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what can be given."""
        from tradeoff.sources import examples

        ctx = ctx or click.get_current_context(silent=True)
        lines = [
            "It can be",
            f"  a bundled problem: {', '.join(examples())}",
            "  a table of items: a file that ends in .csv, .xlsx, .parquet, ...",
            "  another file: .toml, .json, .npz, .graphml, .umb, .prism, .jani, ...",
            "  SCHEME:NAME, such as gym:FrozenLake-v1",
        ]
        return "\n".join([*lines, *([] if ctx is None else ["", f"Example: {example_of(ctx)}"])])


def example_of(ctx: click.Context) -> str:
    """Return a whole command line with a bundled problem."""
    words = [ctx.command_path]
    for one in ctx.command.params:
        if isinstance(one, click.Argument):
            words.append(EXAMPLE if one.name == "problem" else PLACEHOLDERS.get(str(one.name), str(one.name)))
    for one in ctx.command.params:
        if isinstance(one, click.Option) and one.required:
            file = (one.metavar or "FILE").replace("FILE", "result")
            words += [one.opts[0], PLACEHOLDERS.get(str(one.name), file if "." in file else f"{file}.npz")]
    return " ".join(words)
