from __future__ import annotations

import io

import pytest

from codemods.api.findings import SetKeyword
from codemods.ranks.progress_bar_on_every_rank import ProgressBarOnEveryRank, turned
from ddpfix.testing import check_nothing, check_transformed, findings_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom tqdm import tqdm, trange\n"


def script(*lines: str, head: str = HEAD, arguments: str = "loader") -> str:
    body = "".join(f"    {line}\n" for line in ("rank = dist.get_rank()", *lines))
    return f"{head}\ndef train({arguments}):\n{body}"


def test_example_of_the_page() -> None:
    sections = ProgressBarOnEveryRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(ProgressBarOnEveryRank, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in tqdm(loader): pass", "for x in tqdm(loader, disable=rank != 0): pass"),
        ("for i, x in enumerate(tqdm(loader)): pass", "for i, x in enumerate(tqdm(loader, disable=rank != 0)): pass"),
        (
            "for x in (bar := tqdm(loader)): bar.set_postfix(x=x)",
            "for x in (bar := tqdm(loader, disable=rank != 0)): bar.set_postfix(x=x)",
        ),
        ("for i in trange(9): pass", "for i in trange(9, disable=rank != 0): pass"),
        ("for i in trange(9): use(i); break", "for i in trange(9, disable=rank != 0): use(i); break"),
        ("with tqdm(total=9) as bar: bar.update(1)", "with tqdm(total=9, disable=rank != 0) as bar: bar.update(1)"),
        ("x = [f(x) for x in tqdm(loader)]", "x = [f(x) for x in tqdm(loader, disable=rank != 0)]"),
    ],
)
def test_bars_that_are_gone_through(before: str, after: str) -> None:
    check_transformed(ProgressBarOnEveryRank, script(before), script(after))


def test_a_rank_among_others_in_one_line() -> None:
    head = "import os\nimport torch.distributed as dist\nfrom tqdm import tqdm\n"
    both = "rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])"
    body = f"\ndef train(loader):\n    {both}\n    for x in tqdm(loader{{}}): pass\n"
    check_transformed(ProgressBarOnEveryRank, head + body.format(""), head + body.format(", disable=rank != 0"))


def test_a_bar_under_a_name() -> None:
    lines = ("bar = tqdm(loader)", "for x in bar:", "    bar.set_postfix(loss=1)", "bar.close()")
    after = ("bar = tqdm(loader, disable=rank != 0)", *lines[1:])
    check_transformed(ProgressBarOnEveryRank, script(*lines), script(*after))


@pytest.mark.parametrize(
    "shown",
    [
        "rank_loss=rank_loss",  # a number of the work
        "loss=x.to(device).item()",  # where it was worked out is not shown
        "lr=rates['rank'], size=dist.get_world_size()",
    ],
)
def test_what_a_bar_shows_of_the_work(shown: str) -> None:
    lines = ("device = torch.device('cuda', rank)", "bar = tqdm(loader)", "for x in bar:", f"    bar.set_postfix({shown})")
    after = (lines[0], "bar = tqdm(loader, disable=rank != 0)", *lines[2:])
    given = "loader, rank_loss, rates"
    check_transformed(ProgressBarOnEveryRank, script(*lines, arguments=given), script(*after, arguments=given))


def test_in_a_hook() -> None:
    before = """\
        import lightning.pytorch as pl
        from tqdm.auto import tqdm

        class A(pl.Callback):
            def on_fit_end(self, trainer, pl_module):
                for row in tqdm(self.rows):
                    pl_module.use(row)
        """
    check_transformed(
        ProgressBarOnEveryRank, before, before.replace("tqdm(self.rows)", "tqdm(self.rows, disable=not trainer.is_global_zero)")
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("for x in tqdm(loader, disable=False): pass",),
        ("for x in tqdm(loader, **options): pass",),
        ("for x in tqdm(loader, position=1): pass",),
        ("for x in tqdm(loader, file=log): pass",),
        ("for x in tqdm(loader, desc=f'rank {rank}'): pass",),
        ("bar = tqdm(loader)", "for x in bar:", "    bar.set_postfix({'loss': x, 'device': f'rank:{rank}'})"),
        ("bar = tqdm(iter(loader))", "for i, x in enumerate(bar):", "    bar.set_description(f'{i} of {dist.get_rank()}')"),
        ("bar = tqdm(loader)", "shown = dict(loss=1, rank=rank)", "for x in bar:", "    bar.set_postfix(shown)"),
        ("with tqdm(loader) as bar:", "    for x in bar:", "        bar.set_postfix_str('rank ' + str(rank))"),
        (
            "device = torch.device('cuda', rank)",
            "bar = tqdm(loader)",
            "for x in bar:",
            "    bar.set_postfix(on=str(device))",
        ),
        ("bar = tqdm(loader)", "for x in bar:", "    print(bar.n)"),
        ("bar = tqdm(loader)", "use(bar)"),
        ("bar = tqdm(loader)", "rate = bar.format_dict['rate']"),
        ("return tqdm(loader)",),
        ("bars = {'a': tqdm(loader)}",),
        ("if rank == 0:", "    for x in tqdm(loader): pass"),
        ("for i, x in tqdm(enumerate(loader)):", "    break", "    work(x)"),
        ("for x in tqdm(loader):", "    return x"),
        ("with main_process_first():", "    for x in tqdm(loader): pass"),
    ],
)
def test_bars_that_stay(lines: tuple[str, ...]) -> None:
    check_nothing(ProgressBarOnEveryRank, script(*lines))


def test_a_bar_of_the_object() -> None:
    source = """\
        import torch.distributed as dist; WORLD = dist.group.WORLD
        from tqdm import tqdm

        class Loop:
            def run(self, rank):
                self.bar = tqdm(total=9)
                self.bar.update(1)

            def seen(self):
                return self.bar.{}
        """
    check_nothing(ProgressBarOnEveryRank, source.format("n"))
    changed = source.format("total")
    check_transformed(ProgressBarOnEveryRank, changed, changed.replace("tqdm(total=9)", "tqdm(total=9, disable=rank != 0)"))


def test_other_bars_one_process_and_no_test() -> None:
    check_nothing(ProgressBarOnEveryRank, script("for x in tqdm(loader): pass", head=HEAD.replace("from tqdm", "from rich")))
    check_nothing(ProgressBarOnEveryRank, "from tqdm import tqdm\n\ndef f(rank, a):\n    for x in tqdm(a): pass\n")
    check_nothing(ProgressBarOnEveryRank, HEAD + "\ndef f(a):\n    for x in tqdm(a): pass\n")
    check_nothing(ProgressBarOnEveryRank, script("for x in tqdm(loader): pass"), path="tests/test_a.py")


@pytest.mark.parametrize(
    ("test", "other"),
    [
        ("rank == 0", "rank != 0"), ("args.rank in (-1, 0)", "args.rank not in (-1, 0)"),
        ("self.trainer.is_global_zero", "not self.trainer.is_global_zero"),
        ("self.is_world_process_zero()", "not self.is_world_process_zero()"),
        ('int(os.environ.get("RANK", 0)) == 0', 'int(os.environ.get("RANK", 0)) != 0'),
        ("is_main(args) or True", "not (is_main(args) or True)"),
    ],
)  # fmt: skip
def test_the_other_ranks(test: str, other: str) -> None:
    assert turned(test) == other


def test_what_a_disabled_bar_still_does() -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    bar = tqdm(range(3), disable=True, file=io.StringIO())
    assert list(bar) == [0, 1, 2] and bar.total == 3
    bar.update(1)
    bar.set_postfix(a=1)
    bar.set_description("a")
    bar.refresh()
    bar.reset()
    bar.close()
    assert not hasattr(bar, "start_t") and not hasattr(bar, "last_print_n")


def test_a_bar_that_no_program_of_the_project_comes_to_stays() -> None:
    before = ProgressBarOnEveryRank.sections()["Example"].removeprefix("```python\n").removesuffix("```")
    run = "import torch.distributed as dist\nimport {}\n\nif __name__ == '__main__':\n"
    run += "    dist.init_process_group('nccl')\n    {}\n"
    check_nothing(ProgressBarOnEveryRank, before, files={"run.py": run.format("module", "pass")})
    called = run.format("module", "module.evaluate(net, loader)")
    assert len(findings_of(ProgressBarOnEveryRank, before, files={"run.py": called})) == 1


def test_bars_within_files_of_the_rank() -> None:
    lines = ("with open(f'{rank}.txt', 'w') as out:", "    for x in tqdm(loader): out.write(x)")
    check_nothing(ProgressBarOnEveryRank, script(*lines))
    assert findings_of(ProgressBarOnEveryRank, script("with open('a.txt') as given:", "    for x in tqdm(given): pass"))


def test_a_bar_under_an_argument_that_nobody_gives() -> None:
    source = script("if shown:", "    for x in tqdm(loader): pass", arguments="loader, shown=False")
    calls = "\n\nif __name__ == '__main__':\n    train(make())\n"
    check_nothing(ProgressBarOnEveryRank, source + calls)
    check_transformed(
        ProgressBarOnEveryRank, source + calls.replace("make()", "make(), True"),
        (source + calls.replace("make()", "make(), True")).replace("tqdm(loader)", "tqdm(loader, disable=rank != 0)"),
    )  # fmt: skip


# A rank that the file has bound

LOOP = "\n\ndef train(loader):\n    for x in tqdm(loader{0}):\n        step(x)\n"
STARTS = "dist.init_process_group('nccl')\n"
ARMS = "if dist.is_initialized():\n    number = dist.get_rank()\nelse:\n    number = 0\n"


@pytest.mark.parametrize(
    ("bound", "test"),
    [
        (f"{STARTS}rank = dist.get_rank()\n", "rank"),
        (f"{STARTS}number = dist.get_rank()\n", "number"),
        (STARTS + ARMS, "number"),
        (f"{STARTS}rank = dist.get_rank() if dist.is_initialized() else 0\n", "rank"),
    ],
)
def test_the_rank_that_the_file_has_bound_above_the_function(bound: str, test: str) -> None:
    before = HEAD + bound + LOOP.format("")
    check_transformed(ProgressBarOnEveryRank, before, HEAD + bound + LOOP.format(f", disable={test} != 0"))


@pytest.mark.parametrize(
    "source",
    [
        HEAD + ARMS + LOOP.format(""),  # a file that somebody imports before the group is there
        f"{HEAD}{STARTS}rank = dist.get_rank()\n" + LOOP.format("").replace("    for x", "    rank = sizes()\n    for x"),
    ],
)
def test_a_rank_that_is_not_sure_to_be_there(source: str) -> None:
    written = [e.value for f in findings_of(ProgressBarOnEveryRank, source) for e in f.edits if isinstance(e, SetKeyword)]
    assert not any(name in text for text in written for name in ("rank !=", "number"))


# What the function or the class asks elsewhere, in place of a variable of the launcher

OBJECT = """import os

import torch
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


class Meter:
    def __init__(self, model, rank):
        self.model = DistributedDataParallel(model)
        {}
        self.quiet = False

    def measure(self, loader):
        for batch in tqdm(loader{}):
            self.model(batch).backward()

    def tell(self):
        {}
            print("done")
"""
OWN_RANK, ASKED = 'self.rank = int(os.environ["RANK"])', "if not self.quiet and self.rank == 0:"


def test_the_field_that_another_method_asks() -> None:
    before, after = (OBJECT.format(OWN_RANK, given, ASKED) for given in ("", ", disable=self.rank != 0"))
    check_transformed(ProgressBarOnEveryRank, before, after)


@pytest.mark.parametrize("asked", ["if not self.quiet or self.rank == 0:", "if not self.quiet:", "if self.rank != 0:"])
def test_the_field_that_the_constructor_gives_the_rank(asked: str) -> None:
    before, after = (OBJECT.format(OWN_RANK, given, asked) for given in ("", ", disable=self.rank != 0"))
    check_transformed(ProgressBarOnEveryRank, before, after)


def test_a_field_that_nobody_sets_says_nothing_at_the_bar() -> None:
    made = 'self.number = int(os.environ["RANK"])'
    before, after = (OBJECT.format(made, given, ASKED) for given in ("", ', disable=int(os.environ.get("RANK", 0)) != 0'))
    check_transformed(ProgressBarOnEveryRank, before, after, unsafe=True)


FUNCTION = """import os

import torch
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm


def train(model, loader, rank):
    model = DistributedDataParallel(model.to(int(os.environ["LOCAL_RANK"])))
    for batch in tqdm(loader{}):
        model(batch).backward()
        {}
        if rank == 0:
            print("step")
"""


def test_a_parameter_that_the_function_asks_further_down() -> None:
    before, after = (FUNCTION.format(given, "pass") for given in ("", ", disable=rank != 0"))
    check_transformed(ProgressBarOnEveryRank, before, after)


def test_a_parameter_that_gets_another_value() -> None:
    before, after = (
        FUNCTION.format(given, "rank = int(batch[0])") for given in ("", ', disable=int(os.environ.get("RANK", 0)) != 0')
    )
    check_transformed(ProgressBarOnEveryRank, before, after, unsafe=True)


HANDED = """import torch.distributed as dist
from tqdm import tqdm


def is_main():
    return dist.get_rank() == 0


def predict(model, loader, verbose=False):
    rank = dist.get_rank()
    if verbose:
        bar = tqdm(total=len(loader))
    for batch in loader:
        model(batch)
        if verbose:
            bar.update(1)


def main(model, loader, args):
    first = is_main()
    {}
"""


@pytest.mark.parametrize(
    ("calls", "drawn"),
    [
        ("predict(model, loader, verbose=first)", False),
        ("predict(model, loader, is_main())\n    predict(model, loader)", False),  # the second leaves it off
        ("predict(model, loader, verbose=first)\n    predict(model, loader, verbose=True)", True),
        ("predict(model, loader, verbose=args.verbose)", True),
        ("predict(model, loader, verbose=first)\n    predict(model, loader, verbose=args.verbose)", True),
    ],
)
def test_a_switch_that_the_callers_give_to_rank_zero(calls: str, *, drawn: bool) -> None:
    assert bool(findings_of(ProgressBarOnEveryRank, HANDED.format(calls))) is drawn


def test_bars_of_ranks_whose_stderr_goes_into_a_file() -> None:
    """The helper that leads it away stands in another file, and the program calls it in a constructor."""
    helper = (
        "import sys\n\n\ndef open_folder(options, folder):\n    if options.rank != 0:\n"
        "        sys.stderr = open(folder / f'stderr_{options.rank}.log', 'w')\n    return folder\n"
    )
    source = script("for x in tqdm(loader): pass", head=HEAD + "from folders import open_folder\n") + (
        "\n\nclass Run:\n    def __init__(self, options):\n        self.folder = open_folder(options, options.folder)\n"
    )
    check_nothing(ProgressBarOnEveryRank, source, files={"folders.py": helper})
    assert findings_of(ProgressBarOnEveryRank, source, {"folders.py": helper.replace("sys.stderr = ", "errors = ")})


GIVEN_RANK = """\
from tqdm import tqdm
import torch.distributed as dist


def train(loader, {parameter}):
    {above}
    if {test}:
        print("start")
    for x in tqdm(loader{{}}):
        pass


def main(args, loader):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    {call}
    dist.barrier()
"""


@pytest.mark.parametrize(
    ("parameter", "call"),
    [
        ("rank", "train(loader, rank if args.sharded else None)"),
        ("rank=None", "train(loader, rank=None)"),
        ("rank=None", "train(loader) if args.alone else train(loader, rank)"),
        ("rank", "known = rank if args.sharded else None; train(loader, known)"),
        ("rank", "known = None\n    if args.sharded:\n        known = rank\n    train(loader, known)"),
    ],
)
@pytest.mark.parametrize("test", ["rank == 0", "rank==0"])
def test_a_rank_that_a_call_leaves_at_none(parameter: str, call: str, test: str) -> None:
    """Without a rank every process goes on drawing its bar: `rank != 0` would hide all of them."""
    text = GIVEN_RANK.format(parameter=parameter, call=call, test=test, above="pass")
    check_transformed(ProgressBarOnEveryRank, text.format(""), text.format(", disable=rank not in (None, 0)"))


@pytest.mark.parametrize(
    ("parameter", "call", "above"),
    [
        ("rank", "train(loader, rank)", "pass"),
        ("rank=None", "train(loader, rank)", "pass"),  # the default is never taken
        ("rank", "known = None; known = rank; train(loader, known)", "pass"),
        ("rank", "train(loader, rank if args.sharded else None)", "assert rank is not None"),
    ],
)
def test_a_rank_that_no_call_leaves_at_none(parameter: str, call: str, above: str) -> None:
    text = GIVEN_RANK.format(parameter=parameter, call=call, test="rank == 0", above=above)
    check_transformed(ProgressBarOnEveryRank, text.format(""), text.format(", disable=rank != 0"))


def test_a_rank_that_another_file_leaves_at_none() -> None:
    text = GIVEN_RANK.format(parameter="rank", call="train(loader, rank)", test="rank == 0", above="pass")
    other = "from module import train\n\n\ndef run(loader):\n    train(loader, None)\n"
    after = text.format(", disable=rank not in (None, 0)")
    check_transformed(ProgressBarOnEveryRank, text.format(""), after, files={"small.py": other})


@pytest.mark.parametrize(
    "bound",
    [
        "from functools import partial\ntqdm = partial(tqdm, ncols=90, disable=dist.get_rank() != 0)",
        "import functools\nquiet = {'disable': QUIET}\ntqdm = functools.partial(tqdm, **quiet)",
        "from functools import partial\nBAR = partial(tqdm, disable=True)\ntqdm = partial(BAR, leave=False)",
        "def wrapped(rows, **more):\n    return rows\n\n\ntqdm = wrapped",
        "tqdm = choose_bar()",
    ],
)
def test_a_name_that_the_file_binds_anew(bound: str) -> None:
    check_nothing(ProgressBarOnEveryRank, script("for x in tqdm(loader): pass", head=f"{HEAD}{bound}\n"))


def test_a_partial_within_the_function_and_one_put_into_the_package() -> None:
    lines = ("tqdm = functools.partial(_bar, disable=rank != 0)", "for x in tqdm(loader): pass")
    head = "import functools\nimport torch.distributed as dist\nfrom tqdm import tqdm as _bar\n"
    check_nothing(ProgressBarOnEveryRank, script(*lines, head=head))
    head = "import functools\nimport torch.distributed as dist\nimport tqdm\n"
    head += "tqdm.tqdm = functools.partial(tqdm.tqdm, disable=QUIET)\n"
    check_nothing(ProgressBarOnEveryRank, script("for x in tqdm.tqdm(loader): pass", head=head))


@pytest.mark.parametrize(
    "bound",
    [
        "from functools import partial\ntqdm = partial(tqdm, ncols=90)",
        "from functools import partial\nother = partial(tqdm, disable=True)",
        "try:\n    from tqdm import tqdm\nexcept ImportError:\n    tqdm = list",
        "try:\n    from tqdm import tqdm\nexcept ImportError:\n    def tqdm(rows, **more):\n        return rows",
        "def other():\n    tqdm = partial(bar, disable=True)\n    return tqdm",
    ],
)
def test_a_name_that_leaves_the_bar_as_it_is(bound: str) -> None:
    before, after = (f"for x in tqdm(loader{more}): pass" for more in ("", ", disable=rank != 0"))
    head = f"{HEAD}{bound}\n"
    check_transformed(ProgressBarOnEveryRank, script(before, head=head), script(after, head=head))


@pytest.mark.parametrize(
    ("given", "drawn"),
    [("disable=dist.get_rank() != 0", False), ("ncols=80", True)],
)
def test_a_constructor_that_the_program_has_changed(given: str, *, drawn: bool) -> None:
    files = {
        "run.py": f"""\
from functools import partialmethod

import torch.distributed as dist
from tqdm import tqdm

from module import train


def quieten():
    tqdm.__init__ = partialmethod(tqdm.__init__, {given})


if __name__ == "__main__":
    dist.init_process_group("nccl")
    quieten()
    train([1])
""",
        "run.sh": "torchrun --nproc_per_node=2 run.py\n",
    }
    found = findings_of(ProgressBarOnEveryRank, script("for x in tqdm(loader): pass"), files=files)
    assert bool(found) is drawn


@pytest.mark.parametrize(
    "lines",
    [
        ("with open(args.path, 'w') as rows:", "    for x in tqdm(loader):", "        rows.write(x)"),
        ("with open('rows.txt', mode='a') as rows, args.timer():", "    rows.writelines(str(x) for x in tqdm(loader))"),
        ("with open('x', 'w') as rows:", "    if args.named:", "        for x in tqdm(loader):", "            rows.write(x)"),
    ],
)
def test_the_bar_of_a_file_that_every_rank_writes(lines: tuple[str, ...]) -> None:
    check_nothing(ProgressBarOnEveryRank, script(*lines, arguments="loader, args"))


@pytest.mark.parametrize(
    "lines",
    [
        ("with open(args.path) as rows:", "    for x in tqdm(rows):", "        args.take(x)"),
        ("with open(args.path, 'w') as rows:", "    rows.write('x')", "for x in tqdm(loader):", "    args.take(x)"),
        ("with torch.no_grad():", "    for x in tqdm(loader):", "        args.take(x)"),
    ],
)
def test_bars_of_other_blocks(lines: tuple[str, ...]) -> None:
    assert findings_of(ProgressBarOnEveryRank, script(*lines, arguments="loader, args"))
