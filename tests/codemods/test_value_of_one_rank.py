from __future__ import annotations

import pytest

from codemods.ranks.value_of_one_rank import ValueOfOneRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def loop(*lines: str, made: str = "self.average = Average()", head: str = "", test: str = "dist.get_rank() == 0") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"import torch.distributed as dist\n\nclass Loop:\n{head}    def __init__(self, model):\n        self.step = 0\n"
        f"        if {test}:\n            {made}\n\n    def load(self, data):\n{body}"
    )


def script(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"import torch.distributed as dist\n\ndef main(args):\n    rank = dist.get_rank()\n{body}"


def test_example_of_the_page() -> None:
    sections = ValueOfOneRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(ValueOfOneRank, before, after, unsafe=True)


def test_a_call_of_a_local_name() -> None:
    lines = ("if rank == 0:", "    writer = Writer()", "dist.barrier()", "writer.close()")
    after = (*lines[:3], "if rank == 0:", "    writer.close()")
    check_transformed(ValueOfOneRank, script(*lines), script(*after), unsafe=True)
    hidden = ("for r in [rank]:", "    if r == 0:", "        writer = Writer()", "writer.close()")
    check_nothing(ValueOfOneRank, script(*hidden))


def test_what_goes_on_to_something_else_is_told() -> None:
    check_told(ValueOfOneRank, loop("return self.average(data)"), reason="under the same test")


def test_an_attribute_of_an_accelerators_main_process() -> None:
    source = """\
        from accelerate import Accelerator

        class Loop:
            def __init__(self, model, scored):
                self.accelerator = Accelerator()
                if self.accelerator.is_main_process:
                    self.average = Average(model)
                if scored:
                    self.scorer = Scorer(sampler=self.average.model)
        """
    found = check_told(ValueOfOneRank, source, reason="AttributeError")
    assert found.span.line == 9 and "line 7" in found.message


def test_a_local_name() -> None:
    lines = ("if rank == 0:", "    writer = Writer(args.out)", "for x in args.data:", "    y = writer.add(x)")
    check_told(ValueOfOneRank, script(*lines), reason="UnboundLocalError")


@pytest.mark.parametrize(
    "lines",
    [
        ("if dist.get_rank() == 0:", "    self.average.load(data)"),
        ("if dist.get_rank() != 0:", "    return", "self.average.load(data)"),
        ("if hasattr(self, 'average'):", "    self.average.load(data)"),
        ("try:", "    self.average.load(data)", "except AttributeError:", "    pass"),
        ("if is_main():", "    self.average.load(data)"),
        ("self.average = None", "self.average.load(data)"),
        ("setattr(self, data, 1)", "self.average.load(data)"),
        ("other.average.load(data)",),
    ],
)
def test_uses_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, loop(*lines))


def test_values_that_others_may_have() -> None:
    use = "self.average.load(data)"
    check_nothing(ValueOfOneRank, loop(use, test="model.averaged"))
    check_nothing(ValueOfOneRank, loop(use, head="    average = Average()\n"))
    check_nothing(ValueOfOneRank, loop(use).replace("class Loop:", "class Loop(Base):"))
    check_nothing(ValueOfOneRank, loop(use), files={"other.py": "def f(loop):\n    loop.average = 1\n"})
    check_nothing(ValueOfOneRank, loop(use), path="tests/test_a.py")


def test_an_attribute_of_an_unrelated_class_is_another_one() -> None:
    files = {"other.py": "class Other:\n    def __init__(self):\n        self.average = 1\n"}
    check_told(ValueOfOneRank, loop("return self.average(data)"), files=files, reason="under the same test")
    derived = {"other.py": "from module import Loop\n\nclass Other(Loop):\n    def f(self):\n        self.average = 1\n"}
    check_nothing(ValueOfOneRank, loop("return self.average(data)"), files=derived)


def test_a_method_that_only_rank_zero_calls() -> None:
    helper = "\n    def _load(self, data):\n        self.average.load(data)\n"
    source = loop("if dist.get_rank() == 0:", "    self._load(data)") + helper
    check_nothing(ValueOfOneRank, source)


@pytest.mark.parametrize(
    "lines",
    [
        ("writer = Quiet()", "if rank == 0:", "    writer = Writer()", "writer.add(1)"),
        ("if rank == 0:", "    writer = Writer()", "else:", "    writer = Quiet()", "writer.add(1)"),
        ("if rank == 0:", "    writer = Writer()", "    writer.add(1)"),
        ("if rank == 0:", "    writer = Writer()", "if rank == 0 and args.write:", "    writer.add(1)"),
        ("main = rank == 0", "if main:", "    writer = Writer()", "if main:", "    writer.add(1)"),
        ("for x in args.data:", "    if rank == 0:", "        y = f(x)", "    for y in g(x):", "        use(y)"),
        ("if rank != 0:", "    return", "writer = Writer()", "writer.add(1)"),
    ],
)
def test_local_names_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*lines))


def test_a_name_under_a_test_that_another_file_makes() -> None:
    helper = "import torch.distributed as dist\n\ndef speaks():\n    return dist.get_rank() == 0\n"
    source = """
        import torch.distributed as dist
        from who import speaks

        def main(rank, data):
            if rank == 0:
                data.show()
            if speaks():
                board = make(data)
            board.show()
        """
    assert findings_of(ValueOfOneRank, source, {"who.py": helper})
    assert not findings_of(ValueOfOneRank, source, {"who.py": helper.replace("dist.get_rank() == 0", "dist.is_available()")})


# Names of the file, imports, ranks that are handed in

PROGRAM = (
    "import torch.distributed as dist\n{above}\nif __name__ == '__main__':\n    dist.init_process_group('gloo')\n"
    "    if dist.get_rank() == 0:\n        {made}\n{below}"
)


def test_a_name_of_the_program_itself() -> None:
    source = PROGRAM.format(above="", made="folder = 'runs/1'", below="    state = load(folder + '/last.pt')\n")
    found = check_told(ValueOfOneRank, source, reason="under the same test")
    assert "NameError" in found.message


def test_an_import_of_rank_0() -> None:
    used = "    tracker.log({'loss': 1})\n"
    after = "        tracker.log({'loss': 1})\n"
    source = PROGRAM.format(above="", made="import tracker", below=used)
    check_transformed(ValueOfOneRank, source, PROGRAM.format(above="", made="import tracker", below=after), unsafe=True)


@pytest.mark.parametrize(
    ("above", "made", "below"),
    [("import tracker", "import tracker", "    tracker.log(1)\n"),
     ("", "import tracker", "    if tracker_on:\n        tracker.log(1)\n"),
     ("from names import *", "folder = 'runs'", "    load(folder)\n"),
     ("folder = None", "folder = 'runs'", "    load(folder)\n"),
     ("", "folder = 'runs'", "    if args.is_main:\n        load(folder)\n"),
     ("", "folder = 'runs'", "    else:\n        folder = ''\n    load(folder)\n"),
     ("", "folder = 'runs'", "\n    def late():\n        return load(folder)\n")],
)  # fmt: skip
def test_names_of_the_file_that_all_ranks_may_have(above: str, made: str, below: str) -> None:
    check_nothing(ValueOfOneRank, PROGRAM.format(above=above, made=made, below=below))


def test_a_rank_that_is_handed_in_by_different_ways() -> None:
    source = (
        "import torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\ndef train(rank, args):\n"
        "    dist.init_process_group('gloo', rank=rank, world_size=2)\n    if rank == 0:\n        writer = Writer()\n"
        "    for step in range(9):\n        if args.every:\n            x = writer.add(step)\n\n\n"
        "def main(args):\n    if args.several:\n        mp.spawn(train, nprocs=2, args=(args,))\n"
        "    else:\n        train(0, args)\n"
    )
    check_told(ValueOfOneRank, source, reason="under the same test")


# The main process of the run, and the first process of each node

NODES = """
    from accelerate import Accelerator

    def train(args, batches):
        accelerator = Accelerator()
        if {made}:
            board = Board(args.folder)
        for step, loss in enumerate(batches):
            accelerator.backward(loss)
            if {used}:
                board.add(step, loss)
    """
MAIN, LOCAL = "accelerator.is_main_process", "accelerator.is_local_main_process"


def test_the_first_process_of_each_node_uses_what_the_main_process_has() -> None:
    found = check_told(ValueOfOneRank, NODES.format(made=MAIN, used=LOCAL), reason="rank 0 of the run")
    assert "second node ends with UnboundLocalError" in found.message
    assert findings_of(ValueOfOneRank, NODES.format(made=MAIN, used=f"step % 5 == 0 and {LOCAL}"))


def test_an_attribute_of_the_main_process_on_each_node() -> None:
    source = """
        from accelerate import Accelerator

        class Loop:
            def __init__(self, model):
                self.accelerator = Accelerator()
                if self.accelerator.is_main_process:
                    self.board = Board(model)

            def step(self, loss):
                self.accelerator.backward(loss)
                if self.accelerator.is_local_main_process:
                    self.board.add(loss)
        """
    found = check_told(ValueOfOneRank, source, reason="rank 0 of the run")
    assert "AttributeError" in found.message
    check_nothing(ValueOfOneRank, source, files={"other.py": "def f(loop):\n    loop.board = None\n"})


@pytest.mark.parametrize(
    ("made", "used"),
    [(LOCAL, LOCAL), (MAIN, MAIN), (LOCAL, MAIN), (MAIN, f"{LOCAL} and {MAIN}"), (MAIN, f"{LOCAL} and board is not None"),
     (f"{MAIN} or args.all", LOCAL)],
)  # fmt: skip
def test_names_of_nodes_that_are_fine(made: str, used: str) -> None:
    check_nothing(ValueOfOneRank, NODES.format(made=made, used=used))


@pytest.mark.parametrize(
    "changed",
    [("            board = Board(args.folder)", "            board = Board(args.folder)\n        else:\n            board = 1"),
     ("                board.add(step, loss)", "                try:\n                    board.add(step, loss)\n"
      "                except NameError:\n                    pass"),
     ("        accelerator = Accelerator()", "        accelerator = Accelerator()\n        board = Quiet()"),
     (f"            if {LOCAL}:", f"            if not {MAIN}:\n                continue\n            if {LOCAL}:")],
)  # fmt: skip
def test_names_that_a_nodes_first_process_has_too(changed: tuple[str, str]) -> None:
    source = NODES.format(made=MAIN, used=LOCAL)
    assert changed[0] in source
    check_nothing(ValueOfOneRank, source.replace(*changed))


def test_the_number_of_a_spawned_function_under_another_name() -> None:
    source = """\
        import logging

        import torch.distributed as dist
        import torch.multiprocessing as mp


        def work(device, args):
            if device == 0 or device is None:
                logger = logging.getLogger(__name__)
            dist.init_process_group("gloo", rank=device, world_size=args.world_size)
            logger.info("ready")


        def main(args):
            mp.spawn(work, args=(args,), nprocs=args.world_size)
        """
    guarded = 'if device == 0 or device is None:\n                logger.info("ready")'
    after = source.replace('logger.info("ready")', guarded)
    check_transformed(ValueOfOneRank, source, after, unsafe=True)
    check_nothing(ValueOfOneRank, source.replace("mp.spawn(work, args=(args,), nprocs=args.world_size)", "work(0, args)"))


STARTED = """\
import logging

import torch.distributed as dist


def work(device, args):
    if device == 0:
        logger = logging.getLogger(__name__)
    dist.init_process_group("gloo")
    logger.info("ready")
"""
START = "import torch.multiprocessing as mp\n{imported}\n\ndef main(args):\n    mp.spawn({name}, args=(args,), nprocs=2)\n"


@pytest.mark.parametrize(
    ("imported", "name", "found"),
    [
        ("from module import work", "work", True),
        ("from module import work as run", "run", True),
        ("import module", "module.work", True),
        ("import module as m", "m.work", True),
        ("from others import work", "work", False),
        ("from module import other", "other", False),
        ("from module import work", "args.work", False),
    ],
)
def test_the_number_of_a_function_that_another_file_starts(imported: str, name: str, found: bool) -> None:
    files = {"start.py": START.format(imported=imported, name=name), "others.py": "def work(number, args):\n    pass\n"}
    assert bool(findings_of(ValueOfOneRank, STARTED, files)) is found
    joined = STARTED.replace('"gloo"', '"gloo", rank=device, world_size=args.world_size')
    assert findings_of(ValueOfOneRank, joined, files)  # by what it joins as, whoever starts it


def scored(*lines: str, read: str = "if self.accelerator.is_main_process:", made: str = "Scorer(self.average)") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "from accelerate import Accelerator\n\n\nclass Loop:\n    def __init__(self, model, scored):\n"
        "        self.accelerator = Accelerator()\n        if self.accelerator.is_main_process:\n"
        f"            self.average = Average(model)\n{body.replace('MADE', made)}\n"
        f"    def run(self):\n        {read}\n            return self.scorer.score()\n"
    )


def test_what_is_made_of_it_and_read_by_rank_0_alone_goes_under_the_test() -> None:
    after = ("if self.accelerator.is_main_process:", "    self.scorer = MADE")
    check_transformed(ValueOfOneRank, scored("self.scorer = MADE"), scored(*after), unsafe=True)


def test_an_option_that_does_nothing_else_goes_under_the_test_as_a_whole() -> None:
    lines = ("if scored:", "    if not model.fast:", "        self.accelerator.print('slow')", "    self.scorer = MADE")
    after = ("if self.accelerator.is_main_process and scored:", *lines[1:])
    check_transformed(ValueOfOneRank, scored(*lines), scored(*after), unsafe=True)
    more = ("if scored:", "    self.scored = True", "    self.scorer = MADE")
    inner = (*more[:2], "    if self.accelerator.is_main_process:", "        self.scorer = MADE")
    check_transformed(ValueOfOneRank, scored(*more), scored(*inner), unsafe=True)
    left = ("if scored:", "    if not model.fast:", "        raise ValueError", "    self.scorer = MADE")
    kept = (*left[:3], "    if self.accelerator.is_main_process:", "        self.scorer = MADE")
    check_transformed(ValueOfOneRank, scored(*left), scored(*kept), unsafe=True)


@pytest.mark.parametrize(
    "read", ["if self.scorer is not None:", "if self.accelerator.is_local_main_process:", "for _ in range(2):"]
)
def test_what_another_rank_may_read_is_told(read: str) -> None:
    check_told(ValueOfOneRank, scored("self.scorer = MADE", read=read), reason="AttributeError")


def test_what_another_file_may_read_is_told() -> None:
    shown = {"show.py": "def show(loop):\n    return loop.scorer.score()\n"}
    check_told(ValueOfOneRank, scored("self.scorer = MADE"), reason="under the same test", files=shown)


def test_a_value_in_whose_making_the_ranks_meet_is_told() -> None:
    helper = "\n\ndef made(accelerator, average):\n    accelerator.wait_for_everyone()\n    return average\n"
    source = scored("self.scorer = MADE", made="made(self.accelerator, self.average)") + helper
    check_told(ValueOfOneRank, source, reason="what uses it waits for them")


def test_a_value_of_a_local_name_that_rank_0_alone_reads() -> None:
    lines = ("if rank == 0:", "    writer = Writer()", "table = writer.table()", "if rank == 0:", "    table.show()")
    after = (*lines[:2], "    table = writer.table()", lines[4])
    check_transformed(ValueOfOneRank, script(*lines), script(*after), unsafe=True)
    check_told(ValueOfOneRank, script(*lines[:3], "table.show()"), reason="under the same test")


ONLY = """\
import torch
import torch.distributed as dist


def main(options):
    {call}


def run(rank, count, options):
    for epoch in range(options.epochs):
        if rank == 0:
            step(rank, options, log)
        else:
            step(rank, options, None)


def step(rank, options, log):
    for row in options.rows:
        if rank == 0:
            losses = [row]
    log.write(sum(losses))


if __name__ == "__main__":
    main(None)
"""


@pytest.mark.parametrize("call", ["run(0, 1, options)", "run(rank=0, count=1, options=options)", "run(0, options=1, count=1)"])
def test_the_only_call_hands_rank_zero(call: str) -> None:
    check_nothing(ValueOfOneRank, ONLY.format(call=call))


def test_the_function_is_spawned() -> None:
    assert findings_of(ValueOfOneRank, ONLY.format(call="torch.multiprocessing.spawn(run, nprocs=2, args=(2, options))"))


@pytest.mark.parametrize(
    "made",
    [
        ("total, count = 0, 0",),
        ("total = 0", "total += 1"),
        ("total, count = 0, 0", "for x in args.rows:", "    total += x", "    count += 1", "total /= count"),
        ("[total, count] = score(args)",),
        ("total: float = 0.0", "total -= 1"),
    ],
)
def test_names_of_a_tuple_and_those_that_are_summed_up(made: tuple[str, ...]) -> None:
    lines = ("if rank == 0:", *(f"    {m}" for m in made), "dist.barrier()", "print(total)")
    found = [f for f in findings_of(ValueOfOneRank, script(*lines)) if "total" in f.message]
    assert len(found) == 1 and "UnboundLocalError" in found[0].message


@pytest.mark.parametrize(
    "lines",
    [
        ("total = 0", "if rank == 0:", "    total, count = 1, 1", "print(total)"),  # all have the first
        ("if rank == 0:", "    total, count = 1, 1", "else:", "    total = 0", "print(total)"),  # so have the others
        ("if rank == 0:", "    total = 0", "    total += 1", "if rank == 0:", "    print(total)"),  # used on rank 0
        ("if rank == 0:", "    total, count = 1, 1", "for total in args.rows:", "    print(total)"),  # the loop gives it
        ("if rank == 0:", "    total, count = 1, 1", "(total, mean) = score(args)", "print(total)"),  # given by another tuple
        ("if rank == 0:", "    args.total, count = 1, 1", "print(args.total)"),  # may be a default
    ],
)
def test_names_of_a_tuple_that_the_others_have(lines: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*lines))


# Names of the file that functions use, and uses in a `try`

SCRIPT = """\
import torch.distributed as dist
from settings import opt
{star}
dist.init_process_group("gloo")
if opt.local_rank == 0:
    board = Board(opt.folder)


def train(batches{given}):
    for step, batch in enumerate(batches):
        dist.barrier()
    {used}


{called}
"""
CALLED = 'if __name__ == "__main__":\n    train(opt.batches)'


def of_file(used: str = "board.close()", *, star: str = "", given: str = "", called: str = CALLED) -> str:
    return SCRIPT.format(star=star, used=used, given=given, called=called)


def test_a_function_that_all_ranks_call_uses_a_name_of_the_file() -> None:
    after = of_file("if opt.local_rank == 0:\n        board.close()")
    check_transformed(ValueOfOneRank, of_file(), after, unsafe=True)
    assert "NameError" in findings_of(ValueOfOneRank, of_file())[0].message


def test_the_name_of_the_test_is_another_in_the_function() -> None:
    shadowed = of_file(given=", opt", called=CALLED.replace("batches)", "batches, opt.rest)"))
    check_told(ValueOfOneRank, shadowed, reason="under the same test")


STARRED = "from parts import *\nfrom tqdm import *\n"


def test_star_imports_that_bring_no_such_name() -> None:
    found = findings_of(ValueOfOneRank, of_file(star=STARRED), {"parts.py": "from more import *\nx = 1\n", "more.py": "y = 1\n"})
    assert len(found) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"parts.py": "board = Quiet()\n"},
        {"parts.py": "from more import *\n", "more.py": "from boards import board\n"},
        {"parts.py": "from gone import *\n"},  # not read
        {"parts.py": "globals().update(given())\n"},
        {},
    ],
)
def test_star_imports_that_may_bring_the_name(files: dict[str, str]) -> None:
    check_nothing(ValueOfOneRank, of_file(star=STARRED), files=files)


@pytest.mark.parametrize(
    "source",
    [
        of_file(called=""),  # nobody calls it
        of_file(called='if __name__ == "__main__":\n    if dist.get_rank() == 0:\n        train(opt.batches)'),
        of_file("if opt.local_rank == 0:\n        board.close()"),
        of_file("if opt.with_board:\n        board.close()"),  # only rank 0 may have it on
        of_file("board = Quiet()\n    board.close()"),  # another name
        of_file(given=", board", called=CALLED.replace("batches)", "batches, Quiet())")),
        of_file("try:\n        board.close()\n    except NameError:\n        pass"),
        of_file(called=CALLED + "\n\n\ndef quiet():\n    global board\n    board = Quiet()"),
    ],
)
def test_names_of_the_file_that_a_function_may_use(source: str) -> None:
    check_nothing(ValueOfOneRank, source)


TRIED = """\
import traceback

import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, args):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    if rank == 0:
        folder = args.folder
    try:
        {used}
    except Exception as error:
        {handled}


def train(folder, args):
    for batch in args.batches:
        dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, args=(None,), nprocs=2)
"""


@pytest.mark.parametrize("handled", ["traceback.print_exc()", "args.log.exception(error)", "args.clean()\n        raise"])
def test_a_try_round_the_whole_work_keeps_nobody_from_the_use(handled: str) -> None:
    source = TRIED.format(used="train(folder, args)", handled=handled)
    check_told(ValueOfOneRank, source, reason="what uses it waits for them")


@pytest.mark.parametrize(
    ("used", "handled"),
    [
        ("train(folder, args)", "args.failed = error"),  # what becomes of it is not seen
        ("args.show(folder)", "traceback.print_exc()"),  # the ranks meet in nothing that is left out
        ("train(folder, args)", "raise ValueError(args) from error"),  # a probe with its own message
    ],
)
def test_a_try_that_lets_the_rank_go_on(used: str, handled: str) -> None:
    check_nothing(ValueOfOneRank, TRIED.format(used=used, handled=handled))
    narrow = TRIED.format(used="train(folder, args)", handled="traceback.print_exc()").replace("Exception", "NameError")
    check_nothing(ValueOfOneRank, narrow)


def test_what_waits_for_all_is_not_put_under_the_test() -> None:
    helper = "\n\ndef ready(folder):\n    dist.barrier()\n"
    lines = ("if rank == 0:", "    folder = args.folder", "ready(folder)")
    check_told(ValueOfOneRank, script(*lines) + helper, reason="what uses it waits for them")


HANDED = """import torch.distributed as dist
from work import train


def main(config, quiet):
    run = None
    {}
        run = start(config)
    prepare(config, {})


def prepare(config, run):
    train(config, run=run)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    main(read(), False)
"""
WORK = """import torch.distributed as dist


def train(config, run=None):
    for epoch in range(9):
        step(config)
        if dist.get_rank() == 0:
            rate = config.rate(epoch)
        {}:
            run.log(rate)
"""


@pytest.mark.parametrize("asked", ["if run is not None", "if run"])
def test_under_what_rank_zero_alone_is_handed(asked: str) -> None:
    files = {"main.py": HANDED.format("if dist.get_rank() == 0:", "run")}
    check_nothing(ValueOfOneRank, WORK.format(asked), files=files, path="work.py")


@pytest.mark.parametrize(
    ("test", "handed", "asked"),
    [
        ("if not quiet:", "run", "if run is not None"),  # every rank starts one
        ("if dist.get_rank() == 0:", "open('log')", "if run is not None"),
        ("if dist.get_rank() == 0:", "run", "if epoch"),
    ],
)
def test_under_what_every_rank_may_have(test: str, handed: str, asked: str) -> None:
    files = {"main.py": HANDED.format(test, handed)}
    (found,) = findings_of(ValueOfOneRank, WORK.format(asked), files, path="work.py")
    assert found.message.startswith("rate is there on rank 0 only")


MADE = ("if rank == 0:", "    rows = Rows(args.path)")


@pytest.mark.parametrize(
    "lines",
    [
        (*MADE, "net, rows = args.prepare(net(), rows)"),
        (*MADE, "rows = list(rows)"),
        (*MADE, "size = len(rows)", "rows = args.others"),
        ("if rank == 0:", "    with open(args.path) as file:", "        rows = file.read()", "rows = rows.split()"),
        (*MADE, "for epoch in range(3):", "    step(len(rows))", "rows = None"),
        (*MADE, "if args.check:", "    step(rows)", "else:", "    rows = Rows(args.other)"),
    ],
)
def test_a_name_that_the_others_get_only_below(lines: tuple[str, ...]) -> None:
    (found,) = findings_of(ValueOfOneRank, script(*lines))
    assert "UnboundLocalError" in found.message
    assert "nowhere above" in found.evidence[0].text


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = None", *MADE, "net, rows = args.prepare(net(), rows)"),
        (*MADE, "else:", "    rows = None", "rows = list(rows)"),
        (*MADE, "rows = args.others", "step(rows)"),
        (*MADE, "for rows in args.parts:", "    step(rows)"),
        (*MADE, "    step(rows)", "rows = args.others", "step(rows)"),  # the use stands under the test
        ("for epoch in range(3):", "    if rank == 0:", "        rows = Rows(epoch)", "    if epoch:", "        step(rows)",
         "    rows = args.others"),  # the next turn has it
        (*MADE, "try:", "    rows = list(rows)", "except UnboundLocalError:", "    rows = []"),
        (*MADE, "    return", "rows = list(args.others)", "step(rows)"),
        (*MADE, "if rank == 0:", "    step(rows)", "rows = args.others"),
        ("with args.data as rows:", "    step(rows)", *MADE, "rows = list(rows)"),
    ],
)  # fmt: skip
def test_a_name_that_the_others_have_in_time(lines: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*lines))


BESIDE = """\
import copy

import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, net, args):
        dist.init_process_group("nccl")
        self.rank = dist.get_rank()
        self.use_copy = args.use_copy
        self.net = net
        if self.rank == 0 and self.use_copy:
            self.copy = copy.deepcopy(net)
        self.restore(args.path)

    def restore(self, path):
        state = torch.load(path, map_location="cpu")
        self.net.load_state_dict(state["net"])
        if self.use_copy:
            self.copy.load_state_dict(state["copy"])
"""


def test_a_condition_that_stands_beside_the_test_of_the_rank() -> None:
    check_told(ValueOfOneRank, BESIDE, reason="give the other ranks a value too")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.use_copy = args.use_copy", "self.use_copy = self.rank == 0"),  # it asks for the rank, and nothing else does
        ("        if self.use_copy:", "        if self.use_copy and self.copy:"),
        ("        if self.use_copy:", '        if hasattr(self, "copy"):'),
        ("        if self.use_copy:", "        if self.rank == 0 and self.use_copy:"),
        ("if self.rank == 0 and self.use_copy:", "if self.use_copy:"),
    ],
)
def test_a_condition_that_may_stand_for_the_rank(old: str, new: str) -> None:
    source = BESIDE.replace(old, new)
    if new.endswith("self.rank == 0"):
        source = source.replace("if self.rank == 0 and self.use_copy:", "if self.use_copy:")
    check_nothing(ValueOfOneRank, source)


# A file that holds `__dict__` or `setattr`, and sets nothing of the object by it

SHELF = """
    import json
    import torch.distributed as dist

    class Loop:
        def __init__(self, args, model):
            {before}
            if dist.get_rank() == 0:
                self.shelf = Shelf(model)

        def step(self, loss):
            loss.backward()
            self.shelf.add(loss)

    def train(args, model, batches):
        dist.init_process_group("nccl")
        loop = Loop(args, model)
        for loss in batches:
            loop.step(loss)
    """


@pytest.mark.parametrize(
    "before",
    ["json.dump(args.__dict__, args.file)", "print(Namespace(**args.__dict__))", "names = [n for n, _ in args.__dict__.items()]",
     "setattr(args, 'width', 3)", "text = f'{args.__dict__}'"],
)  # fmt: skip
def test_a_file_that_only_reads_a_dict_of_attributes(before: str) -> None:
    source = SHELF.format(before=before)
    after = source.replace(
        "            self.shelf.add(loss)", "            if dist.get_rank() == 0:\n                self.shelf.add(loss)"
    )
    check_transformed(ValueOfOneRank, source, after, unsafe=True)


@pytest.mark.parametrize(
    "before",
    ["self.__dict__.update(args)", "self.__dict__['shelf'] = None", "put(self.__dict__)", "setattr(self, 'shelf', None)",
     "setattr(self, args.name, None)", "list(map(setattr, args.objects, args.names, args.values))",
     "self.__dict__ = args.known", "fields = self.__dict__; fields['shelf'] = None", "getattr(self, '__dict__').update(args)"],
)  # fmt: skip
def test_a_file_that_may_set_attributes_by_their_names(before: str) -> None:
    check_nothing(ValueOfOneRank, SHELF.format(before=before))


# The first process of each node behind an early return

BEHIND = """
    from accelerate import Accelerator

    class Loop:
        def __init__(self, model, args):
            self.accelerator = Accelerator()
            if {made}:
                self.folder = args.folder

        def save(self, step):
            {left}
            torch.save(self.model.state_dict(), self.folder / f"{{step}}.pt")

        def train(self, batches):
            for step, loss in enumerate(batches):
                self.accelerator.backward(loss)
                self.save(step)
    """
OWN_MAIN, OWN_LOCAL = f"self.{MAIN}", f"self.{LOCAL}"


@pytest.mark.parametrize("left", [f"if not {OWN_LOCAL}: return", f"if not {OWN_LOCAL} or step % 9: return"])
def test_an_early_return_that_lets_each_nodes_first_process_in(left: str) -> None:
    found = check_told(ValueOfOneRank, BEHIND.format(made=OWN_MAIN, left=left), reason="rank 0 of the run")
    assert "second node ends with AttributeError" in found.message


@pytest.mark.parametrize(
    ("made", "left"),
    [(OWN_LOCAL, f"if not {OWN_LOCAL}: return"), (OWN_MAIN, f"if not {OWN_MAIN}: return"),
     (OWN_MAIN, f"if not {OWN_LOCAL} or not hasattr(self, 'folder'): return"),
     (OWN_MAIN, f"if not {OWN_LOCAL}: return\n            if not {OWN_MAIN}: return")],
)  # fmt: skip
def test_early_returns_that_let_none_in_without_the_name(made: str, left: str) -> None:
    check_nothing(ValueOfOneRank, BEHIND.format(made=made, left=left))


# Several uses, of which one cannot go under the test

SEVERAL = """
    import torch.distributed as dist

    class Loop:
        def __init__(self, model):
            if dist.get_rank() == 0:
                self.average = Average(model)

        def sample(self, count):
            self.average.eval()
            {then}

    def run(model):
        dist.init_process_group("nccl")
        loop = Loop(model)
        return loop.sample(4)
    """


def test_a_test_round_the_first_use_alone_is_no_repair() -> None:
    found = check_told(ValueOfOneRank, SEVERAL.format(then="return self.average.draw(count)"), reason="put what uses it")
    assert found.message.endswith("AttributeError (also in line 11)")
    assert findings_of(ValueOfOneRank, SEVERAL.format(then="self.average.train()"))[0].fix is not None


def test_uses_in_other_functions_are_named() -> None:
    source = SEVERAL.format(then="return self.average.draw(count)").replace(
        "    def run(model):", "        def shown(self):\n            print(self.average.name)\n\n    def run(model):"
    ).replace("return loop.sample(4)", "loop.shown()\n        return loop.sample(4)")
    (found,) = findings_of(ValueOfOneRank, source)
    assert "also in line 11, in line 14)" in found.message


def test_a_return_where_the_attribute_is_not_there() -> None:
    source = SEVERAL.format(then="return self.average.draw(count)")
    first = "self.average.eval()"
    for test in ("not hasattr(self, 'average')", "not self.is_main", "getattr(self, 'average', None) is None"):
        check_nothing(ValueOfOneRank, source.replace(first, f"if {test}: return\n            {first}"))
    assert findings_of(ValueOfOneRank, source.replace(first, f"if not count: return\n            {first}"))


# What stands in for a parameter

STAND_IN = """
    import torch
    import torch.distributed as dist

    class Loop:
        def __init__(self, folder):
            if dist.get_rank() == 0:
                self.folder = folder

        def load(self, path=None):
            {filled}
            return torch.load(path)

    def run(args):
        dist.init_process_group("nccl")
        loop = Loop(args.folder)
        loop.load({given})
    """
FILLED = [
    "path = path if path else self.folder",
    "path = str(path) if exists(path) else self.folder",
    "path = self.folder if path is None else path",
    "if path is None: path = self.folder",
    "if not path: path = self.folder",
]


@pytest.mark.parametrize("filled", FILLED)
def test_a_stand_in_for_what_each_call_gives(filled: str) -> None:
    check_nothing(ValueOfOneRank, STAND_IN.format(filled=filled, given="args.path"))
    check_nothing(ValueOfOneRank, STAND_IN.format(filled=filled, given="path=args.path"))


@pytest.mark.parametrize("filled", FILLED)
def test_a_stand_in_for_what_a_call_leaves_out(filled: str) -> None:
    check_told(ValueOfOneRank, STAND_IN.format(filled=filled, given=""), reason="put what uses it")
    check_told(ValueOfOneRank, STAND_IN.format(filled=filled, given="None"), reason="put what uses it")


def test_an_arm_with_the_parameter_is_no_stand_in() -> None:
    filled = "path = self.folder / path if path else '.'"
    check_told(ValueOfOneRank, STAND_IN.format(filled=filled, given="args.path"), reason="put what uses it")
