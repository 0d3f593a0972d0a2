"""Links to share: unguessable, read-only, to be stopped, and forbidden where a study says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.test_service import new_service
from tests.studies.test_session import COFFEE
from tradeoff.errors import ArgumentError
from tradeoff.stores import MissingError, open_store
from tradeoff.studies import Study
from tradeoff.studies.sharing import FORMAT, _folder, share, share_name, shared_name, shared_token


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{}/a.db"])
def test_a_share_leads_to_one_result_until_it_is_stopped(address: str, tmp_path: Path) -> None:
    with open_store(address.format(tmp_path)) as store:
        people = new_service(store)
        token, other = people.invite(), people.invite()
        assert shared_name(store, people.study, token) == ""
        share(store, people.study, token)
        share(store, people.study, token)  # again: the same link
        name = shared_name(store, people.study, token)
        assert name == share_name(people.study, token) and len(name) == 22
        assert token not in name and shared_token(store, people.study, name) == token
        assert shared_name(store, people.study, other) == ""
        share(store, people.study, token, stop=True)
        assert shared_name(store, people.study, token) == ""
        with pytest.raises(MissingError):
            shared_token(store, people.study, name)
        dead = [name]
        for _ in range(3):  # a name that was stopped is dead for ever; sharing again makes a new one
            share(store, people.study, token)
            share(store, people.study, token)
            name = shared_name(store, people.study, token)
            assert name not in dead and len(name) == 22 and shared_token(store, people.study, name) == token
            for old in dead:
                with pytest.raises(MissingError):
                    shared_token(store, people.study, old)
            share(store, people.study, token, stop=True)
            share(store, people.study, token, stop=True)
            dead.append(name)
        assert set(store.names("tasting")) == {token, other} and Study.names(store) == ["tasting"]


def test_links_that_an_earlier_version_made_work_until_they_are_stopped() -> None:
    """It gave the same name again after a stop."""
    people = new_service()
    token, time = people.invite(), "2026-01-31T12:00:00+00:00"
    name, folder = share_name(people.study, token), _folder(people.study)
    words = ("shared", "stopped", "shared")
    header = {"event": "header", "format": FORMAT, "time": time, "token": token}
    people.store.create(folder, name, [header, *({"event": word, "time": time} for word in words)])
    assert shared_name(people.store, people.study, token) == name
    assert shared_token(people.store, people.study, name) == token
    share(people.store, people.study, token, stop=True)
    share(people.store, people.study, token)
    with pytest.raises(MissingError):
        shared_token(people.store, people.study, name)
    assert shared_name(people.store, people.study, token) != name


def test_names_that_nobody_shares_are_missing() -> None:
    people = new_service()
    token = people.invite()
    for name in (share_name(people.study, token), token, "../x", "", "x" * 300):
        with pytest.raises(MissingError):
            shared_token(people.store, people.study, name)
    with pytest.raises(MissingError):
        share(people.store, people.study, "a" * 22)
    share(people.store, people.study, token, stop=True)  # nothing is there to be stopped
    assert share_name(people.study, token) != share_name(Study.of(COFFEE, "tasting", strategy="paper"), token)


def test_a_study_can_forbid_sharing() -> None:
    people = new_service(sharing=False)
    token = people.invite()
    with pytest.raises(ArgumentError, match="cannot be shared"):
        share(people.store, people.study, token)
    assert not Study.read(people.store, "tasting").sharing
    open_one = new_service()
    assert "sharing" not in open_one.store.read("studies", "tasting")[0]  # earlier versions read it
    assert Study.read(open_one.store, "tasting").sharing
