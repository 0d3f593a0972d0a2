"""What is kept: as much as there is room for, the latest used of it, and everything only once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tradeoff.keeping import Kept

USES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 4)), max_size=40)


@given(USES, st.integers(1, 4), st.integers(1, 8))
def test_the_latest_used_are_kept_as_far_as_there_is_room(uses: list[tuple[str, int]], most: int, largest: int) -> None:
    kept: Kept[str, int] = Kept(most, largest, size=lambda value: value)
    plain: list[tuple[str, int]] = []  # the latest used last
    for key, value in uses:
        known = dict(plain)
        assert kept.once(key, lambda value=value: value) == known.get(key, value)  # type: ignore[misc]
        plain = [one for one in plain if one[0] != key] + [(key, known.get(key, value))]
        while len(plain) > 1 and (len(plain) > most or sum(size for _, size in plain) > largest):
            del plain[0]
        assert {one for one in "abcdef" if one in kept} == set(dict(plain))


def test_nothing_is_made_twice_not_even_nothing() -> None:
    kept: Kept[str, object] = Kept()
    made: list[int] = []
    for _ in range(2):
        assert kept.once("key", lambda: made.append(1)) is None
    assert len(made) == len(kept) == 1 and kept.get("other") is None


def test_a_watcher_is_told_what_is_new() -> None:
    kept: Kept[str, int] = Kept()
    kept.keep("before", 0)
    told: list[tuple[str, int]] = []
    kept.watch = lambda key, value: told.append((key, value))
    assert kept.once("new", lambda: 1) == kept.once("new", lambda: 2) == 1 and kept.get("before") == 0
    assert told == [("new", 1)]
