"""The table of messages: each row finds its own text, and no row takes another one's."""

from __future__ import annotations

import pytest

from ddpfix.catalog import all_codemods
from ddpfix.diagnosis import log
from ddpfix.diagnosis.messages import Message, all_messages

ROWS = all_messages()


def found_in(sample: str) -> list[str]:
    return [hit.message.id for hit in log.read(f"epoch 1\n{sample}\nepoch 2\n".encode(), "train.log").hits]


def test_there_are_enough_rows_and_no_id_stands_twice() -> None:
    assert len(ROWS) >= 80
    assert len({m.id for m in ROWS}) == len(ROWS)


@pytest.mark.parametrize("message", ROWS, ids=[m.id for m in ROWS])
def test_a_sample_is_found_by_its_own_row_and_by_no_other(message: Message) -> None:
    assert found_in(message.sample) == [message.id]


@pytest.mark.parametrize("message", ROWS, ids=[m.id for m in ROWS])
def test_a_sample_is_found_behind_the_labels_of_launchers(message: Message) -> None:
    for label in ("[rank1]: ", "[default0]:[rank0]: ", "[1,0]<stderr>:", "2025-11-02T04:00:10.123Z ", " 3: ", "\x1b[31m"):
        assert message.id in found_in(label + message.sample.strip()), label


@pytest.mark.parametrize("message", ROWS, ids=[m.id for m in ROWS])
def test_every_word_leads_somewhere(message: Message) -> None:
    """A row with a pattern is found by its sample's word; each other word must at least be one that the table looks for."""
    for word in message.find:
        assert word.strip() and len(word) > 8
        if message.pattern is None:
            assert message.id in found_in(word)


def test_every_code_is_a_codemod() -> None:
    known = {c.code for c in all_codemods()}
    assert {code for m in ROWS for code in m.codes} <= known


@pytest.mark.parametrize("message", ROWS, ids=[m.id for m in ROWS])
def test_a_row_says_all_it_has_to(message: Message) -> None:
    assert message.means and message.cause and message.repair and message.source
    assert message.how in ("run", "source", "logs")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[rank3]: Parameter indices which did not receive grad for rank 3: 4 5 11", {"rank": "3", "indices": "4 5 11"}),
        ("Parameters which did not receive grad for rank 0: a.weight, b.bias", {"rank": "0", "names": "a.weight, b.bias"}),
        ("Duplicate GPU detected : rank 3 and rank 1 both on CUDA device 4000", {"rank": "3", "other": "1"}),
        ("It is recommended to use `self.log('val/acc', ..., sync_dist=True)` when logging on epoch level", {"key": "val/acc"}),
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'", {"keyword": "gpus"}),
    ],
)
def test_a_pattern_says_what_the_line_names(line: str, said: dict[str, str]) -> None:
    (hit,) = log.read(line.encode(), "train.log").hits
    assert dict(hit.said) == said


@pytest.mark.parametrize(
    "line",
    [
        "INFO expected to have finished the reduction of the learning rate",
        "TypeError: Net.__init__() got an unexpected keyword argument 'depth'",
        "AttributeError: 'NoneType' object has no attribute 'shape'",
        "Support for `resume` has been removed in v2.0.0 of our own tool",
        "step 10 loss 0.31 connection pool reset",
    ],
)
def test_words_of_other_programs_are_none_of_these(line: str) -> None:
    assert found_in(line) == []
