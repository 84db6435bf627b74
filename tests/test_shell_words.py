"""A shell's text as commands and words: quotes, continuations, what the shell decides."""

from __future__ import annotations

import pytest

from codemods.shell_words import commands


def read(text: str) -> list[list[str | None]]:
    return [[w.value for w in command] for command in commands(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python a.py --x 1\n", [["python", "a.py", "--x", "1"]]),
        ("python a.py \\\n  --x 1 \\\r\n  --y\n", [["python", "a.py", "--x", "1", "--y"]]),
        ("a 'b c' \"d e\" f\\ g h'i'\"j\"", [["a", "b c", "d e", "f g", "hij"]]),
        ("a \"x $Y z\" $Z ${W:-1 2} $(b 'c)' d) `e f` g", [["a", None, None, None, None, None, "g"]]),
        ("a *.py ~/b {c,d} {e} f?", [["a", None, None, None, "{e}", None]]),
        ("a # b c\nd#e # f", [["a"], ["d#e"]]),
        ("a; b && c || d | e & f\n(g)", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("a --x 1 > log.txt 2>&1\nb &> c < d", [["a", "--x", "1"], ["b"]]),
        ("cat <<EOF > x\npython no.py\nEOF\npython yes.py <<< word", [["cat"], ["python", "yes.py"]]),
        ("a 1\nb 'open\nc", [["a", "1"]]),
        ('x "a \\" b" ${{inputs.dir}} c', [["x", 'a " b', None, "c"]]),
        ("", []),
    ],
)
def test_commands(text: str, words: list[list[str | None]]) -> None:
    assert read(text) == words


def test_a_word_knows_its_place_with_its_quotes() -> None:
    text = "a \\\n  --name='x y' b"
    (command,) = commands(text)
    assert [text[w.start : w.end] for w in command] == [w.raw for w in command] == ["a", "--name='x y'", "b"]
