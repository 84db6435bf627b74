from __future__ import annotations

import pytest

from codemods.api.codemod import TOPICS
from ddpfix.catalog import Selection, UnknownSelector, all_codemods, check_words, lookup, matches, selected, topic_words


def codes(**words: tuple[str, ...]) -> set[str]:
    return {c.code for c in selected(Selection(**words))}


def test_codemods_are_found_by_walking_the_folders_and_stand_by_code() -> None:
    found = [c.code for c in all_codemods()]
    assert {"DDP101", "DDP103"} <= set(found)
    assert found == sorted(set(found))


def test_by_default_all_but_the_opt_in_ones() -> None:
    assert codes() == {c.code for c in all_codemods() if not c.opt_in}
    assert codes(select=("all",)) == {c.code for c in all_codemods()}


@pytest.mark.parametrize("word", ["DDP103", "ddp103", " DDP103 ", "synced-metric-object", "synced_metric_object"])
def test_one_codemod_by_code_or_name(word: str) -> None:
    assert codes(select=(word,)) == {"DDP103"}
    assert lookup(word.strip()).code == "DDP103"


def test_by_prefix_and_by_topic() -> None:
    prefixed = {c.code for c in all_codemods() if c.code.startswith("DDP1")}
    assert codes(select=("DDP1",)) == prefixed
    assert codes(select=("metrics",)) == {c.code for c in all_codemods() if c.topic() == "metrics"}
    assert codes(select=("ranks", "DDP103"), ignore=("DDP2",)) == {"DDP103"} | {
        c.code for c in all_codemods() if c.topic() == "ranks" and not c.code.startswith("DDP2")
    }
    assert codes(ignore=("DDP",)) == set()
    assert codes(select=("DDP103",), extend=("DDP101",)) == {"DDP101", "DDP103"}


@pytest.mark.parametrize("topic", [*TOPICS, *topic_words()])
def test_every_topic_is_known_even_while_it_is_empty(topic: str) -> None:
    assert codes(select=(topic,)) == {c.code for c in all_codemods() if c.topic() == topic.replace("-", "_")}


@pytest.mark.parametrize(
    ("word", "near"),
    [("DDP999", None), ("D", None), ("zz", None), ("", None), ("unsynced-metrics", "unsynced-metric"),
     ("metric", "metrics"), ("rank", "ranks")],
)  # fmt: skip
def test_an_unknown_word_is_told_with_the_nearest(word: str, near: str | None) -> None:
    with pytest.raises(UnknownSelector) as error:
        selected(Selection(select=(word,)))
    assert repr(word) in str(error.value)
    if near:
        assert f"did you mean {near}?" in str(error.value)
    with pytest.raises(UnknownSelector):
        selected(Selection(ignore=(word,)))


def test_the_code_of_unused_comments_is_nobody_s_and_known() -> None:
    check_words(["DDP000", "ddp0"], all_codemods())
    assert codes(ignore=("DDP000",)) == codes()


def test_lookup_of_nothing() -> None:
    with pytest.raises(UnknownSelector, match="did you mean"):
        lookup("synced-metric-objekt")
    with pytest.raises(UnknownSelector):
        lookup("DDP1")


def test_all_and_topics_fit() -> None:
    codemod = lookup("DDP103")
    assert matches(codemod, "all") and matches(codemod, "metrics") and not matches(codemod, "ranks")


def test_two_codemods_of_one_code_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    from ddpfix import catalog

    class Mine(type(lookup("DDP103"))):  # type: ignore[misc]
        code = "MINE001"

    monkeypatch.setattr(catalog, "installed", lambda: ((Mine,), ()))
    all_codemods.cache_clear()
    try:
        assert "MINE001" in {c.code for c in all_codemods()}
        Mine.code = "DDP103"
        all_codemods.cache_clear()
        with pytest.raises(ValueError, match="two codemods have the code DDP103"):
            all_codemods()
    finally:
        monkeypatch.undo()
        all_codemods.cache_clear()

