"""DDP203 finds the same test behind other spellings of the rank, and of the places where it is asked."""

from __future__ import annotations

import textwrap

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed, findings_of

HEAD = "import torch\nimport torch.distributed as dist\n\n\ndef main(args):\n"


def torch_main(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


START = 'dist.init_process_group("nccl")'
BOUND = {
    "an annotation": (("rank: int = dist.get_rank()",), "rank == 0"),
    "both branches of an if": (
        ("if dist.is_initialized():", "    rank = dist.get_rank()", "else:", "    rank = 0"), "rank == 0",
    ),
    "a try and its handler": (("try:", "    rank = dist.get_rank()", "except RuntimeError:", "    rank = 0"), "rank == 0"),
    "a flag": (("first = dist.get_rank() == 0",), "first"),
    "a field of a parameter": (("args.rank = dist.get_rank()",), "args.rank == 0"),
    "the group itself": ((), "dist.get_rank() == 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_the_rank_is_known_above_the_place(name: str) -> None:
    lines, test = BOUND[name]
    before = torch_main(START, *lines, "args.work()", 'print("begins")')
    after = torch_main(START, *lines, "args.work()", f"if {test}:", '    print("begins")')
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("if args.many:", "    rank = dist.get_rank()"),  # the other way leaves it unbound
        ("if args.many:", "    rank = dist.get_rank()", "else:", "    rank = -1"),
        ("if args.many:", "    rank = dist.get_rank()", "else:", "    rank = args.position()"),
        ("try:", "    rank = dist.get_rank()", "except RuntimeError:", "    pass"),
        ("rank: int",),
        ("first = dist.get_rank() == 1",),
        (f"if args.many: {START}",),  # there may be no group
        (START, "dist.destroy_process_group()"),
        ("from torch.distributed import init_process_group", "init_process_group()"),
    ],
)
def test_a_rank_that_may_not_be_there_makes_no_test(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedPrint, torch_main(*lines, "args.work()", 'print("begins")'))


ACCELERATED = """
    {0}


    def main(net):
        {1} = {2}Accelerator()
        net = accelerator.prepare(net)
        print("begins"){3}
        net.run()
    """


@pytest.mark.parametrize(
    ("imported", "name", "package", "end"),
    [
        ("from accelerate import Accelerator", "accelerator: Accelerator", "", ""),
        ("import accelerate", "accelerator", "accelerate.", ""),
        ("from accelerate import Accelerator", "accelerator", "", ";"),
        ("from accelerate import Accelerator", "accelerator", "", ";  # said once"),
    ],
)
def test_an_accelerator_however_it_is_written(imported: str, name: str, package: str, end: str) -> None:
    before = textwrap.dedent(ACCELERATED.format(imported, name, package, end))
    check_transformed(UnguardedPrint, before, before.replace('print("begins")', 'accelerator.print("begins")'))


def test_the_cases_of_a_match_are_looked_into() -> None:
    cases = ("match args.mode:", '    case "fit":', '        print("fits")', "        args.fit()")
    before = torch_main(START, "rank = dist.get_rank()", *cases)
    guarded = '            if rank == 0:\n                print("fits")\n'
    check_transformed(UnguardedPrint, before, before.replace('            print("fits")\n', guarded))
    other = before.replace("match args.mode", "match rank").replace('case "fit"', "case 0")
    check_nothing(UnguardedPrint, other)


def test_two_statements_in_one_line_are_parted() -> None:
    before = torch_main(START, "rank = dist.get_rank()", 'print("a"); args.work()')
    after = torch_main(START, "rank = dist.get_rank()", "if rank == 0:", '    print("a")', "args.work()")
    check_transformed(UnguardedPrint, before, after)


# A print of the program's own

QUIET = {
    "in the file": "import builtins\n\nif dist.get_rank() != 0:\n    builtins.print = lambda *a: None\n",
    "as a local import": (
        "def quiet(first):\n    import builtins as __builtin__\n    __builtin__.print = print if first else max\n\nquiet(0)\n"
    ),
}


@pytest.mark.parametrize("name", QUIET)
def test_a_program_that_replaces_print_has_seen_to_it(name: str) -> None:
    body = torch_main(START, "rank = dist.get_rank()", "args.work()", 'print("begins")')
    check_nothing(UnguardedPrint, f"{body}\n\n{QUIET[name]}")
    other = QUIET[name].replace("builtins.print", "args.print").replace("__builtin__.print", "args.print")
    assert findings_of(UnguardedPrint, f"{body}\n\n{other}")


def test_another_program_of_the_repository_prints_as_before() -> None:
    body = torch_main(START, "rank = dist.get_rank()", "args.work()", 'print("begins")')
    helper = "def quiet(first):\n    import builtins\n    builtins.print = print if first else max\n"
    imports = "from module import main\nfrom quiet import quiet\n\n"
    check_nothing(UnguardedPrint, body, files={"quiet.py": helper, "train.py": f"{imports}quiet(True)\nmain(None)\n"})
    assert findings_of(UnguardedPrint, body, {"quiet.py": helper, "train.py": f"{imports}main(None)\n"})


SET = "args.place, args.rank, args.size = args.ask()"


@pytest.mark.parametrize(
    ("above", "between"),
    [
        ((SET,), ()),
        (("args = args.parse()", SET), ()),
        ((SET,), ("keep(args)",)),
    ],
)
def test_a_field_that_the_function_asks_further_down(above: tuple[str, ...], between: tuple[str, ...]) -> None:
    keep = "def keep(args):\n    args.kept = True\n\n\n"
    rest = (*between, "if args.rank == 0:", "    args.save()")
    before = torch_main(START, *above, "args.work()", 'print("begins")', "args.work()", *rest)
    after = torch_main(START, *above, "args.work()", "if args.rank == 0:", '    print("begins")', "args.work()", *rest)
    check_transformed(UnguardedPrint, before.replace("def main", f"{keep}def main"), after.replace("def main", f"{keep}def main"))


@pytest.mark.parametrize(
    ("above", "between"),
    [
        ((), ()),  # whoever set it may do so in between
        (("args.rank = 0",), ()),
        ((SET, "args = args.parse()"), ()),
        ((SET,), ("args.rank = args.ask_again()",)),
        ((SET,), ("start(args)",)),
        (("if args.many:", f"    {SET}"), ()),
    ],
)
def test_a_field_that_may_be_another_by_then(above: tuple[str, ...], between: tuple[str, ...]) -> None:
    start = "def start(args):\n    args.rank = dist.get_rank()\n\n\n"
    rest = (*between, "if args.rank == 0:", "    args.save()")
    source = torch_main(START, *above, "args.work()", 'print("begins")', "args.work()", *rest)
    found = findings_of(UnguardedPrint, source.replace("def main", f"{start}def main") if "start(" in source else source)
    assert [getattr(e, "test", "") for f in found for e in f.edits] == ["dist.get_rank() == 0"]


INNER = """
    import torch.distributed as dist


    def main(args):
        dist.init_process_group("nccl")
        {bound}

        def epoch(loader):
            {inner}
            for batch in loader:
                if args.first:
                    {line}
                    batch.load()
            if rank == 0:
                args.save()

        epoch(args.loader){behind}
"""


def inner(bound: str, *, line: str = 'print("again")', first: str = "args.begin()", behind: str = "") -> str:
    return textwrap.dedent(INNER).format(bound=bound, line=line, inner=first, behind=behind)


def test_a_name_of_the_function_round_it_that_is_asked_further_down() -> None:
    guarded = 'if rank == 0:\n                        print("again")'.replace("                        ", " " * 20)
    bound = "rank = dist.get_rank()"
    check_transformed(UnguardedPrint, inner(bound), inner(bound, line=guarded))


def test_a_name_that_the_function_round_it_changes() -> None:
    bound = "rank = dist.get_rank()"
    check_nothing(UnguardedPrint, inner(bound, behind="\n    rank = args.number"))
    check_nothing(UnguardedPrint, inner(f"if args.many:\n        {bound}\n    else:\n        args.alone()"))


def test_the_names_of_a_comprehension_are_nobody_elses() -> None:
    lines = ('print(f"of {sum(p.size for p in args.parts)}")', "args.work()", "for p in args.parts:", "    args.add(p)")
    after = ("if dist.get_rank() == 0:", f"    {lines[0]}", *lines[1:])
    check_transformed(UnguardedPrint, torch_main(START, "args.work()", *lines), torch_main(START, "args.work()", *after))


def test_the_test_that_stands_beside_it_comes_first() -> None:
    lines = ("first = args.rank == 0", "if args.rank == 0:", "    args.open()", "args.work()", "args.more()", "args.last()")
    beside = ("if first:", "    args.save()")
    before = torch_main(START, "args.rank = dist.get_rank()", *lines, 'print("saves")', *beside)
    after = torch_main(START, "args.rank = dist.get_rank()", *lines, "if first:", '    print("saves")', "    args.save()")
    check_transformed(UnguardedPrint, before, after)
