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
