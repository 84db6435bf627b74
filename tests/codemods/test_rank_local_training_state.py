from __future__ import annotations

import pytest

from codemods.sync.rank_local_training_state import RankLocalTrainingState
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"


def script(*lines: str, head: str = HEAD, signature: str = "path, net, optimizer, scheduler, epochs") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}def main({signature}):\n    rank = dist.get_rank()\n    state = torch.load(path, map_location='cpu')\n{body}"


def test_example_of_the_page() -> None:
    sections = RankLocalTrainingState.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(RankLocalTrainingState, before, after, unsafe=True)


@pytest.mark.parametrize(
    "name",
    ["optimizer", "opt_g", "optim", "optimizer_local", "scheduler", "lr_scheduler", "scheduler_global", "scaler", "grad_scaler"],
)
def test_what_training_goes_on_with(name: str) -> None:
    before = script("if rank == 0:", f"    {name}.load_state_dict(state['x'])")
    check_transformed(RankLocalTrainingState, before, script(f"{name}.load_state_dict(state['x'])"), unsafe=True)


def test_a_test_that_asks_for_more() -> None:
    before = script("if rank == 0 and path:", "    optimizer.load_state_dict(state['x'])", "    print('resumed')")
    after = script("if path:", "    optimizer.load_state_dict(state['x'])", "    if rank == 0:", "        print('resumed')")
    check_transformed(RankLocalTrainingState, before, after, unsafe=True)


def test_an_early_exit() -> None:
    source = HEAD + "def restore(scaler, path):\n    if dist.get_rank() != 0 or not path:\n        return\n"
    rest = "    scaler.load_state_dict(torch.load(path, map_location='cpu')['scaler'])\n"
    check_transformed(
        RankLocalTrainingState, source + rest, source.replace("dist.get_rank() != 0 or ", "") + rest, unsafe=True
    )
    check_told(RankLocalTrainingState, source.replace(" or not path", "") + rest, reason="out of the early exit")


def test_the_state_of_an_accelerator() -> None:
    source = """
        from accelerate import Accelerator

        def main(path):
            accelerator = Accelerator()
            if path and accelerator.is_main_process:
                accelerator.load_state(path)
                accelerator.print("resumed")
        """
    check_transformed(
        RankLocalTrainingState, source, source.replace("path and accelerator.is_main_process", "path"), unsafe=True
    )


def test_where_training_begins() -> None:
    loop = ("for epoch in range(start, epochs):", "    net(epoch)")
    lines = ("start = 0", "if rank == 0:", "    start = state['epoch'] + 1", *loop)
    after = (lines[0], "start = state['epoch'] + 1", *lines[3:])
    check_transformed(RankLocalTrainingState, script(*lines), script(*after), unsafe=True)
    counted = ("step = 0", "if rank == 0:", "    step = state.get('step')", "while step < epochs:", "    step += 1")
    assert findings_of(RankLocalTrainingState, script(*counted))


RESUME = "def resume(net, path):\n    held = torch.load(path, map_location='cpu')\n    net.load_state_dict(held['net'])\n"
ROUNDS = ("for epoch in range(start, epochs):", "    net(epoch)")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("held['epoch'] + 1", "start = load_last(net, path)"),
        ("net, held['epoch']", "net, start = load_last(net, path)"),
    ],
)
def test_a_helper_reads_where_training_begins(given: str, taken: str) -> None:
    helper = f"{RESUME.replace('resume', 'load_last')}    return {given}\n\n\n"
    lines = ("start = 0", "if rank == 0 and path:", f"    {taken}", *ROUNDS)
    after = (lines[0], "if path:", *lines[2:])
    head = HEAD + helper
    check_transformed(RankLocalTrainingState, script(*lines, head=head), script(*after, head=head), unsafe=True)


@pytest.mark.parametrize(
    ("helper", "taken"),
    [
        (f"{RESUME}    return 0\n", "start = resume(net, path)"),
        (f"{RESUME}    return held['epoch'], net\n", "net, start = resume(net, path)"),
        (f"{RESUME}    return held['epoch']\n", "seen_epoch = resume(net, path)"),
        ("", "start = resume(net, path)"),
    ],
    ids=["a number of its own", "another part", "no loop begins there", "a helper that is not seen"],
)
def test_what_a_helper_gives_back_is_no_beginning(helper: str, taken: str) -> None:
    lines = ("start = 0", "if rank == 0:", f"    {taken}", *ROUNDS)
    assert not findings_of(RankLocalTrainingState, script(*lines, head=f"{HEAD}{helper}\n\n"))


BOTH_ARMS = """\


if __name__ == "__main__":
    if dist.get_rank() == 0:
        with open("log", "w") as log:
            main("a", 1, 2, 3, 4)
    else:
        main("a", 1, 2, 3, 4)
"""


def test_each_rank_comes_by_an_arm_of_its_own() -> None:
    lines = ("start = 0", "if rank == 0:", "    start = state['epoch']", *ROUNDS)
    assert findings_of(RankLocalTrainingState, script(*lines) + BOTH_ARMS)
    alone = BOTH_ARMS.replace('    else:\n        main("a", 1, 2, 3, 4)\n', "")
    assert not findings_of(RankLocalTrainingState, script(*lines) + alone)


def test_weights_behind_the_wrap() -> None:
    lines = ("model = DDP(net)", "if rank == 0:", "    model.module.load_state_dict(state['net'])")
    after = (lines[0], "model.module.load_state_dict(state['net'])")
    check_transformed(RankLocalTrainingState, script(*lines), script(*after), unsafe=True)
    made = (*lines[:2], "    make(path)", lines[2])
    check_told(RankLocalTrainingState, script(*made), reason="in front of the wrap")


def test_a_test_in_a_caller_is_told() -> None:
    source = HEAD + (
        "def restore(optimizer, state):\n    optimizer.load_state_dict(state)\n\n"
        "def main(optimizer, path):\n    if dist.get_rank() == 0:\n        restore(optimizer, torch.load(path))\n"
    )
    found = check_told(RankLocalTrainingState, source, reason="off the way that leads here")
    assert [e.text for e in found.evidence if "in front of this call" in e.text], "the place of the test is shown"


@pytest.mark.parametrize(
    "line",
    [
        "scheduler.step()",
        "optimizer.param_groups[0]['lr'] = 0.1",
        "for group in optimizer.param_groups: group['lr'] *= 0.5",
    ],
)
def test_a_learning_rate_that_rank_0_moves_is_told(line: str) -> None:
    check_told(RankLocalTrainingState, script("if rank == 0:", f"    {line}"), reason="let every rank do it")


@pytest.mark.parametrize("name", ["scheduler_global", "sched_2", "lr_scheduler_g"])
def test_a_schedule_of_one_part_of_the_model(name: str) -> None:
    check_told(RankLocalTrainingState, script("if rank == 0:", f"    {name}.step()"), reason="let every rank do it")
    check_nothing(RankLocalTrainingState, script("if rank == 0:", f"    rate = {name}.step()"))  # a noise schedule gives samples
    check_nothing(RankLocalTrainingState, script("if rank == 0:", "    scheduler_log.step()"))
    check_nothing(RankLocalTrainingState, script("if rank == 0:", "    scheduled_jobs.step()"))


def test_a_broadcast_into_a_tensor_that_nobody_holds_shares_nothing() -> None:
    moved = ("if rank == 0:", "    scheduler.step()", "rate = torch.tensor(scheduler.get_last_lr()[0])")
    lost = "dist.broadcast(torch.tensor(scheduler.get_last_lr()[0]), 0)"
    check_told(RankLocalTrainingState, script(*moved, lost), reason="let every rank do it")
    check_nothing(RankLocalTrainingState, script(*moved, "dist.broadcast(rate, 0)"))


def test_a_buffer_that_only_rank_0_has_is_told() -> None:
    made = "model = DDP(net)"
    lines = ("if rank == 0:", "    model.module.register_buffer('mean', state['mean'])")
    check_told(RankLocalTrainingState, script(made, *lines), reason="copy into the buffer")
    held = "\nclass Net(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer('mean', VALUE)\n"
    check_told(RankLocalTrainingState, script(made, *lines) + held.replace("VALUE", "None"), reason="copy into the buffer")
    check_nothing(RankLocalTrainingState, script(made, *lines) + held.replace("VALUE", "torch.zeros(2)"))
    silent = script("model = DDP(net, broadcast_buffers=False)", *lines) + held.replace("VALUE", "torch.zeros(2)")
    check_told(RankLocalTrainingState, silent, reason="copy into the buffer")


def test_a_file_of_each_rank_whose_error_is_swallowed() -> None:
    source = HEAD + (
        "def restore(optimizer):\n    try:\n        optimizer.load_state_dict(torch.load(f'opt_{dist.get_rank()}.pt'))\n"
        "    except Exception:\n        pass\n"
    )
    check_told(RankLocalTrainingState, source, reason="agree first")
    check_nothing(RankLocalTrainingState, source.replace("pass", "raise"))
    check_nothing(RankLocalTrainingState, source.replace("_{dist.get_rank()}", ""))
    check_nothing(RankLocalTrainingState, source.replace("Exception", "KeyError"))
    check_nothing(RankLocalTrainingState, source + "    dist.all_reduce(torch.tensor(1))\n")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("if rank == 0:", "    make(path)", "    optimizer.load_state_dict(state['x'])"), "part it from `make(path)`"),
        (("if rank == 0:", "    optimizer.load_state_dict(state['x'])", "else:", "    wait()"), "another arm"),
        (("if rank == 0 or path:", "    pass", "elif rank == 0: optimizer.load_state_dict(state['x'])"), "another arm"),
    ],
)
def test_blocks_that_are_told(lines: tuple[str, ...], reason: str) -> None:
    found = findings_of(RankLocalTrainingState, script(*lines))
    assert all(f.fix is None for f in found)
    assert not found or reason in found[0].reason


@pytest.mark.parametrize(
    "lines",
    [
        ("optimizer.load_state_dict(state['x'])",),
        ("if rank == 0:", "    optimizer.load_state_dict(state['x'])", "else:", "    optimizer.load_state_dict(state['y'])"),
        ("if rank == 0:", "    optimizer.load_state_dict(state['x'])", "dist.broadcast_object_list([optimizer])"),
        ("if rank == 0:", "    net.load_state_dict(state['net'])", "model = DDP(net)"),
        ("model = DDP(net)", "if rank == 0:", "    model.module.load_state_dict(state)", "broadcast_weights(model)"),
        ("if rank == 0:", "    ema_optimizer.load_state_dict(state['x'])"),
        ("if rank == 0:", "    average.load_state_dict(state['x'])"),
        ("if rank == 0:", "    own = torch.optim.SGD(net.parameters())", "    own.load_state_dict(state)"),
        ("if rank == 0:", "    optimizer.load_state_dict(state)", "    optimizer.step()"),
        ("if rank == 0:", "    best_epoch = state['epoch']", "    print(best_epoch)"),
        ("start = 0", "if rank == 0:", "    start = state['epoch']", "    print(start)"),
        ("if path:", "    optimizer.load_state_dict(state['x'])"),
        ("if rank == 0:", "    state['optimizer'] = optimizer.state_dict()"),
    ],
)
def test_what_is_fine(lines: tuple[str, ...]) -> None:
    check_nothing(RankLocalTrainingState, script(*lines))


def test_a_broadcast_behind_the_call() -> None:
    source = HEAD + (
        "def restore(optimizer, path):\n    if dist.get_rank() == 0:\n        optimizer.load_state_dict(torch.load(path))\n\n"
        "def main(optimizer, path):\n    restore(optimizer, path)\n    broadcast_optimizer(optimizer)\n"
    )
    check_nothing(RankLocalTrainingState, source)
    assert findings_of(RankLocalTrainingState, source.replace("    broadcast_optimizer(optimizer)\n", ""))


def test_a_number_that_stands_for_no_rank() -> None:
    loads = "    def load(self, path, rank=0):\n        if rank <= 0:\n            self.net.load_state_dict(torch.load(path))\n"
    made = "class Model:\n    def __init__(self, net):\n        self.net = DDP(net)\n"
    source = f"{HEAD}{made}\n{loads}\nModel(None).load('a', -1)\n"
    check_nothing(RankLocalTrainingState, source)
    assert findings_of(RankLocalTrainingState, source.replace("'a', -1", "'a', dist.get_rank()"))


def test_weights_whose_wrap_may_come_later() -> None:
    source = HEAD + (
        "class Loop:\n    def load(self, state):\n        if dist.get_rank() == 0:\n"
        "            self.net.load_state_dict(state)\n\n"
        "    def run(self):\n        self.load({})\n        model = DDP(self.net)\n"
    )
    check_nothing(RankLocalTrainingState, source)


def test_files_without_processes_and_tests() -> None:
    source = "def f(rank, optimizer, state):\n    if rank == 0:\n        optimizer.load_state_dict(state)\n"
    check_nothing(RankLocalTrainingState, source)
    told = script("if rank == 0:", "    optimizer.load_state_dict(state)")
    check_nothing(RankLocalTrainingState, told, path="tests/test_a.py")


def averaged(*lines: str, behind: str = "") -> str:
    body = "".join(f"            {line}\n" for line in lines)
    head = f"{HEAD}def main(net, ema, loader, path):\n    rank = dist.get_rank()\n    model = DDP(net)\n    for x in loader:\n"
    step = "        model(x).mean().backward()\n        if rank == 0:\n"
    return f"{head}{step}{body}{behind}"


COPY = "ema.copy_to(model.parameters())"
SAVE = "torch.save(model.module.state_dict(), path)"


@pytest.mark.parametrize("copy", [COPY, COPY.replace("model.", "model.module."), COPY.replace("copy_to", "apply_shadow")])
def test_an_average_that_stays_in_the_model_is_told(copy: str) -> None:
    check_told(RankLocalTrainingState, averaged(copy, SAVE), reason="put them back")


def test_an_average_in_a_prepared_model_is_told() -> None:
    source = """
        from accelerate import Accelerator

        def main(net, ema_model, loader):
            accelerator = Accelerator()
            model, loader = accelerator.prepare(net, loader)
            for x in loader:
                accelerator.backward(model(x).mean())
                if accelerator.is_main_process:
                    bare = accelerator.unwrap_model(model)
                    ema_model.copy_to(bare.parameters())
        """
    check_told(RankLocalTrainingState, source, reason="put them back")


@pytest.mark.parametrize(
    "lines",
    [
        ("ema.store(model.parameters())", COPY, SAVE, "ema.restore(model.parameters())"),
        (COPY, SAVE, "break"),
        ("ema.copy_to(other.parameters())",),
        ("average = x.copy_to(model.parameters())",),
        ("rows.copy_to(model.parameters())",),
    ],
)
def test_averages_that_are_put_back_or_are_no_matter(lines: tuple[str, ...]) -> None:
    check_nothing(RankLocalTrainingState, averaged(*lines))


def test_an_average_behind_the_training_or_on_every_rank() -> None:
    behind = f"    if rank == 0:\n        {COPY}\n        {SAVE}\n"
    check_nothing(RankLocalTrainingState, averaged("print(x)", behind=behind))
    check_nothing(RankLocalTrainingState, averaged(COPY).replace("if rank == 0", "if x.mean() > 0"))


def test_a_schedule_of_a_helper_that_one_process_calls_elsewhere() -> None:
    helper = HEAD + "def finish(scheduler, score):\n    scheduler.step(score)\n\n\n"
    lines = ("def main(scheduler, score, ddp):", "    if ddp:", "        if dist.get_rank() == 0:",
             "            finish(scheduler, score)", "    else:", "        finish(scheduler, score)")  # fmt: skip
    source = helper + "\n".join(lines) + "\n"
    check_told(RankLocalTrainingState, source, reason="let every rank do it")
    check_nothing(RankLocalTrainingState, source.replace("if ddp:", "if score > 0:"))


# Behind the training

TRAINED = (
    "model = DDP(net)", "for x in state['rows']:", "    model(x).mean().backward()", "    optimizer.step()", "RESTORE",
    "    test(net)",
)  # fmt: skip


def test_weights_that_rank_0_restores_for_a_test_behind_the_training() -> None:
    lines = [line.replace("RESTORE", "if rank == 0:\n        model.module.load_state_dict(state['best'])") for line in TRAINED]
    check_nothing(RankLocalTrainingState, script(*lines))
    helper = "\ndef best(model, state):\n    model.module.load_state_dict(state['best'])\n"
    lines = [line.replace("RESTORE", "if rank == 0:\n        best(model, state)") for line in TRAINED]
    check_nothing(RankLocalTrainingState, script(*lines) + helper)


def test_weights_that_rank_0_restores_between_two_epochs() -> None:
    lines = ("model = DDP(net)", "for epoch in range(epochs):", "    for x in state['rows']:",
             "        model(x).mean().backward()", "        optimizer.step()", "    if rank == 0:",
             "        model.module.load_state_dict(state['best'])")  # fmt: skip
    found = findings_of(RankLocalTrainingState, script(*lines))
    assert found and "rank 0 alone restores the weights" in found[0].message


# The mode of a model

MODES = """\
import torch.distributed as dist


def train(net, loader, optimizer, show, every):
    dist.init_process_group("nccl")
    for step, batch in enumerate(loader):
        net(batch).mean().backward()
        optimizer.step()
        if step % every == 0:
            net.eval()
            if dist.get_rank() == 0:
                show(net)
                net.train()
"""
MODES_AFTER = MODES.replace("                net.train()\n", "            net.train()\n")


def test_a_mode_that_rank_0_alone_puts_back() -> None:
    found = check_transformed(RankLocalTrainingState, MODES, MODES_AFTER, unsafe=True)
    assert "puts `net` into eval mode in line 10, and rank 0 alone back" in found[0].message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("                net.train()\n", "                net.train()\n                show(None)\n"),
        ("                net.train()\n", "                if step:\n                    net.train(True)\n"),
        ("                net.train()\n", "                net.train()\n            else:\n                show(None)\n"),
    ],
)
def test_modes_that_are_told(old: str, new: str) -> None:
    check_told(RankLocalTrainingState, MODES.replace(old, new), reason="call it on every rank")


@pytest.mark.parametrize(
    ("what", "source"),
    [
        ("all ranks go back", MODES_AFTER),
        ("all ranks go back in front", MODES.replace("        net(batch)", "        net.train()\n        net(batch)")),
        ("all ranks go back behind it", MODES + "            net.train()\n"),
        ("rank 0 alone evaluates", MODES.replace("            net.eval()\n            if dist.get_rank() == 0:\n",
                                                 "            if dist.get_rank() == 0:\n                net.eval()\n")),
        ("another model", MODES.replace("net.eval()", "teacher.eval()")),
        ("nothing is trained", MODES.replace(".backward()", ".item()")),
        ("behind the training", MODES.replace("        if step %", "    for step in range(2):\n        if step %")),
        ("it is frozen", MODES.replace("net.train()", "net.train(False)")),
    ],
)  # fmt: skip
def test_modes_that_are_right(what: str, source: str) -> None:
    check_nothing(RankLocalTrainingState, source)


RATES = """\
class Trained:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def lower_rate(self):
        for group in self.optimizer.param_groups:
            group["lr"] /= 10
"""


@pytest.mark.parametrize(("test", "told"), [("dist.get_rank() == 0", True), ("epoch > 3", False)])
def test_a_class_that_knows_no_rank_and_lowers_the_rate_for_one(test: str, told: bool) -> None:
    main = (
        f"{HEAD}from trained import Trained\n\n\ndef main(net, optimizer, epochs):\n    dist.init_process_group('gloo')\n"
        "    model = Trained(DDP(net), optimizer)\n    for epoch in range(epochs):\n"
        f"        if {test}:\n            model.lower_rate()\n"
    )
    found = findings_of(RankLocalTrainingState, RATES, {"main.py": main}, path="trained.py")
    assert ["rank 0 alone changes the learning rate" in f.message for f in found] == [True] * told


def test_a_schedule_that_rank_0_steps_in_both_arms() -> None:
    lines = ("if rank == 0:", "    if epochs > 3:", "        scheduler.step(1.0)", "    else:", "        scheduler.step()")
    found = check_told(RankLocalTrainingState, script(*lines), reason="every rank")
    assert "changes the schedule of the learning rate" in found.message


OWN = f"""\
import os
import time

{HEAD}
def main(args, loader):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    folder = None
    if rank == 0:
        folder = os.path.join(args.root, time.strftime("%m%d"))
        os.makedirs(folder, exist_ok=True)
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    model = DDP(net)
    path = f"{{folder}}/last.pt"
    if os.path.exists(path):
        state = torch.load(path, map_location="cpu")
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""
BEST = f"""\
{HEAD}
class Runner:
    def __init__(self, net, folder):
        self.rank = dist.get_rank()
        self.folder, self.best, self.best_epoch = folder, 0.0, 0
        self.model = DDP(net)

    def validate(self, epoch, score):
        dist.all_reduce(score)
        if self.rank == 0:
            if score > self.best:
                self.best = score
                self.best_epoch = epoch

    def test(self, loader):
        state = torch.load(f"{{self.folder}}/{{self.best_epoch}}.pt", map_location="cpu")
        self.model.module.load_state_dict(state)
        return [self.model(x) for x in loader]


def main(net, loader, scores):
    dist.init_process_group("nccl")
    runner = Runner(net, "out")
    for epoch, score in enumerate(scores):
        runner.validate(epoch, score)
    runner.test(loader)
"""
HELPER = """\
import torch


def restart(path, **held):
    state = torch.load(path, map_location="cpu")
    for key, value in held.items():
        value.load_state_dict(state[key])
"""
CALLER = f"""\
import os
import time

from helper import restart
{HEAD}
def main(args, net):
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        args.folder = os.path.join(args.folder, time.strftime("%H%M"))
        os.makedirs(args.folder)
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    restart(os.path.join(args.folder, "last.pt"), model=model, optimizer=optimizer)
"""
FITTED = """\
import lightning.pytorch as pl
from lightning.pytorch.utilities import rank_zero_only


def main(model, args):
    trainer = pl.Trainer(devices=4, strategy="ddp")
    last = None
    if rank_zero_only.rank == 0:
        last = find_last(args.folder)
    trainer.fit(model, ckpt_path=last)
"""


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        (OWN, 21, "the optimizer's state from `path`, for which rank 0 alone sets `folder` in line 14"),
        (OWN.replace("None\n", "''\n"), 21, "rank 0 alone sets `folder`"),
        (OWN.replace('        optimizer.load_state_dict(state["optimizer"])\n', ""), 21, "the weights from `path`"),
        (BEST, 20, "the weights from"),
        (BEST.replace("self.rank == 0", "not self.rank"), 20, "rank 0 alone sets `self.best_epoch` in line 17"),
        (CALLER, 17, "rank 0 alone sets `args.folder` in line 13"),
        (FITTED, 10, "the whole training state from `last`"),
    ],
)
def test_a_path_that_rank_0_alone_has(source: str, line: int, words: str) -> None:
    found = findings_of(RankLocalTrainingState, source, {"helper.py": HELPER}, path="main.py")
    assert [(f.span.line, words in f.message, f.fix is None) for f in found] == [(line, True, True)]


@pytest.mark.parametrize(
    "source",
    [
        OWN.replace("    net = ", "    box = [folder]\n    dist.broadcast_object_list(box)\n    folder = box[0]\n    net = "),
        OWN.replace("    folder = None\n    if rank == 0:\n    ", "    if rank >= 0:\n    "),
        OWN.replace("    net = ", "    else:\n        folder = os.path.join(args.root, args.day)\n    net = "),
        OWN.replace("    net = ", "    dist.barrier()\n    if rank != 0:\n        folder = args.root\n    net = "),
        OWN.replace("    net = ", "    folder = f'{args.root}/{rank}'\n    net = "),
        OWN.replace('        optimizer.load_state_dict(state["optimizer"])\n', "").replace("    model = DDP(net)\n", "").replace(
            "    for x in loader:", "    model = DDP(net)\n    for x in loader:"),
        OWN.replace("folder = None", "folder = args.root").replace("        folder = os", "        shown = os").replace(
            "makedirs(folder", "makedirs(shown"),
        BEST.replace("        if self.rank == 0:\n            if score", "        if score > 0:\n            if score"),
        BEST.replace("        self.model.module.load_state_dict(state)\n        return [self.model(x) for x in loader]",
                     "        if self.rank == 0:\n            return state"),
        CALLER.replace("    if dist.get_rank() == 0:\n        args.folder", "    if args.fresh:\n        args.folder").replace(
            'time.strftime("%H%M")', "'new'"),
        FITTED.replace("rank_zero_only.rank == 0", "args.resume"),
        FITTED.replace("ckpt_path=last", "ckpt_path=args.last").replace("last = find", "shown = find"),
    ],
)  # fmt: skip
def test_paths_that_are_right(source: str) -> None:
    assert not findings_of(RankLocalTrainingState, source, {"helper.py": HELPER}, path="main.py")


# A wrapper that rank 0 takes off

OFF = """\
import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer, args):
    accelerator = Accelerator()
    model, loader, optimizer = accelerator.prepare(net, loader, optimizer)
    for epoch in range(args.epochs):
        for x in loader:
            accelerator.backward(model(x).mean())
            optimizer.step()
        if accelerator.is_main_process:
            model = accelerator.unwrap_model(model)
            torch.save(model.state_dict(), args.path)
"""
WRAPPED = OFF.replace("accelerator.prepare(net, loader, optimizer)", "DDP(net), loader, optimizer")
WRAPPED = WRAPPED.replace("accelerator.unwrap_model(model)", "model.module")
WRAPPED = WRAPPED.replace("accelerator.backward(model(x).mean())", "model(x).mean().backward()")


@pytest.mark.parametrize(
    "source",
    [
        OFF,
        OFF.replace("is_main_process:", "is_local_main_process and epoch % args.every == 0:"),
        OFF.replace("        if acc", "        score = judge(model)\n        if acc").replace(
            "            model = ", "            if score > best:\n                print(score)\n            model = "),
        WRAPPED.replace("accelerator.is_main_process", "dist.get_rank() == 0"),
    ],
)  # fmt: skip
def test_a_wrapper_that_rank_0_takes_off_in_the_training(source: str) -> None:
    (found,) = findings_of(RankLocalTrainingState, source)
    assert found.severity == "hang" and found.fix is None
    assert "the others wait for it" in found.message and "a name of its own: `bare = " in found.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            model = acc", "            bare = acc"),
        ("        if accelerator.is_main_process:\n            model", "        if args.bare:\n            model"),  # all do
        ("is_main_process:", "is_main_process and epoch == args.epochs - 1:"),  # no round comes behind it
        ("args.path)\n", "args.path)\n            break\n"),
        ("    for epoch in range(args.epochs):\n", "    if args.once:\n"),  # nothing goes round
        ("        for x in loader:\n", "        model = wrap(net)\n        for x in loader:\n"),  # anew in each round
        ("accelerator.backward(model(x).mean())", "args.judge(model(x))"),
        ("unwrap_model(model)", "unwrap_model(net)"),
    ],
)
def test_wrappers_that_stay_or_are_done_with(old: str, new: str) -> None:
    assert old in OFF
    check_nothing(RankLocalTrainingState, OFF.replace(old, new))


def test_a_schedule_of_sharded_weights() -> None:
    line = ("if rank == 0:", "    scheduler.load_state_dict(state['x'])")
    (copies,) = findings_of(RankLocalTrainingState, script(*line))
    assert "weights of the ranks drift apart" in copies.message
    sharded = HEAD + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n\n"
    (found,) = findings_of(RankLocalTrainingState, script(*line, head=sharded))
    assert "move their shards of the weights by it" in found.message and "drift apart" not in found.message


_SWAP = """
import copy
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def swap(model, average):
    model.load_state_dict(average)


def train(net, average, batches, optimizer):
    model = DDP(net)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            kept = copy.deepcopy(net.state_dict())
            {swap}
            print(net(x))
            {back}
"""


@pytest.mark.parametrize("swap", ["net.load_state_dict(average)", "swap(net, average)"])
def test_weights_that_are_put_back(swap: str) -> None:
    check_nothing(RankLocalTrainingState, _SWAP.format(swap=swap, back="net.load_state_dict(kept)"))
    for back in ("net.eval()", "kept.update(average); net.load_state_dict(kept)", "net.load_state_dict(average)"):
        assert findings_of(RankLocalTrainingState, _SWAP.format(swap=swap, back=back)), back


ONE_EPOCH = "def one_epoch(model, loader):\n    for x in loader:\n        model(x).mean().backward()\n\n"


def test_weights_for_a_test_behind_a_training_that_a_function_makes() -> None:
    best = ("if rank == 0:", "    model.module.load_state_dict(state['net'])", "    judge(model)")
    lines = ("model = DDP(net)", "for epoch in range(epochs):", "    one_epoch(model, state['rows'])")
    check_nothing(RankLocalTrainingState, script(*lines, *best, head=HEAD + ONE_EPOCH))
    for order in ((lines[0], *best, *lines[1:]), (*lines, *(f"    {line}" for line in best))):
        assert findings_of(RankLocalTrainingState, script(*order, head=HEAD + ONE_EPOCH))
