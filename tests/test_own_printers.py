"""A function of the project that prints on rank 0 alone stands for the prints of the file that it can make."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability, ReplaceExpression
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed, findings_of

HEAD = "import os\nimport sys\nimport torch.distributed as dist\n\n"
ASKS = "def is_main():\n    return not dist.is_initialized() or dist.get_rank() == 0\n\n\n"
PRINTER = ASKS + "def log0(*args, **kwargs):\n    if is_main():\n        print(*args, **kwargs)\n\n\n"
FIRST = "print('a', args.rate, end='', flush=True)"
LINES = ("args.step()", FIRST, "for name in args.names:", "    print(name)", "args.step()")


def program(printer: str, *lines: str, head: str = HEAD, above: str = "rank = dist.get_rank()") -> str:
    body = "".join(f"    {line}\n" for line in (above, *lines))
    return f"{head}{printer}def main(args):\n{body}"


def by(name: str, *lines: str) -> tuple[str, ...]:
    return tuple(line.replace("print(", f"{name}(") for line in lines)


def is_by_test(printer: str, *lines: str, above: str = "rank = dist.get_rank()") -> bool:
    """Whether the fix is a test round the lines, as it is without such a function."""
    (found,) = findings_of(UnguardedPrint, program(printer, *lines, above=above))
    assert found.applicability is Applicability.SAFE
    return not any(isinstance(e, ReplaceExpression) and e.code.endswith("log0") for e in found.edits)


def test_the_printer_wins_over_a_test() -> None:
    before, after = program(PRINTER, *LINES), program(PRINTER, *by("log0", *LINES))
    check_transformed(UnguardedPrint, before, after)
    check_nothing(UnguardedPrint, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("print('a')", "for name in args.names:", "    print(name)", "print('b')", "print('c')"),
        ("args.step()", "if args.long:", "    print('a')", "args.step()"),
    ],
)
def test_the_printer_wins_over_a_return_at_the_top_and_a_test_that_is_there(lines: tuple[str, ...]) -> None:
    check_transformed(UnguardedPrint, program(PRINTER, *lines), program(PRINTER, *by("log0", *lines)))


def test_the_printer_wins_over_the_print_of_a_framework() -> None:
    head = HEAD + "from accelerate import Accelerator\n\n"
    lines = ("args.step()", "print('a')", "args.step()")
    before = program(PRINTER, *lines, head=head, above="accelerator = Accelerator()")
    after = program(PRINTER, *by("log0", *lines), head=head, above="accelerator = Accelerator()")
    check_transformed(UnguardedPrint, before, after)


ONE = "print(args.rate)"
GROUP = "dist.is_initialized()"
BODIES = [
    "def log0(message):\n    if is_main():\n        print(message, flush=True)\n",
    "def log0(message=''):\n    'One line.'\n    if not is_main():\n        return\n    print(message)\n    sys.stdout.flush()\n",
    f"def log0(message):\n    if {GROUP}:\n        if dist.get_rank() == 0:\n            print(message)\n    else:\n"
    "        print(message)\n",
    f"def log0(*words):\n    if not {GROUP}:\n        print(*words)\n        return\n    if dist.get_rank() != 0:\n"
    "        return\n    print(*words)\n",
    "def log0(*words):\n    rank = int(os.environ.get('RANK', 0))\n    if rank == 0:\n        print(*words)\n",
    "def log0(*words):\n    if int(os.environ.get('RANK', 0)) == 0:\n        print(*words)\n    else:\n        pass\n",
    "@rank_zero_only\ndef log0(*words, **options):\n    print(*words, **options)\n",
]


@pytest.mark.parametrize("body", BODIES)
def test_what_prints_on_rank_zero_alone(body: str) -> None:
    head = HEAD + "from lightning.pytorch.utilities import rank_zero_only\n\n"
    lines = ("args.step()", ONE, "args.step()")
    before, after = (program(ASKS + body + "\n\n", *x, head=head) for x in (lines, by("log0", *lines)))
    check_transformed(UnguardedPrint, before, after)
    check_nothing(UnguardedPrint, after)


@pytest.mark.parametrize(
    "body",
    [
        "def log0(*words):\n    if is_main():\n        print('[0]', *words)\n",  # says something else
        "def log0(*words):\n    if is_main():\n        print(*words, file=sys.stderr)\n",
        "def log0(*words, **options):\n    if is_main():\n        print(*words)\n        print()\n",
        "def log0(*words):\n    if is_main() and VERBOSE:\n        print(*words)\n",  # not always
        "def log0(*words):\n    if is_main():\n        print(*words)\n        LINES.append(words)\n",  # does more
        "def log0(*words):\n    LINES.append(words)\n    if is_main():\n        print(*words)\n",
        "def log0(*words):\n    if int(os.environ.get('LOCAL_RANK', 0)) == 0:\n        print(*words)\n",  # once for each node
        "def log0(*words):\n    if dist.get_rank() == 1:\n        print(*words)\n",
        "def log0(*words):\n    if dist.is_initialized() and dist.get_rank() == 0:\n        print(*words)\n",  # silent
        "def log0(*words):\n    if dist.get_rank() == 0:\n        print(*words)\n",  # fails for one process
        "def log0(level, *words):\n    if is_main():\n        print(*words)\n",  # takes something else
        "def log0(*words):\n    words = words[1:]\n    if is_main():\n        print(*words)\n",
        "async def log0(*words):\n    if is_main():\n        print(*words)\n",
        "def log0(*words):\n    print(*words)\n",
        "class Out:\n    def log0(*words):\n        if is_main():\n            print(*words)\n",
        "if os.environ.get('A'):\n    def log0(*words):\n        if is_main():\n            print(*words)\n",
        "def log0(*words):\n    if is_main():\n        print(*words)\n\n\nlog0 = args.log0\n",  # means something else by now
        "def log0(*words):\n    if RANK == 0:\n        print(*words)\n",  # a name that is bound nowhere
    ],
)
def test_what_does_not(body: str) -> None:
    head = "" if body.startswith("def log0(*words):\n    print") else ASKS
    assert is_by_test(head + body + "\n\n", "args.step()", ONE, "args.step()")


@pytest.mark.parametrize(
    "answer",
    [
        "    if dist.is_initialized():\n        return dist.get_rank() == 0\n    return False\n",
        "    return dist.is_initialized() and dist.get_rank() == 0\n",
        "    return (dist.get_rank() if dist.is_initialized() else -1) == 0\n",
        "    return RANK == 0\n\n\nRANK = None\n",
    ],
)
def test_a_test_that_one_process_does_not_pass(answer: str) -> None:
    printer = PRINTER.replace("    return not dist.is_initialized() or dist.get_rank() == 0\n", answer)
    assert is_by_test(printer, "args.step()", ONE, "args.step()")


@pytest.mark.parametrize("first", ["RANK = int(os.environ['RANK'])", "RANK = None", "RANK = -1"])
def test_a_rank_that_the_file_keeps(first: str) -> None:
    printer = f"{first}\n\n\ndef log0(*words):\n    if RANK == 0:\n        print(*words)\n\n\n"
    lines = ("args.step()", ONE, "args.step()")
    assert is_by_test(printer, *lines) is first.endswith(("None", "1"))


def test_a_name_that_means_something_else_in_the_function() -> None:
    lines = ("args.step()", ONE, "args.step()")
    source = program(PRINTER, *lines).replace("def main(args)", "def main(args, log0)")
    assert findings_of(UnguardedPrint, source)[0].edits[0].__class__.__name__ == "WrapInGuard"


@pytest.mark.parametrize(
    ("signature", "line", "taken"),
    [
        ("message): print(message)", "print()", False),
        ("message=''): print(message)", "print()", True),
        ("message): print(message)", "print('a', args.rate)", False),
        ("message): print(message)", "print(*args.names)", False),
        ("message): print(message)", "print('a', flush=True)", False),
        ("message, **o): print(message, **o)", "print('a', flush=True)", True),
        ("*words): print(*words)", "print(*args.names)", True),
        ("*words): print(*words)", "print('a', end='')", False),
        ("*words, **o): print(*words, flush=True, **o)", "print('a', end='')", True),
        ("*words, **o): print(*words, flush=True, **o)", "print('a', flush=True)", False),  # given twice
        ("*words, **o): print(*words, **o)", "print('a', **args.options)", True),
        ("*words, **o): print(*words, **o)", "print('a',\n          args.rate)", False),  # would stand askew
    ],
)
def test_what_a_print_is_given(signature: str, line: str, taken: bool) -> None:
    head, _, shown = signature.partition(": ")
    printer = f"{ASKS}def log0({head}:\n    if is_main():\n        {shown}\n\n\n"
    lines = ("args.step()", "print('b')" if line == "print()" else ONE, line, "args.step()")
    assert is_by_test(printer, *lines) is not taken


def test_a_printer_of_another_file() -> None:
    files = {"tools/out.py": HEAD + PRINTER, "tools/__init__.py": ""}
    lines = ("args.step()", "print('a')", "args.step()")
    head = HEAD + "from tools.out import log0\n\n"
    check_transformed(UnguardedPrint, program("", *lines, head=head), program("", *by("log0", *lines), head=head), files=files)
    module = HEAD + "from tools import out\n\n"
    check_transformed(
        UnguardedPrint, program("", "out.log0('start')", *lines, head=module),
        program("", "out.log0('start')", *by("out.log0", *lines), head=module), files=files,
    )  # fmt: skip
    for other in ("from tools import out", "try:\n    from tools.out import log0\nexcept ImportError:\n    log0 = None"):
        (found,) = findings_of(UnguardedPrint, program("", *lines, head=f"{HEAD}{other}\n\n"), files=files)
        assert not any(isinstance(e, ReplaceExpression) for e in found.edits)


def test_a_printer_below_the_place_or_in_another_function() -> None:
    assert findings_of(UnguardedPrint, program("", *LINES) + "\n\n" + PRINTER)[0].edits[0].__class__.__name__ == "WrapInGuard"
    other = "def other(rank):\n    def log0(*words):\n        if rank == 0:\n            print(*words)\n    log0('a')\n\n\n"
    assert is_by_test(other, "args.step()", ONE, "args.step()")


def test_a_printer_inside_the_function() -> None:
    inside = ("def log0(*words):", "    if rank == 0:", "        print(*words)", "args.step()")
    lines = ("print('a')", "args.step()")
    check_transformed(UnguardedPrint, program("", *inside, *lines), program("", *inside, *by("log0", *lines)))


def test_a_printer_inside_a_method_and_in_a_script() -> None:
    inside = ("def log0(*words):", "    if rank == 0:", "        print(*words)", "args.step()")
    source = program("class A:\n", *inside, "print('a')", "args.step()")
    head, _, body = source.partition("def main")
    method = head + "    def main" + body.replace("\n    ", "\n        ")
    check_transformed(UnguardedPrint, method, method.replace("print('a')", "log0('a')"))
    script = f"{HEAD}{PRINTER}rank = int(os.environ['RANK'])\nmodel = make()\nprint('a')\nmodel.step()\n"
    check_transformed(UnguardedPrint, script, script.replace("print('a')", "log0('a')"))


def test_a_printer_that_asks_the_group_before_it_is_there() -> None:
    lines = ("print('a')", "args.step()", "dist.init_process_group('gloo')", "print('b')", "args.step()")
    found = findings_of(UnguardedPrint, program(PRINTER, *lines, above="rank = int(os.environ['RANK'])"))
    assert [any(isinstance(e, ReplaceExpression) for e in f.edits) for f in found] == [False, True]


def test_a_printer_that_needs_the_group_where_it_has_been_called() -> None:
    bare = "def log0(*words):\n    if dist.get_rank() == 0:\n        print(*words)\n\n\n"
    lines = ("log0('start')", "args.step()", "print('a')", "args.step()")
    check_transformed(UnguardedPrint, program(bare, *lines), program(bare, *by("log0", *lines)))


def test_an_assumption_is_about_the_printer() -> None:
    files = {"run.sh": "torchrun --nproc_per_node=8 module.py\n"}
    printer = "def log0(*words):\n    if int(os.environ.get('RANK', 0)) == 0:\n        print(*words)\n\n\n"
    head = "import os\n\nworld_size = int(os.environ.get('WORLD_SIZE', 1))\nmodel.train()\n"
    source = program(printer, "print('a')", "args.step()", head=head, above="args.step()")
    (found,) = findings_of(UnguardedPrint, source, files=files)
    assert found.applicability is Applicability.UNSAFE
    assert found.reason == "assumes that `log0` knows the rank by then"
    assert [e.code for e in found.edits if isinstance(e, ReplaceExpression)] == ["log0"]


METHOD = """
    import torch.distributed as dist
    {imported}

    class Run:
        def __init__(self, accelerator, args):
            self.accelerator = accelerator
            self.args = args

        def print(self, message):
            {body}

        def prepare(self):
            self.print("prepares")

        def train(self, rank, loader):
            self.accelerator.step()
            {line}
            self.accelerator.step()
"""
BY_ACCELERATOR = "'On one process.'\n        self.accelerator.print(message)"
BY_GROUP = "if not dist.is_initialized() or dist.get_rank() == 0:\n            print(message)"
ACCELERATE = "from accelerate import Accelerator"


def of_class(body: str, line: str = "print(f'of {len(loader)}')", *, imported: str = ACCELERATE, more: str = "") -> str:
    return textwrap.dedent(METHOD).format(body=body, line=line, imported=imported) + textwrap.dedent(more)


@pytest.mark.parametrize("body", [BY_ACCELERATOR, BY_GROUP])
def test_a_method_of_the_class(body: str) -> None:
    check_transformed(UnguardedPrint, of_class(body), of_class(body, "self.print(f'of {len(loader)}')"))


@pytest.mark.parametrize(
    ("body", "line", "more"),
    [
        (BY_ACCELERATOR, "print('of', len(loader))", ""),  # it takes one message
        ("print(message)", "print('a')", ""),
        ("self.args.lines += 1\n        self.accelerator.print(message)", "print('a')", ""),
        (BY_ACCELERATOR, "print('a')", "\n\nclass Loud(Run):\n    def print(self, message):\n        print(message)\n"),
    ],
)
def test_a_method_that_does_other_than_print_the_message(body: str, line: str, more: str) -> None:
    found = findings_of(UnguardedPrint, of_class(body, line, more=more))
    assert not any(getattr(e, "code", "") == "self.print" for f in found for e in f.edits)


def test_a_method_that_nothing_of_the_class_calls_is_no_word_of_it() -> None:
    source = of_class(BY_ACCELERATOR).replace('self.print("prepares")', "pass")
    assert not any(getattr(e, "code", "") == "self.print" for f in findings_of(UnguardedPrint, source) for e in f.edits)


WORDS = (
    "import torch.distributed as dist\n\nKINDS = 3\n\n\ndef print_first(*words):\n    if dist.is_initialized():\n"
    "        if dist.get_rank() == 0:\n            print(*words)\n    else:\n        print(*words)\n"
)
OTHER = "from tools.words import print_first\n\n\ndef test(args):\n    print_first('tests', args)\n"
DATA = """
    import torch.distributed as dist
    from tools.words import {names}


    def load(args, rank=0):
        parts = args.parts(KINDS)
        {line}
        {more}
        return args.load(parts)


    def main(args):
        dist.init_process_group("nccl")
        load(args, rank=dist.get_rank())
"""
BESIDE = {"tools/__init__.py": "", "tools/words.py": WORDS, "other.py": OTHER}


def data(names: str, line: str, more: str = "args.work()") -> str:
    return textwrap.dedent(DATA).format(names=names, line=line, more=more)


def test_a_function_beside_what_the_file_imports() -> None:
    before, after = data("KINDS", "print('parts', parts)"), data("KINDS, print_first", "print_first('parts', parts)")
    check_transformed(UnguardedPrint, before, after, files=BESIDE)


@pytest.mark.parametrize(
    ("files", "more"),
    [
        (BESIDE, "if rank == 0: args.save()"),  # the function has its own word
        ({**BESIDE, "other.py": "from tools.words import KINDS\n"}, "args.work()"),  # nobody prints by it
        ({**BESIDE, "tools/words.py": WORDS.replace("if dist.get_rank() == 0:", "if True:")}, "args.work()"),
        (BESIDE, "print_first = args.first"),
    ],
)
def test_a_function_that_is_not_brought_in(files: dict[str, str], more: str) -> None:
    found = findings_of(UnguardedPrint, data("KINDS", "print('parts', parts)", more), files)
    assert found and not any(getattr(e, "code", "") == "print_first" for f in found for e in f.edits)
