"""What ``load`` does with a name before any reader sees it."""

import pytest

from tradeoff.sources import RUN_CODE, SCHEMES, load, runs_code


@pytest.mark.parametrize(
    "name", ["python:os:abort", "gym:FrozenLake-v1", "mo-gym:deep-sea-treasure-v0", "gym:os:Env-v0"]
)
def test_names_that_import_or_call_code(name):
    assert runs_code(name)


@pytest.mark.parametrize(
    "name", ["coffee", "a.toml", "table:a.csv", "minari:x/y-v0", "prism:a.nm", "Python:os:abort", " python:a:b"]
)
def test_names_that_only_read_data(name):
    assert not runs_code(name)


def test_what_is_said_to_be_data_imports_nothing(tmp_path, monkeypatch):
    """Every scheme is tried with the name of a module that must not be imported."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    for scheme in SCHEMES:
        if scheme not in RUN_CODE:
            with pytest.raises(ValueError):
                load(f"{scheme}:trap:Env-v0")
