"""The body of a pull request: what folds up, what is cut, what the bot reads back."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest

from ddpfix.bot.body import Words, fit, footer, pull_body, unlinked, words_in
from ddpfix.bot.forge import Pull
from ddpfix.bot.marks import Marks, Seal

SEAL = Seal(b"the key of this installation", "mender[bot]", "GitHub 7")
sealed = partial(SEAL.of_pull, "ddpfix/safe")


def pull(body: str, author: str = "mender[bot]") -> Pull:
    return Pull(1, "open", "t", body, False, "u", author, "ddpfix/safe", "1" * 40, "main")


SUMMARY = """\
# ddpfix: 2 fixes in 1 file

No training was run: see [Not read](#not-read), or [the manual](https://example.test/).

## Fixes

### Reduce `x` (DDP101): 2 places

**Problem.** Something.

```diff
### see [Not read](#not-read)
-x
```

## How to test

### Not read
"""


def test_links_to_headings_are_words_and_nothing_else_is_touched() -> None:
    text = unlinked(SUMMARY)
    assert "see Not read, or [the manual](https://example.test/)" in text
    assert "### see [Not read](#not-read)\n" in text  # code
    assert text.replace("see Not read, or", "see [Not read](#not-read), or") == SUMMARY.rstrip("\n") + "\n" * text.endswith("\n")


def test_a_body_says_what_the_title_does_not() -> None:
    body = pull_body(SUMMARY, footer(".github/ddpfix.toml"), Marks("safe"), sealed)
    assert body.startswith("No training was run")
    assert re.search(r"\n<!-- ddpfix:pr topic=safe lines=\S+ mac=[0-9a-f]{64} -->\n\Z", body)


@pytest.mark.parametrize("limit", range(200, 700, 7))
def test_wherever_it_is_cut_everything_is_closed(limit: int) -> None:
    text = "intro\n<details><summary>a</summary>\n\n````py\n```\nx\n" + "y = 1\n" * 40 + "````\n\n</details>\n" + "z\n" * 200
    cut = fit(text, limit)
    assert len(cut) <= limit
    assert cut.count("<details>") == cut.count("</details>")
    assert len(re.findall(r"^````", cut, re.M)) % 2 == 0
    assert "cut for length" in cut
    assert all(line in text for line in cut.split("\n\nThis text")[0].replace("</details>", "").replace("````", "").split("\n"))


def test_what_fits_is_not_touched() -> None:
    assert fit("abc", 3) == "abc"


def test_footer_and_marks_are_never_cut() -> None:
    body = pull_body("x\n" * 50_000, footer("p"), Marks("unsafe", "a" * 40, "b" * 40, "1.0", ("DDP101",), ("DDP201",)), sealed)
    assert 29_000 < len(body) <= 30_000
    assert "`no-ddpfix`" in body
    left = SEAL.left(pull(body))
    assert left is not None
    assert replace(left, lines="") == Marks("unsafe", "a" * 40, "b" * 40, "1.0", ("DDP101",), ("DDP201",))


TEXT = pull_body(SUMMARY, footer("p"), Marks("safe"), sealed)


@pytest.mark.parametrize(
    ("edited", "above", "below"),
    [
        (TEXT, "", ""),
        (TEXT.replace("\n", "\r\n"), "", ""),
        (f"Mine.\n\n```\nx = 1\n```\n\n---\n\n{TEXT}", "Mine.\n\n```\nx = 1\n```\n\n---", ""),
        (f"{TEXT}\nBelow.\r\nMore.", "", "Below.\nMore."),
        (TEXT.replace("## How to test", "I tried it: **works**.\n\n## How to test"), "I tried it: **works**.", ""),
        (TEXT.replace("**Problem.** Something.", "**Problem.** Not for us."), "**Problem.** Not for us.", ""),
        (TEXT.replace("**Problem.** Something.\n", ""), "", ""),  # what the bot said is said again
    ],
    ids=["nothing", "line-ends", "above", "below", "inside", "changed", "taken-out"],
)
def test_peoples_words_are_found_wherever_they_stand(edited: str, above: str, below: str) -> None:
    cut = SEAL.cut(pull(edited))
    assert cut is not None
    words = words_in(*cut)
    assert words == Words(above, below)
    again = pull_body(SUMMARY.replace("Something", "Another thing"), footer("p"), Marks("safe"), sealed, words)
    cut = SEAL.cut(pull(again))
    assert cut is not None
    assert words_in(*cut) == words  # and stand there from then on
    assert above in again
    assert below in again
    assert "Another thing" in again


def test_long_words_of_a_person_leave_less_room_for_the_bots() -> None:
    body = pull_body("x\n" * 50_000, footer("p"), Marks("safe"), sealed, Words("w" * 50_000, ""))
    assert body.startswith("w" * 50_000)
    assert len(body) < 60_500
