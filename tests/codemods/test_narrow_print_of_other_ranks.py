from __future__ import annotations

import pytest

from codemods.ranks.narrow_print_of_other_ranks import NarrowPrintOfOtherRanks
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

CODEMOD = NarrowPrintOfOtherRanks
QUIET = "builtins.print = lambda *args: None"


def script(*lines: str, head: str = "", test: str = "dist.get_rank() != 0", quiet: str = QUIET) -> str:
    body = "".join(f"    {line}\n" for line in (f"if {test}:", f"    {quiet}", *lines))
    return f"import builtins\nimport sys\nimport torch.distributed as dist\n{head}\n\ndef main(args):\n{body}"


def test_example_of_the_page() -> None:
    sections = CODEMOD.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(CODEMOD, before, after)


@pytest.mark.parametrize(
    "line", ["print('a', flush=True)", "for x in args:\n        print(x, end='')", "print('a', file=sys.stderr)"]
)
def test_a_lambda_takes_keywords(line: str) -> None:
    wide = "builtins.print = lambda *args, **kwargs: None"
    check_transformed(CODEMOD, script(line), script(line, quiet=wide))


NOTHING = "\n\ndef nothing(*words):\n    pass\n"


def test_a_function_takes_keywords_by_a_lambda() -> None:
    line, named = "print('a', flush=True)", "builtins.print = nothing"
    wide = "builtins.print = lambda *words, **kwargs: nothing(*words)"
    check_transformed(CODEMOD, script(line, head=NOTHING, quiet=named), script(line, head=NOTHING, quiet=wide))


def test_a_print_in_what_comes_behind() -> None:
    other = {"steps.py": "def go(rows):\n    for row in rows:\n        print(row, flush=True)\n"}
    source = script("go(args)", head="from steps import go\n")
    found = findings_of(CODEMOD, source, other)
    assert len(found) == 1 and "steps.py:3" in found[0].message


def test_a_replacement_in_a_helper() -> None:
    helper = script(head="").replace("def main(args)", "def hush(args)")
    check = "from hush import hush\n\n\ndef main(args):\n    hush(args)\n    print('begin', flush=True)\n"
    assert findings_of(CODEMOD, helper, {"train.py": check}, path="hush.py")
    under = check.replace("    print(", "    if args.rank == 0:\n        print(")
    assert not findings_of(CODEMOD, helper, {"train.py": under}, path="hush.py")


def test_other_parameters_are_told() -> None:
    head = "\n\ndef one(text):\n    pass\n"
    check_told(CODEMOD, script("print('a', end='')", head=head, quiet="builtins.print = one"), reason="let it take `**kwargs`")


@pytest.mark.parametrize(
    "source",
    [
        script("print('a')"),  # no keyword
        script("if dist.get_rank() == 0:", "    print('a', flush=True)"),  # with Python's own
        script("try:", "    print('a', flush=True)", "except TypeError:", "    pass"),
        script("sys.stderr.write('a')", "log('a', flush=True)"),
        script("print('a', flush=True)", quiet="builtins.print = lambda *args, **kwargs: None"),
        script("print('a', flush=True)", quiet="builtins.print = lambda *args, flush=False: None"),
        script("print('a', force=True)"),  # Python's own refuses it, too
        script("print('a', flush=True)", test="args.quiet"),  # on every rank: seen at once
        script("print('a', flush=True)", head="from rich import print\n"),
        script("print('a', flush=True)", quiet="console.print = lambda *args: None"),
        script("def show():", "    print('a', flush=True)"),  # nobody calls it
        script().replace("def main(args):\n", "def main(args):\n    print('a', flush=True)\n"),  # above the replacement
        script("return", "print('a', flush=True)"),
    ],
)
def test_what_raises_nothing(source: str) -> None:
    check_nothing(CODEMOD, source)


def test_a_repositorys_own_tests() -> None:
    assert not findings_of(CODEMOD, script("print('a', flush=True)"), path="tests/test_a.py")
