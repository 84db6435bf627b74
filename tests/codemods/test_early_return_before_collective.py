"""DDP303: ranks that leave above a collective."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from codemods.sync.early_return_before_collective import EarlyReturnBeforeCollective
from codemods.sync.one_rank_decision import OneRankDecision
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = EarlyReturnBeforeCollective
DIST = "import torch\nimport torch.distributed as dist\n\n"
START = f"{DIST}def f(rank, x):\n    dist.init_process_group('gloo')\n"


def lightning(body: str, *, base: str = "Callback", head: str = "import lightning.pytorch as pl") -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").split("\n"))
    return f"{head}\n\n\nclass C(pl.{base}):\n{lines}\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


def test_an_early_return_becomes_a_guard() -> None:
    check_transformed(
        RULE,
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    epoch = trainer.current_epoch
    # one process plots
    if not trainer.is_global_zero:
        return
    # all of it
    self.plot(epoch)

    self.save(epoch)
    trainer.strategy.barrier()
"""),
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    epoch = trainer.current_epoch
    # one process plots
    if trainer.is_global_zero:
        # all of it
        self.plot(epoch)

        self.save(epoch)
    trainer.strategy.barrier()
"""),
    )


def test_an_early_return_by_comparison() -> None:
    check_transformed(
        RULE,
        f"{START}    if rank != 0:\n        return\n    work()\n    dist.barrier()\n",
        f"{START}    if rank == 0:\n        work()\n    dist.barrier()\n",
    )


def test_a_rank_that_may_mean_no_process_group() -> None:
    head = f"{DIST}def f(rank):\n"
    fixed = check_transformed(
        RULE,
        f"{head}    if rank != 0:\n        return\n    work()\n    dist.barrier()\n",
        f"{head}    if rank == 0:\n        work()\n    dist.barrier()\n",
        unsafe=True,
    )
    assert "process group" in fixed[0].reason


def test_a_condition_above_that_may_differ() -> None:
    fixed = check_transformed(
        RULE,
        f"{START}    if x > best():\n        return\n    if rank != 0:\n        return\n    work()\n    dist.barrier()\n",
        f"{START}    if x > best():\n        return\n    if rank == 0:\n        work()\n    dist.barrier()\n",
        unsafe=True,
    )
    assert "taken by all or none" in fixed[0].reason


def test_a_continue_in_a_loop() -> None:
    check_transformed(
        RULE,
        f"{START}    for i in range(3):\n        if rank != 0:\n            continue\n        work()\n        dist.barrier()\n",
        f"{START}    for i in range(3):\n        if rank == 0:\n            work()\n        dist.barrier()\n",
    )


def test_what_the_exit_sets_stays() -> None:
    check_transformed(
        RULE,
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if not trainer.is_global_zero:
        pl_module.collected = None
        return
    write(pl_module.collected)
    trainer.strategy.barrier()
"""),
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if not trainer.is_global_zero:
        pl_module.collected = None
    if trainer.is_global_zero:
        write(pl_module.collected)
    trainer.strategy.barrier()
"""),
    )


def test_the_value_that_the_function_ends_with() -> None:
    check_transformed(
        RULE,
        f"{START}    if rank != 0:\n        return x\n    work(x)\n    dist.barrier()\n    return x\n",
        f"{START}    if rank == 0:\n        work(x)\n    dist.barrier()\n    return x\n",
    )


def test_an_exit_inside_a_guarded_block() -> None:
    fixed = check_transformed(
        RULE,
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        logger = self.find(trainer)
        if logger is None:
            return  # nothing to draw on
        logger.draw(1)
        logger.draw(2)
    trainer.strategy.barrier()
"""),
        lightning("""
def on_train_epoch_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        logger = self.find(trainer)
        # nothing to draw on
        if logger is not None:
            logger.draw(1)
            logger.draw(2)
    trainer.strategy.barrier()
"""),
    )
    assert "rank 0 may leave in line 8" in fixed[0].message


def test_classes_of_a_file_are_looked_at_one_by_one() -> None:
    head = "import lightning.pytorch as pl\n"
    hook = "(pl.Callback):\n    def on_fit_end(self, trainer, m):\n"
    one = f"class A{hook}        if not trainer.is_global_zero:\n            return\n"
    two = f"class B{hook}        if trainer.is_global_zero:\n            if m.x:\n"
    source = (
        f"{head}{one}        draw()\n        trainer.strategy.barrier()\n"
        f"{two}                return\n            draw()\n        trainer.strategy.barrier()\n"
    )
    assert [(f.span.line, f.applicability) for f in findings_of(RULE, source)] == [
        (7, Applicability.SAFE), (14, Applicability.SAFE),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("    if rank != 0:\n        return 'none'\n    work()\n    dist.barrier()\n", "gives a value"),
        ("    if rank != 0:\n        return x\n    x = work()\n    dist.barrier()\n    return x\n", "made by rank 0 alone"),
        ("    if rank != 0:\n        return\n    if x:\n        return\n    work()\n    dist.barrier()\n", "left once more"),
        ("    for i in x:\n        if rank != 0:\n            break\n        dist.barrier()\n", "if-block"),
        ("    if x:\n        if rank != 0:\n            return\n        work()\n        dist.barrier()\n", "if-block"),
        ("    if rank != 0:\n        return\n    t = make()\n    dist.all_reduce(t)\n", "made inside the guard"),
        ("    if rank != 0:\n        return\n    a()\n    dist.barrier()\n    b()\n    dist.barrier()\n", "if-block"),
        ("    if rank != 0:\n        rank = 1\n        return\n    a()\n    dist.barrier()\n", "sets what the test"),
        ("    if rank != 0:\n        return\n    if x:\n        dist.all_reduce(x)\n    dist.barrier()\n", "if-block"),
        ("    if rank == 0:\n        if x:\n            return\n        a()\n    b()\n    dist.barrier()\n", "has to be decided"),
        (
            "    if rank == 0:\n        if x:\n            return\n        a()\n        if y:\n            return\n        b()\n"
            "    dist.barrier()\n",
            "more than one place",
        ),
    ],
)
def test_exits_that_are_told(body: str, reason: str) -> None:
    check_told(RULE, f"{DIST}def f(rank, x, y):\n{body}", reason=reason)


def test_a_break_of_rank_0_alone_is_left_to_another_codemod() -> None:
    body = "    for i in x:\n        dist.all_reduce(i)\n        if rank == 0 and late():\n            break\n"
    check_nothing(RULE, f"{DIST}def f(rank, x, y):\n{body}")
    assert findings_of(OneRankDecision, f"{DIST}def f(rank, x, y):\n{body}")


def test_an_exit_above_a_function_of_another_file() -> None:
    found = check_told(
        RULE,
        "from tools import save\ndef f(rank, trainer):\n    if not trainer.is_global_zero:\n        return\n    save(1)\n",
        reason="does other work besides",
        files={"tools.py": f"{DIST}def save(x):\n    write(x)\n    dist.barrier()\n"},
    )
    assert [(e.path, e.line) for e in found.evidence] == [
        ("module.py", 3), ("module.py", 5), ("tools.py", 6), ("module.py", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "if rank != 0:\n    dist.barrier()\n    return\nwrite()\ndist.barrier()\n",
        "if rank != 0:\n    serve()\n    return\ndist.broadcast(x, 0)\n",
        "if not x:\n    return\ndist.barrier()\n",
        "try:\n    if rank != 0:\n        return\n    work()\nfinally:\n    dist.barrier()\n",
        "if rank == 0 and x:\n    raise ValueError(x)\ndist.barrier()\n",
        "if rank == 0:\n    if x:\n        print('bad')\n        return -1\ndist.barrier()\n",
        "if rank == 0:\n    if x:\n        sys.exit(1)\ndist.barrier()\n",
        "if rank != 0:\n    return\nwork()\n",
        "if not dist.is_initialized():\n    return\ndist.barrier()\n",
        "for i in x:\n    if not i:\n        continue\n    dist.barrier()\n",
    ],
)
def test_right_as_it_is(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    check_nothing(RULE, f"{DIST}import sys\ndef f(rank, args, x):\n{lines}")


def test_the_tests_of_a_repository_are_left_alone() -> None:
    source = f"{DIST}def test_f():\n    if dist.get_rank() != 0:\n        return\n    dist.barrier()\n"
    check_nothing(RULE, source, path="tests/test_train.py")
    assert [f.applicability for f in findings_of(RULE, source)] == [Applicability.DISPLAY]


REPORT = """
import lightning.pytorch as pl
import torch.multiprocessing as mp

class Model(pl.LightningModule):
    def training_step(self, batch, i):
        loss = self(batch)
        self.log("loss", loss, on_epoch=True, sync_dist=True)
        return loss

class Launcher:
    def launch(self, function, trainer, *args):
        mp.start_processes(self.{entry}, args=(function, trainer, args), nprocs=2)

    def work(self, rank, function, trainer, args):
        {before}
        results = function(*args)
        self.collect(trainer, results)

    def collect(self, trainer, results):
        if not trainer.is_global_zero:
            return None
        return results, self.more(trainer)

    def more(self, trainer):
        return dict(trainer.callback_metrics)
"""


@pytest.mark.parametrize(
    ("entry", "before", "told"),
    [("work", "setup()", False), ("work", "self.collect(trainer, None)", True), ("other", "setup()", True)],
)
def test_what_a_launched_process_collects_behind_its_work(entry: str, before: str, told: bool) -> None:
    """Behind the work of each process nothing waits to be reduced; before it, or where nobody starts it, that is not shown."""
    found = findings_of(RULE, REPORT.replace("{entry}", entry).replace("{before}", before))
    assert [("callback_metrics" in f.message) for f in found] == [True] * told


@pytest.mark.parametrize(
    ("above", "below", "told"),
    [("trainer.fit(model)", "", False), ("", "trainer.fit(model)", True), ("trainer.fit(model)", "show(trainer)\n", True)],
)
def test_a_helper_that_is_called_behind_the_training(above: str, below: str, told: bool) -> None:
    source = (
        "import lightning.pytorch as pl\n\n\ndef show(trainer):\n    if not trainer.is_global_zero:\n        return\n"
        "    print(trainer.callback_metrics)\n\n\nclass Seen(pl.Callback):\n"
        "    def on_train_epoch_end(self, trainer, m):\n        m.log('a', m.loss, sync_dist=True)\n        {hook}\n\n\n"
        "def main(trainer, model):\n    {above}\n    show(trainer)\n    {below}\n"
    )
    hook = "show(trainer)" if "show" in below else "pass"
    body = source.format(above=above or "pass", below="" if "show" in below else below, hook=hook)
    assert bool(findings_of(RULE, body)) is told


# What rank 0 alone has found

STARTS = """\
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def is_primary(args, local=False):
    return args.local_rank == 0 if local else args.rank == 0


def main(args):
    dist.init_process_group("nccl")
    args.rank, args.local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    if is_primary(args):
        if os.path.exists(args.folder):
            print("there is a run of that name")
            return -1
        os.makedirs(args.folder)
    model = build(args)
    if args.distributed and not args.sharded:
        model = DistributedDataParallel(model)
    train(model)


if __name__ == "__main__":
    main(parse())
"""
LAUNCH = "from run import main, parse\n\nif __name__ == '__main__':\n    {}\n"


def test_a_return_by_what_rank_0_has_found() -> None:
    found = check_told(RULE, STARTS, reason="raise an error instead")
    assert found.span.line == 16 and "the constructor DistributedDataParallel() in line 20" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("is_primary(args):\n        if", "is_primary(args, local=args.by_node):\n        if"),
        (
            "    if is_primary(args):\n        if os.path",
            "    if not is_primary(args):\n        pass\n    elif True:\n        if os.path",
        ),
        ("    if args.distributed and not args.sharded:\n        model", "    dist.barrier()\n    model"),
        ("return -1", "return None"),
    ],
)
def test_ways_to_write_it(old: str, new: str) -> None:
    assert old in STARTS
    if "elif" in new:
        check_nothing(RULE, STARTS.replace(old, new))  # the other arm of a test: not followed
    else:
        check_told(RULE, STARTS.replace(old, new), reason="raise an error instead")


def test_a_test_with_more_operands() -> None:
    head, _, rest = STARTS.partition("    if is_primary(args):\n")
    test = "    if is_primary(args) and os.path.exists(args.folder):\n        return -1\n"
    check_told(RULE, head + test + rest[rest.index("    model = build") :], reason="broadcast what rank 0 has found")


def test_the_launcher_stands_in_another_file() -> None:
    source = STARTS.partition("\n\nif __name__")[0] + "\n"
    files = {"go.py": LAUNCH.format("main(parse())")}
    check_told(RULE, source, files=files, reason="raise an error instead", path="run.py")
    check_nothing(RULE, source, files={"go.py": LAUNCH.format("raise SystemExit(main(parse()))")}, path="run.py")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("every rank looks", "    if is_primary(args):\n        if os", "    if args.fresh:\n        if os"),
        ("an exception ends the others", "return -1", "raise FileExistsError(args.folder)"),
        ("the number is the status of the program", "    main(parse())", "    raise SystemExit(main(parse()))"),
        ("no meeting is sure", "    if args.distributed and not args.sharded:\n", "    if args.wrap:\n"),
        (
            "nothing is waited for",
            "        model = DistributedDataParallel(model)\n    train(model)\n",
            "        model = None\n",
        ),
        (
            "the others look as well",
            "    model = build",
            "    if os.path.exists(args.folder):\n        return -1\n    model = build",
        ),
        (
            "the others hear of it in the other arm",
            "        os.makedirs(args.folder)\n",
            "        os.makedirs(args.folder)\n    else:\n        args.queue.ask()\n",
        ),
        ("the others leave, too", "    model = build", "    return 0\n    model = build"),
        ("a result is given back", "return -1", "return load(args)"),
        ("one process runs it", "    main(parse())", "    if int(os.environ['RANK']) == 0:\n        main(parse())"),
    ],
)
def test_returns_that_part_nobody(what: str, old: str, new: str) -> None:
    assert old in STARTS
    check_nothing(RULE, STARTS.replace(old, new))


GATHER = """\
import torch.distributed as dist


def wait():
    if dist.is_initialized():
        dist.barrier()


def collect(rows, on_zero):
    rank = dist.get_rank()
    if on_zero and rank != 0:
        return None
    rows = sorted(rows)
    if {test}:
        wait()
    return rows
"""


def test_an_exit_whose_condition_the_collective_s_test_denies() -> None:
    check_nothing(EarlyReturnBeforeCollective, GATHER.format(test="not on_zero"))
    assert findings_of(EarlyReturnBeforeCollective, GATHER.format(test="rows"))


ENGINE = (
    "import deepspeed\n\n\ndef train(net, loader, epochs):\n    model_engine, _, _, _ = deepspeed.initialize(model=net)\n"
    "    stop = False\n    for epoch in range(epochs):\n"
    "        for batch in loader:\n            loss = model_engine(batch)\n            model_engine.backward(loss)\n"
    "        stop = stop or late(epoch)\n"
    "        if model_engine.local_rank == 0 and stop:\n            break\n"
    "        if model_engine.local_rank == 0:\n            model_engine.save_checkpoint('out')\n"
)


def test_the_others_wait_in_what_they_come_to() -> None:
    """The save stands under the same test of the rank: nobody waits there for the rank that left."""
    for rule in (RULE, OneRankDecision):
        for found in findings_of(rule, ENGINE):
            assert "save_checkpoint" not in found.message
    told = [f.message for f in findings_of(RULE, ENGINE)]
    assert any("leaves in line 13 does not call model_engine.backward() (line 10)" in m for m in told), told
    alone = ENGINE.replace("            model_engine.backward(loss)\n", "").replace("loss = model_engine(batch)", "show(batch)")
    assert not [f for f in findings_of(RULE, alone) if "leaves in line" in f.message]


@pytest.mark.parametrize("leaving", ["continue", "break"])
@pytest.mark.parametrize("test", ["stage == 3 and rank != 0", "rank != 0"])
def test_a_round_that_ends_early_leads_to_what_stands_behind_the_loop(test: str, leaving: str) -> None:
    source = f"""\
import torch.distributed as dist


def validate(rows, stage):
    rank = dist.get_rank()
    made = []
    for row in rows:
        made.append(row)
        if {test}:
            {leaving}
        made.append(2 * row)
    dist.barrier()
"""
    check_nothing(RULE, source)
    assert findings_of(RULE, source.replace(f"            {leaving}", "            return"))


def test_a_break_of_the_loop_round_it_is_no_way_past_what_stands_behind() -> None:
    source = """\
import torch.distributed as dist


def train(rows, most):
    rank = dist.get_rank()
    step = 0
    for epoch in range(3):
        for row in rows:
            step += 1
            if rank == 0:
                for name in ("a", "b"):
                    if step > most:
                        break
            if step >= most:
                break
    dist.barrier()
"""
    check_nothing(RULE, source)


MEANWHILE = (
    "import os\nimport shutil\n\nimport torch.distributed as dist\n\n\ndef begin(run, other):\n    {test}\n{body}\n\n"
    "def main():\n    dist.init_process_group('gloo')\n    begin('runs', 'others')\n\n\nif __name__ == '__main__':\n    main()\n"
)


def asked(test: str, *lines: str) -> str:
    return MEANWHILE.format(test=test, body="".join(f"        {line}\n" for line in lines))


THERE, MISSING = "if os.path.exists(run):", "if not os.path.isdir(run):"
GUARD, REMOVE, MAKE, WAIT = "if dist.get_rank() == 0:", "    shutil.rmtree(run)", "    os.makedirs(run)", "dist.barrier()"


@pytest.mark.parametrize(
    ("test", "change", "said"),
    [
        (THERE, REMOVE, "rank 0 removes it (line 10): a rank that asks after that no longer finds it, does not come to the wait"),
        (MISSING, MAKE, "rank 0 makes it (line 10): a rank that asks after that finds it, does not come to the wait in line 11"),
    ],
)
def test_a_wait_under_a_test_for_what_rank_0_changes_meanwhile(test: str, change: str, said: str) -> None:
    (found,) = findings_of(EarlyReturnBeforeCollective, asked(test, GUARD, change, WAIT))
    assert said in found.message and found.span.line == 8


@pytest.mark.parametrize(
    "source",
    [
        asked(THERE, WAIT, GUARD, REMOVE, WAIT),  # all have asked before it is removed
        asked(THERE, GUARD, REMOVE),  # nobody waits
        asked("if os.path.exists(other):", GUARD, REMOVE, WAIT),
        asked(THERE, GUARD, MAKE, WAIT),  # it is there still
        asked("if run:", GUARD, REMOVE, WAIT),
        asked(f"if dist.get_rank() == 0 and {THERE[3:]}", REMOVE.strip(), "print(run)"),
        asked(MISSING, GUARD, "    open(run, 'w').write(str(build()))", WAIT),  # the others have asked long before
        asked(THERE.replace("run", "f'{run}/{dist.get_rank()}'"), GUARD, REMOVE, WAIT),
    ],
)
def test_what_every_rank_finds_alike(source: str) -> None:
    check_nothing(EarlyReturnBeforeCollective, source)


def test_both_arms_wait() -> None:
    source = asked(THERE, GUARD, REMOVE, WAIT).replace(f"        {WAIT}\n", f"        {WAIT}\n    else:\n        {WAIT}\n")
    check_nothing(EarlyReturnBeforeCollective, source)


LEFT_ABOVE = """\
import os
import torch.distributed as dist


def finish(folder=None):
    if dist.is_initialized():
        dist.barrier()


def save(state, folder, upload):
    leader = dist.get_rank() == 0
    {above}if upload and os.path.exists(folder):
        finish(folder)
        return
    archive(folder)
    finish(folder)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    save(make(), "runs", parse().upload)
"""
THE_OTHERS_LEAVE = "if not leader:\n        finish()\n        return\n    "


@pytest.mark.parametrize(
    "inner",
    ["finish(folder)\n        return", "if push(folder):\n            finish(folder)\n            return"],
)
def test_each_way_of_rank_0_ends_with_the_wait_of_those_that_left_above(inner: str) -> None:
    source = LEFT_ABOVE.replace("finish(folder)\n        return", inner)
    for codemod in (RULE, CollectiveUnderRankGuard, OneRankDecision):
        check_nothing(codemod, source.format(above=THE_OTHERS_LEAVE))


@pytest.mark.parametrize("old", ["        finish(folder)\n        return", "    archive(folder)\n    finish(folder)"])
def test_one_way_of_rank_0_ends_without_it(old: str) -> None:
    source = LEFT_ABOVE.format(above=THE_OTHERS_LEAVE)
    assert old in source
    assert findings_of(RULE, source.replace(old, old.replace("archive(folder)", "pass").replace("finish(folder)", "pass")))


def test_rank_0_leaves_where_all_come() -> None:
    alone = LEFT_ABOVE.format(above="").replace("if upload and", "if leader and")
    alone = alone.replace("        finish(folder)\n        return", "        return")
    check_told(RULE, alone, reason="turn the early exit into an if-block")


def test_an_unknown_call_above_the_exit_of_rank_0() -> None:
    body = "    if rank == 0:\n        if not samples(x):\n            return\n        decode(x)\n    dist.barrier()\n"
    assert findings_of(RULE, START + body.replace("if not samples(x)", "y = encode(x)\n        if not y"))
