"""The body of a pull request: what folds up, what is cut, what the bot reads back."""

from __future__ import annotations

import re

import pytest

from ddpfix.bot import marks
from ddpfix.bot.body import fit, folded, footer, pull_body
from ddpfix.bot.marks import Marks

SUMMARY = """\
# ddpfix: 2 fixes in 1 file

No training was run: see [Not run](#not-run), or [the manual](https://example.test/).

## DDP101 unsynced-metric: 2 fixes in 1 file

**Problem.** Something.

### `a<b>&.py`

```diff
### not a heading
-x
```

### Further files

- `b.py`

## How to test

### Not folded
"""


def test_the_files_of_a_codemod_fold_up_and_nothing_else() -> None:
    text = folded(SUMMARY)
    assert "<details><summary><code>a&lt;b&gt;&amp;.py</code></summary>\n\n```diff\n### not a heading" in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert "### Not folded" in text
    assert text.index("</details>\n\n## How to test")
    assert "see Not run, or [the manual](https://example.test/)" in text


def test_a_body_says_what_the_title_does_not() -> None:
    body = pull_body(SUMMARY, footer(".github/ddpfix.toml"), Marks("safe"))
    assert body.startswith("No training was run")
    assert body.endswith("<!-- ddpfix:pr topic=safe -->\n")


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
    body = pull_body("x\n" * 50_000, footer("p"), Marks("unsafe", "a" * 40, "b" * 40, "1.0", ("DDP101",), ("DDP2",)))
    assert len(body) <= 30_000
    assert "`no-ddpfix`" in body
    assert marks.read(body) == Marks("unsafe", "a" * 40, "b" * 40, "1.0", ("DDP101",), ())  # DDP2 is no code


def test_marks_are_read_back() -> None:
    given = Marks("DDP101", "a" * 40, "b" * 40, "0.1.0", ("DDP201",), ("DDP301", "DDP302"), closed=True)
    assert marks.read(f"text\n{given.text()}\n") == given
    assert marks.read("a body by somebody") is None
    # the last word counts: a summary may quote another pull request
    assert marks.read(f"{Marks('safe').text()}\n{Marks('unsafe').text()}") == Marks("unsafe")
