"""A shell's text as commands and words: quotes, continuations, what the shell decides."""

from __future__ import annotations

import pytest

from codemods.files.shell_words import commands, with_values


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
        (": <<!\npython no.py\n!\npython yes.py", [[":"], ["python", "yes.py"]]),  # commented out
        (":<<'the end'\npython no.py\nthe end\n: << \\#\npython no.py\n#\na", [[":"], [":"], ["a"]]),
        ("a 1\nb 'open\nc", [["a", "1"]]),
        ('x "a \\" b" ${{inputs.dir}} c', [["x", 'a " b', None, "c"]]),
        ("", []),
    ],
)
def test_commands(text: str, words: list[list[str | None]]) -> None:
    assert read(text) == words


def test_the_words_of_an_array_are_one_command() -> None:
    text = 'RUN=(\n  accelerate launch\n  --config_file a.yaml  # one GPU\n  run.py\n)\nexec "${RUN[@]}"\n'
    assert [[w.text for w in c] for c in commands(text)][1] == ["accelerate", "launch", "--config_file", "a.yaml", "run.py"]


def test_a_word_knows_its_place_with_its_quotes() -> None:
    text = "a \\\n  --name='x y' b"
    (command,) = commands(text)
    assert [text[w.start : w.end] for w in command] == [w.raw for w in command] == ["a", "--name='x y'", "b"]


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("method='unimatch'\npython $method.py", "unimatch.py"),
        ("export METHOD=a\npython ${METHOD}.py", "a.py"),
        ('M=a; F="$M.py"\npython "$F"', "a.py"),
        ("python ${M:-a}.py", "a.py"),
        ("M=b\npython ${M:-a}.py", "b.py"),
        ("M=${M:-a}\npython $M.py", "a.py"),
        ("M=a\nM=b\npython $M.py", "b.py"),
        ("M=a\nif [ $1 ]; then N=b; fi\npython $M.py", "a.py"),
    ],
)
def test_a_variable_that_the_script_sets(text: str, settled: str) -> None:
    word = commands(text)[-1][1]
    assert word.value is None and (word.settled, word.text) == (settled, settled)
    assert with_values(text).endswith(settled) or with_values(text).endswith(f'"{settled}"')


@pytest.mark.parametrize(
    "text",
    [
        "python $M.py",
        "python $1.py",
        "M=$1\npython $M.py",
        "M=$1\npython ${M:-a}.py",  # an empty one
        "M=a\nif [ $1 ]; then M=b; fi\npython $M.py",
        "[ -z $M ] && M=a\npython $M.py",
        "for M in a b; do\npython $M.py; done",
        "M=a\nread M\npython $M.py",
        "M=a python $M.py",  # what the shell puts in is older than what the program gets
        "M=a\npython '$M.py'",
        "M=a\nM+=b\npython $M.py",
        "M=/home/me/a\npython $M.py",  # of one machine
        "M='a b'\npython $M.py",  # two words
        "python ${M%.txt}.py",
        "M=$(ls)\npython $M.py",
    ],
)
def test_a_variable_of_which_nothing_is_known(text: str) -> None:
    words = next(c for c in commands(text) if any(w.raw == "python" for w in c))
    assert words[-1].settled is None


def test_numbers_stay_as_people_change_them_from_run_to_run() -> None:
    text = "GPUS=1\nNAMES='a b'\npython -m torch.distributed.launch --nproc_per_node=$GPUS train.py --names $NAMES \\\n --x\n"
    assert with_values(text) == text.replace("$NAMES", "a b")
