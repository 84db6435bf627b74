"""The values of a script's variables where a command stands."""

from __future__ import annotations

import pytest

from codemods.analysis.job_files.command_lines import command_lines
from codemods.files.text_file import TextFile
from ddpfix.summary.shown_values import shown_values, with_shown_values


def shown(script: str, *, path: str = "run.sh") -> str:
    """The last command of the script, with the values that are known."""
    command = command_lines(TextFile(path, script.encode()))[-1]
    known = shown_values(command.source, command.words[0].start)
    return " ".join(with_shown_values(word.raw, known) for word in command.words)


@pytest.mark.parametrize(
    ("above", "given", "value"),
    [
        ("size=32", "$size", "32"),
        ("export DATA=/mnt/one", '"${DATA}/x"', '"/mnt/one/x"'),
        ("a=b\nc=$a/d", "$c", "b/d"),
        ("", "${1:-small.yaml}", "small.yaml"),
        ("name=$1", "$name", "$name"),
        ("name='$HOME'", "$name", "$name"),
        ("name=$(date)", "$name", "$name"),
        ("n=8\nb=64", "$((b / n))", "8"),
        ("n=8", "$((n * 2 + 1))", "$((n * 2 + 1))"),
        ("a=x\na+=/y", "$a", "x/y"),
        ("a=x\na+=$(hostname)", "$a", "$a"),
        ("a+=x", "$a", "$a"),
        ("read name", "$name", "$name"),
        ("args='--a 1'", "$args", "--a 1"),
        ("x=1\nunset x", "$x", "$x"),
    ],
)
def test_a_variable_has_what_the_script_gives_it(above: str, given: str, value: str) -> None:
    assert shown(f"{above}\npython train.py {given}\n") == f"python train.py {value}"


def test_in_a_branch_the_values_of_that_branch() -> None:
    script = "n=4\nif [ $1 == train ]\nthen\n b=32\n e=5\n{0}elif [ $1 == test ]\nthen\n b=128\n{1}fi\n{2}"
    command = "python main.py --n $n --b $b --e $e\n"
    assert shown(script.format(command, "", "")) == "python main.py --n 4 --b 32 --e 5"
    assert shown(script.format("", command, "")) == "python main.py --n 4 --b 128 --e $e"
    assert shown(script.format("", "", command)) == "python main.py --n 4 --b $b --e 5"  # two ways, two values


def test_behind_a_branch_that_gives_a_default() -> None:
    assert shown('if [ -z "$d" ]; then\n d=small\nfi\npython a.py $d\n') == "python a.py small"
    assert shown("d=big\nif [ -n $1 ]; then\n d=small\nfi\npython a.py $d\n") == "python a.py $d"


def test_the_first_round_of_a_loop() -> None:
    assert shown("for d in one two; do\n python a.py $d\ndone\n") == "python a.py one"
    assert shown("for d in $all; do\n python a.py $d\ndone\n") == "python a.py $d"
    assert shown("for d in one two; do\n true\ndone\npython a.py $d\n") == "python a.py one"


def test_the_arms_of_a_case() -> None:
    script = "case $1 in\n a) d=one ;;\n b) python a.py $d ;;\nesac\n"
    assert shown(script) == "python a.py $d"


def test_a_document_has_the_blocks_above() -> None:
    text = "Set it:\n```bash\nDATA=/mnt/x\n```\nTrain:\n```bash\npython a.py $DATA\n```\n```\nDATA=y\n```\n"
    assert shown(text, path="README.md") == "python a.py /mnt/x"
