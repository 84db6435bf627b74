from __future__ import annotations

import pytest

from codemods.checkpoints.load_on_one_gpu import LoadOnOneGpu
from ddpfix.testing import check_nothing, check_transformed, findings_of

TRAIN = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, adam, ema, args, gpu):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
    first = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["weights"])
        adam.load_state_dict(state["adam"])
        first = state["epoch"]
    for epoch in range(first, 9):
        if dist.get_rank() == 0:
            torch.save({"weights": model.state_dict(), "adam": adam.state_dict(), "epoch": epoch}, "last.pt")
"""
LOADED = TRAIN.replace("torch.load(args.resume)", 'torch.load(args.resume, map_location="cpu")')


def test_example_of_the_page() -> None:
    sections = LoadOnOneGpu.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(LoadOnOneGpu, before, after)


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("as it stands", "dist.get_rank() == 0", "dist.get_rank() == 0"),
        ("the same name is bound again", "    for epoch", "    state = None\n    for epoch"),
        ("the keys are asked for",
         '        first = state["epoch"]', '        if "epoch" in state:\n            first = state["epoch"]'),
        ("the state is taken by get", 'state["adam"])', 'state.get("adam"))'),
        ("the file is trusted", "torch.load(args.resume", "torch.load(args.resume, weights_only=True"),
    ],
)  # fmt: skip
def test_files_of_this_training(what: str, old: str, new: str) -> None:
    check_transformed(LoadOnOneGpu, TRAIN.replace(old, new), LOADED.replace(old, new))


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("an average may keep them", "adam.load", "ema.load"),
        ("a part of another kind", 'first = state["epoch"]', 'args.centers = state["centers"]'),
        ("the file is handed on", 'first = state["epoch"]', "first = args.read(state)"),
        ("assigned", 'state["weights"])', 'state["weights"], assign=True)'),
        ("a class of the project's own", "\n\ndef train", "\n\nclass Net:\n    def load_state_dict(self, x): ...\n\n\ndef train"),
    ],
)
def test_tensors_that_may_stay_where_they_are(what: str, old: str, new: str) -> None:
    check_transformed(LoadOnOneGpu, TRAIN.replace(old, new, 1), LOADED.replace(old, new, 1), unsafe=True)


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("a device by name", "args.resume)", "args.resume, map_location=f'cuda:{gpu}')"),
        ("a device by position", "args.resume)", "args.resume, 'cpu')"),
        ("unknown options", "args.resume)", "args.resume, **args.options)"),
        ("one rank loads", "    if args.resume:", "    if args.resume and dist.get_rank() == 0:"),
        ("weights of somebody else", "args.resume)", "args.pretrained)"),
        ("nothing is saved by these keys", '{"weights": model.state_dict(), "adam": adam.state_dict(), ', "{"),
        ("they are saved from the CPU", "        if dist",
         "        held = {k: v.cpu() for k, v in net.state_dict().items()}\n        if dist"),
        ("each process sees one card", "    first = 0",
         "    import os\n    os.environ['CUDA_VISIBLE_DEVICES'] = str(gpu)\n    first = 0"),
        ("nothing is on a GPU", "net.cuda(gpu), device_ids=[gpu]", "net"),
        ("a reader of the project's own", "torch.load", "args.load"),
    ],
)  # fmt: skip
def test_loads_that_are_right_or_not_shown(what: str, old: str, new: str) -> None:
    assert old in TRAIN
    check_nothing(LoadOnOneGpu, TRAIN.replace(old, new, 1))


def test_a_program_of_one_process() -> None:
    source = TRAIN.replace('    dist.init_process_group("nccl")\n', "")
    source = source.replace("DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])", "net.cuda()")
    check_nothing(LoadOnOneGpu, source)


def test_the_tests_of_a_repository() -> None:
    check_nothing(LoadOnOneGpu, TRAIN, path="tests/test_resume.py")


def test_a_state_that_is_filled_key_by_key() -> None:
    saved = '{"weights": model.state_dict(), "adam": adam.state_dict(), "epoch": epoch}'
    filled = '            out = {"epoch": epoch}\n            out["weights"] = model.state_dict()\n            torch.save('
    before, after = (t.replace("            torch.save(", filled).replace(saved, "out") for t in (TRAIN, LOADED))
    check_transformed(LoadOnOneGpu, before, after)


def test_a_list_of_cards_for_all_processes() -> None:
    cards = "    import os\n    os.environ['CUDA_VISIBLE_DEVICES'] = ','.join(args.cards)\n    first = 0"
    check_transformed(LoadOnOneGpu, TRAIN.replace("    first = 0", cards, 1), LOADED.replace("    first = 0", cards, 1))


def test_a_trainer_for_one_process_beside_that_for_several() -> None:
    alone = """

class Alone:
    def resume(self, path):
        state = torch.load(path)
        self.net.load_state_dict(state["weights"])
"""
    source = LOADED + alone
    check_nothing(LoadOnOneGpu, source)
    several = source.replace("class Alone:\n", "class Several:\n    distributed = True\n")
    check_transformed(LoadOnOneGpu, several, several.replace("load(path)", 'load(path, map_location="cpu")'))


@pytest.mark.parametrize("test", ['args.mode == "one"', "not args.mode"])
def test_the_arm_for_one_process(test: str) -> None:
    wrap = "    model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])\n"
    source = TRAIN.replace(wrap, f"    if args.mode:\n    {wrap}").replace("    if args.resume:", f"    if {test}:")
    check_nothing(LoadOnOneGpu, source)


def test_the_arm_of_the_wrap() -> None:
    wrap = "    model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])\n"
    before, after = (
        t.replace(wrap, f"    if args.mode:\n    {wrap}").replace("    if args.resume:", "    if args.mode:")
        for t in (TRAIN, LOADED)
    )
    check_transformed(LoadOnOneGpu, before, after)


HELPERS = """\
import torch


def resume(path, net, adam):
    state = torch.load(path)
    net.load_state_dict(state["weights"])
    adam.load_state_dict(state["adam"])
    return state["epoch"]
"""
CALLER = """\
import torch
import torch.distributed as dist
from module import resume
from torch.nn.parallel import DistributedDataParallel


def train(net, adam, ema, args, gpu):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
    first = resume(args.resume, model, adam)
    for epoch in range(first, 9):
        if dist.get_rank() == 0:
            torch.save({"weights": model.state_dict(), "adam": adam.state_dict(), "epoch": epoch}, "last.pt")
"""


def test_a_helper_in_a_file_of_its_own() -> None:
    after = HELPERS.replace("torch.load(path)", 'torch.load(path, map_location="cpu")')
    check_transformed(LoadOnOneGpu, HELPERS, after, files={"train.py": CALLER})


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("nobody calls it", "    first = resume(args.resume, model, adam)", "    first = 0"),
        ("one rank calls it", "    first = resume(", "    first = 0\n    if dist.get_rank() == 0:\n        first = resume("),
        ("a program of one process", "    dist.init_process_group", "    args.start"),
        ("another key", '"weights": model', '"net": model'),
        ("each process sees one card", "def train", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n\n\ndef train"),
    ],
)
def test_helpers_that_nothing_shows_to_load_on_every_rank(what: str, old: str, new: str) -> None:
    other = CALLER.replace(old, new)
    if what == "a program of one process":
        other = other.replace("DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])", "net.cuda(gpu)")
        other = other.replace("if dist.get_rank() == 0:", "if epoch:")
    elif what == "another key":
        other = other.replace('"adam": adam', '"optimizer": adam')
    check_nothing(LoadOnOneGpu, HELPERS, files={"train.py": other})


def test_the_branch_of_a_helper_for_a_run_without_ranks() -> None:
    head, body = HELPERS.split("adam):\n")
    inner = body.replace("    ", "        ")
    helpers = f"{head}adam, rank=None):\n    if rank is None:\n{inner}    return read(path, rank)\n"
    ranked = CALLER.replace("model, adam)", "model, adam, dist.get_rank())")
    check_nothing(LoadOnOneGpu, helpers, files={"train.py": ranked})
    assert findings_of(LoadOnOneGpu, helpers.replace("is None", "is not None"), {"train.py": ranked})
    named = ranked.replace("dist.get_rank())\n", "args.name)\n")
    assert findings_of(LoadOnOneGpu, helpers.replace("rank", "name"), {"train.py": named})


def test_a_resume_that_ends_in_a_name_that_nothing_binds() -> None:
    check_nothing(LoadOnOneGpu, TRAIN.replace("adam.load", "adma.load"))
    check_nothing(LoadOnOneGpu, TRAIN.replace('first = state["epoch"]', 'first = state["epoch"] + ofset'))
    quiet = "import builtins\n\nbuiltins.print = len\n"
    check_nothing(LoadOnOneGpu, quiet + TRAIN.replace("adam.load", "adma.load"))
    assert findings_of(LoadOnOneGpu, quiet.replace(".print", ".adma") + TRAIN.replace("adam.load", "adma.load"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def train(net", "adma = 3\n\n\ndef train(net"),  # the file binds it
        ('        first = state["epoch"]', '        first = state["epoch"]\n        if args.more:\n            show(adma)'),
        ("import torch\n", "import torch\nfrom names import *\n"),
    ],
)
def test_a_resume_that_goes_on(old: str, new: str) -> None:
    source = TRAIN.replace(old, new, 1) + "\n\ndef show(*given): ...\n"
    source = source if "adma)" in new else source.replace('first = state["epoch"]', 'first = state["epoch"]\n        show(adma)')
    assert findings_of(LoadOnOneGpu, source)


CALL = "train(made.net, made.optimizer, made.ema, made.options, int(made.rank))"
PROGRAM = f"import made\n{TRAIN}\n\nif __name__ == '__main__':\n    {CALL}\n"


def test_one_process_a_machine() -> None:
    job = "torchrun --nproc_per_node=1 --nnodes=$1 --node_rank=$2 train.py\n"
    check_nothing(LoadOnOneGpu, PROGRAM, path="train.py", files={"run.sh": job})
    check_nothing(LoadOnOneGpu, PROGRAM, path="train.py", files={"run.sh": f"{job}python train.py\n"})  # one process as well
    spawns = PROGRAM.replace(CALL, "torch.multiprocessing.spawn(train, (made.net,), 8)")
    assert findings_of(LoadOnOneGpu, spawns, {"run.sh": f"{job}python train.py\n"}, path="train.py")
    for other in (job.replace("node=1", "node=2"), f"{job}torchrun --nproc_per_node 8 train.py\n", f"{job}torchrun $SCRIPT\n"):
        assert findings_of(LoadOnOneGpu, PROGRAM, {"run.sh": other}, path="train.py")


START = "import torch\nimport torch.distributed as dist\n\n\ndef start():\n    {}\n    dist.init_process_group('nccl')\n"
STARTED = TRAIN.replace('    dist.init_process_group("nccl")', "    start()").replace("\n\n\n", "\nfrom start import start\n\n\n")


@pytest.mark.parametrize(
    "line",
    [
        "assert torch.cuda.device_count() == 1",
        "assert torch.cuda.device_count() == 1, 'one GPU each'",
        "if torch.cuda.device_count() != 1:\n        raise RuntimeError('one GPU each')",
    ],
)
def test_a_program_that_insists_on_one_gpu_in_each_process(line: str) -> None:
    check_nothing(LoadOnOneGpu, STARTED, files={"start.py": START.format(line)})
    check_nothing(LoadOnOneGpu, TRAIN.replace('    dist.init', f"    {line}\n    dist.init"))


@pytest.mark.parametrize(
    "line",
    [
        "assert torch.cuda.device_count() >= 1",
        "alone = torch.cuda.device_count() == 1",
        "if torch.cuda.device_count() != 1:\n        print('several')",
        "if debug():\n        assert torch.cuda.device_count() == 1",
    ],
)
def test_a_program_that_asks_for_the_gpus_alone(line: str) -> None:
    assert findings_of(LoadOnOneGpu, STARTED, {"start.py": START.format(line)})
    other = START.format("assert torch.cuda.device_count() == 1")
    assert findings_of(LoadOnOneGpu, TRAIN, {"other.py": other})  # of another program


BY_FILE = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, optimizer, args, gpu):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
    if args.folder:
        state = torch.load(os.path.join(args.folder, "steps", "optimizer.pt"))
        optimizer.load_state_dict(state)
    for epoch in range(9):
        if dist.get_rank() == 0:
            torch.save(optimizer.state_dict(), os.path.join(args.out, "optimizer.pt"))
"""
LOAD = 'torch.load(os.path.join(args.folder, "steps", "optimizer.pt"))'
SAVE = 'torch.save(optimizer.state_dict(), os.path.join(args.out, "optimizer.pt"))'


@pytest.mark.parametrize(
    "load",
    [
        LOAD,
        'torch.load(args.folder + "/optimizer.pt")',
        'torch.load(f"{args.folder}/optimizer.pt")',
        'torch.load(args.folder / "optimizer.pt")',
    ],
)
def test_a_file_that_is_an_optimizers_state(load: str) -> None:
    before = BY_FILE.replace(LOAD, load)
    check_transformed(LoadOnOneGpu, before, before.replace(load, f'{load[:-1]}, map_location="cpu")'))


def test_a_file_by_a_name_and_a_save_in_another_file() -> None:
    before = BY_FILE.replace(SAVE, "save(optimizer, args.out)").replace(LOAD, "torch.load(path)")
    before = before.replace("        state =", '        path = os.path.join(args.folder, "optimizer.pt")\n        state =')
    before = before.replace("import torch\n", "import torch\nfrom store import save\n", 1)
    other = f"import os\nimport torch\n\ndef save(optimizer, out):\n    {SAVE.replace('args.out', 'out')}\n"
    after = before.replace("torch.load(path)", 'torch.load(path, map_location="cpu")')
    check_transformed(LoadOnOneGpu, before, after, files={"store.py": other})
    check_nothing(LoadOnOneGpu, before, files={"store.py": other.replace('"optimizer.pt"', '"other.pt"')})


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("another file", '"steps", "optimizer.pt"', '"steps", "weights.pt"'),
        ("a name that is made up", 'os.path.join(args.folder, "steps", "optimizer.pt")', 'args.folder + "optimizer.pt"'),
        ("a model takes it", "        optimizer.load_state_dict(state)", "        model.load_state_dict(state)"),
        ("nothing of the optimizer is saved", "torch.save(optimizer.state_dict()", "torch.save(net.state_dict()"),
        ("it has a device", '"optimizer.pt"))\n        opt', '"optimizer.pt"), map_location="cpu")\n        opt'),
        ("weights of somebody else", "args.folder,", "args.pretrained,"),
        ("one rank loads", "    if args.folder:", "    if args.folder and dist.get_rank() == 0:"),
    ],
)
def test_files_that_are_not_shown_to_be_of_this_optimizer(what: str, old: str, new: str) -> None:
    assert old in BY_FILE
    check_nothing(LoadOnOneGpu, BY_FILE.replace(old, new, 1))


AGAIN = """        {first}
        model.load_state_dict(state["weights"])
        adam.load_state_dict(state["adam"])
    if args.resume:
        {second}
"""
FIRST = "state = torch.load(args.resume{where})"


def twice(second: str, first: str = "", where: str = "") -> str:
    head, _, rest = TRAIN.partition("        state = torch")
    added = AGAIN.format(first=FIRST.format(where=first), second=second.format(where=where))
    return head + added + rest[rest.index("    for epoch") :]


CPU = ', map_location="cpu"'


@pytest.mark.parametrize(
    "second",
    [
        'first = torch.load(args.resume{where})["epoch"] + 1',
        'first = torch.load(args.resume{where}).get("epoch", 0)',
        'again = torch.load(args.resume{where})\n        first = again["epoch"]',
    ],
)
def test_the_same_file_is_read_twice(second: str) -> None:
    after = twice(second, first=CPU, where=CPU)
    found = check_transformed(LoadOnOneGpu, twice(second), after)
    assert len(found) == 1 and "again" in found[0].evidence[-1].text


def test_what_is_read_of_the_file_again_counts() -> None:
    second = 'args.centers = torch.load(args.resume{where})["centers"]'
    check_transformed(LoadOnOneGpu, twice(second), twice(second, first=CPU, where=CPU), unsafe=True)
    average = 'ema.load_state_dict(torch.load(args.resume{where})["shadow"])'
    check_transformed(LoadOnOneGpu, twice(average), twice(average, first=CPU, where=CPU), unsafe=True)


@pytest.mark.parametrize(
    "second",
    [
        'first = torch.load(args.other)["epoch"]',  # another file
        'first = torch.load(args.resume, map_location=f"cuda:{{gpu}}")["epoch"]',
        'first = args.load(args.resume)["epoch"]',
        'read = lambda: 3\n\n    def other():\n        return torch.load(args.resume)["epoch"]',  # another function
    ],
)
def test_other_loads_stay(second: str) -> None:
    check_transformed(LoadOnOneGpu, twice(second), twice(second, first=CPU))


def test_two_loads_that_both_fill() -> None:
    second = 'adam.load_state_dict(torch.load(args.resume{where})["adam"])'
    source, after = twice(second), twice(second, first=CPU, where=CPU)
    assert len(check_transformed(LoadOnOneGpu, source, after)) == 2
