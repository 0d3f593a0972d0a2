"""The command ``tradeoff compile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tradeoff import load
from tradeoff.apps.cli.main import main
from tradeoff.covering import better_coverages
from tradeoff.problems.coverage import Coverage


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout if "--json" in arguments else done.output


def test_a_compiled_problem_is_written_continued_and_used_like_any_other(tmp_path: Path) -> None:
    out = tmp_path / "compiled.npz"
    code, said = run("compile", "vacuum", "-o", out, "--tolerance", "0.05")
    assert code == 0 and "is proved to miss at most" in said
    first = load(out)
    code, said = run("compile", "vacuum", "-o", out, "--tolerance", "0.01", "--json")
    found = json.loads(said)
    assert code == 0 and found["guarantee"] <= 0.01 and found["plans"] > len(first.plans.values)
    assert not list(tmp_path.glob(".*"))
    code, said = run("check", out)
    assert code == 0 and "computed beforehand" in said
    code, said = run("simulate", out, "--respondents", "3", "--json")
    assert code == 0 and json.loads(said)["respondents"] == 3
    assert run("explain", out, "--weights", "noise=1")[0] == 0


def test_what_is_no_compiled_form_of_the_problem_is_never_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "compiled.npz"
    assert run("compile", "dependent", "-o", out)[0] == 0
    before = out.read_bytes()
    code, said = run("compile", "coffee", "-o", out)
    assert code == 3 and "not a compiled form of this problem" in said and out.read_bytes() == before
    code, said = run("compile", "coffee", "-o", tmp_path / "compiled.toml")
    assert code == 3 and "is written to .npz" in said


def test_an_interruption_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> object:
        for number, found in enumerate(better_coverages(*arguments)):  # type: ignore[arg-type]
            if number == 3:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr("tradeoff.covering.better_coverages", interrupted)
    out = tmp_path / "compiled.npz"
    code, said = run("compile", "commute", "-o", out, "--tolerance", "0.0001")
    assert code == 130 and "was not reached" in said
    kept = load(out)
    assert isinstance(kept, Coverage) and 0.0001 < kept.guarantee < 1
    monkeypatch.undo()
    code, said = run("compile", "commute", "-o", out, "--seconds", "0")
    assert code == 5 and "was not reached" in said
