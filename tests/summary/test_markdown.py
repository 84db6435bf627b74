"""Text that stays text, code that stays code."""

from __future__ import annotations

import pytest

from ddpfix.summary.markdown import code, cut, fence, numbers, prose, table, written


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sync_dist=True does nothing here", "`sync_dist=True` does nothing here"),
        ("@rank_zero_only and @property", "`@rank_zero_only` and `@property`"),
        ("self.val_acc is one", "`self.val_acc` is one"),
        ("__init__ and _private", "`__init__` and `_private`"),
        ("see #123", "see `#123`"),
        ("'val/loss' is rank 0's own", "`'val/loss'` is rank 0's own"),
        ("each rank's file and that rank's number", "each rank's file and that rank's number"),
        ("the key `a_b` stays", "the key `a_b` stays"),
        ("a * b < c > d", "a \\* b \\< c \\> d"),
        ("F.mse_loss(x, y) is local", "`F.mse_loss(x, y)` is local"),
        ("rank(s) and fix(es)", "rank(s) and fix(es)"),
        ("pkg/train.py:12 reads", "`pkg/train.py:12` reads"),
        ("wait() ends", "`wait()` ends"),
        ("F.nll(logits, target, reducti... is a number", "`F.nll(logits, target, reducti...` is a number"),
        ("Net.from_pretrained(args.init, …", "`Net.from_pretrained(args.init, …`"),
        ("print(…) writes", "`print(…)` writes"),
        ("rank(s) wait … for it", "rank(s) wait … for it"),
        ("self.head(x.mean(dim=1)) is used", "`self.head(x.mean(dim=1))` is used"),
        ("open(path, 'w') writes", "`open(path, 'w')` writes"),
        ("Model.setup and pl.LightningModule", "`Model.setup` and `pl.LightningModule`"),
        ("Lightning 2.0 and later, e.g. 2.6.6.", "Lightning 2.0 and later, e.g. 2.6.6."),
        ("two\n lines", "two lines"),
        ("ok.", "ok."),
        ("an `open span", "an \\`open span"),
        ("[link](http://x)", "\\[link\\](`http://x`)"),
        ("see HTTPS://x.test/a, or www.x.test", "see `HTTPS://x.test/a,` or `www.x.test`"),
        ("/@acme/owners, .@1x, a@b.c, &#64;acme", "/`@`acme/owners, .`@`1x, a@b.c, &`#64`;acme"),
        ("acme/one#12, x!3, GH-4, #5", "acme/one`#`12, x`!`3, GH`-`4, `#5`"),
        ("`a`@b and `c``@d`", "`a` `@b` and ```c``@d```"),
        ("a\u202eb\x1b[31m", "a\ufffdb\ufffd\\[31m"),
    ],
)
def test_prose(text: str, shown: str) -> None:
    assert prose(text) == shown


def test_code_holds_its_backticks() -> None:
    assert code("a") == "`a`"
    assert code("a`b") == "``a`b``"
    assert code("`a") == "`` `a ``"
    assert code("a\nb") == "`a b`"


def test_a_fence_is_longer_than_any_in_its_content() -> None:
    assert fence(["x"], "sh") == ["```sh", "x", "```"]
    assert fence(["````"])[0] == "`" * 5


def test_paragraphs_and_items_come_on_one_line_each() -> None:
    text = "One\ntwo `@x` @person.\n\n- first\n  goes on\n- second\n\n```python\na\nb\n```"
    assert written(text) == ["One two `@x` `@person.`", "", "- first goes on", "- second", "", "```python", "a", "b", "```"]


def test_a_cell_cannot_break_its_table() -> None:
    assert table(("a", "b"), [("x|y", "1\n2")]) == ["| a | b |", "| --- | --- |", "| x\\|y | 1 2 |"]


def test_numbers() -> None:
    assert numbers([3, 1, 2, 7]) == "1-3, 7"
    assert numbers(range(0, 40, 2), 2) == "0, 2 and 18 more"


@pytest.mark.parametrize("limit", range(30, 120, 7))
def test_cut_closes_the_fence(limit: int) -> None:
    text = "head\n\n````diff\n" + "+ a line with ``` in it\n" * 20 + "````\nend\n"
    short = cut(text, limit, "More.")
    assert len(short) <= limit
    assert short.count("````") % 2 == 0
    assert short.endswith("More.\n")
