from __future__ import annotations

import pytest

from codemods.data_loading.same_random_numbers import SameRandomNumbers
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


"""
NOISE = "noise = torch.randn_like(x)"


def program(
    *before: str, draw: str = NOISE, seed: str = "torch.manual_seed(args.seed)", after: tuple[str, ...] = (), head: str = HEAD
) -> str:
    start = ("dist.init_process_group()", "rank = dist.get_rank()", *before, seed, "model = DDP(args.net)")
    loop = ("for x in args.loader:", f"    {draw}", "    model(x, noise).mean().backward()")
    return f"{head}def main(args):\n" + "".join(f"    {line}\n" for line in (*start, *after, *loop))


def test_example_of_the_page() -> None:
    sections = SameRandomNumbers.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(SameRandomNumbers, before, after, unsafe=True)


@pytest.mark.parametrize(
    "draw", ["noise = torch.rand(x.shape)", "noise = torch.randint(0, 9, (len(x),))", "noise = torch.randn(x.size(0), 1)"]
)
def test_numbers_for_each_sample(draw: str) -> None:
    after = ("torch.manual_seed(args.seed + dist.get_rank())",)
    check_transformed(SameRandomNumbers, program(draw=draw), program(draw=draw, after=after), unsafe=True)


@pytest.mark.parametrize(
    ("imports", "seed", "draw"),
    [("import torch as th", "th.manual_seed(args.seed)", "noise = th.randn_like(x)"),
     ("import torch as T", "T.random.manual_seed(args.seed)", "noise = T.randint(0, 9, (len(x),))"),
     ("from torch import manual_seed, rand", "manual_seed(args.seed)", "noise = rand(x.shape)"),
     ("from torch import manual_seed as fix, normal", "fix(args.seed)", "noise = normal(0.0, 1.0, size=(x.size(0), 1))")],
)  # fmt: skip
def test_torch_under_another_name(imports: str, seed: str, draw: str) -> None:
    head = HEAD.replace("import torch\n", f"{imports}\n", 1)
    check_told(SameRandomNumbers, program(seed=seed, draw=draw, head=head), reason="seed again behind the wrap")
    check_nothing(SameRandomNumbers, program(seed=seed.replace("args.seed", "args.seed + rank"), draw=draw, head=head))


def test_a_helper_that_seeds() -> None:
    head = HEAD + "def fix(number):\n    random.seed(number)\n    torch.manual_seed(number)\n\n\n"
    seeded = ("torch.manual_seed(args.seed + dist.get_rank())",)
    before, after = (program(seed="fix(args.seed)", head=head, after=lines) for lines in ((), seeded))
    check_transformed(SameRandomNumbers, before, after, unsafe=True)


def test_a_draw_in_a_helper() -> None:
    head = HEAD + "def noised(x):\n    return x + torch.randn_like(x)\n\n\n"
    assert findings_of(SameRandomNumbers, program(draw="noise = noised(x)", head=head))


def test_a_split_behind_the_wrap_is_told() -> None:
    source = program(after=("data = torch.utils.data.random_split(args.data, [9, 1])",))
    check_told(SameRandomNumbers, source, reason="seed again behind the wrap")


def test_accelerate_is_told_its_own_way() -> None:
    source = """\
        import torch
        from accelerate import Accelerator
        from accelerate.utils import set_seed

        def main(args, net, loader):
            accelerator = Accelerator()
            set_seed(args.seed)
            for x in loader:
                accelerator.backward(net(x + torch.randn_like(x)))
        """
    check_told(SameRandomNumbers, source, reason="device_specific=True")
    check_nothing(SameRandomNumbers, source.replace("args.seed)", "args.seed, device_specific=True)"))
    check_nothing(SameRandomNumbers, source.replace("args.seed)", "args.seed + accelerator.process_index)"))


MODULE = """\
import lightning.pytorch as pl
import torch


class Net(pl.LightningModule):
    def on_fit_start(self):
        self.stream = torch.Generator().manual_seed({seed})

    def training_step(self, batch, batch_idx):
        return self.net(batch + torch.randn(batch.shape, generator=self.stream))


trainer = pl.Trainer(devices=2, strategy="ddp")
"""


def test_a_generator_of_its_own() -> None:
    check_told(SameRandomNumbers, MODULE.format(seed="7"), reason="into the seed of the generator")
    check_nothing(SameRandomNumbers, MODULE.format(seed="7 + self.global_rank"))
    check_nothing(SameRandomNumbers, MODULE.format(seed="7").replace('devices=2, strategy="ddp"', ""))
    check_nothing(SameRandomNumbers, MODULE.format(seed="7").replace("training_step", "validation_step"))


TRANSFORM = (
    HEAD
    + """\
class Crop:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def __call__(self, x):
        return x[self.random.randint(0, 3):]


class Rows(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(self.rows[index])


def main(args):
    model = DDP(args.net)
    rows = Rows(Crop({seed}))
    for x in torch.utils.data.DataLoader(rows, sampler=torch.utils.data.DistributedSampler(rows)):
        model(x).mean().backward()
"""
)


def test_a_transform_with_a_generator_of_its_own() -> None:
    by_position = TRANSFORM.format(seed="seed=args.seed").replace("seed=args", "args")
    check_told(SameRandomNumbers, by_position, reason="the rank into its seed")
    check_nothing(SameRandomNumbers, TRANSFORM.format(seed="args.seed + dist.get_rank()"))
    check_nothing(SameRandomNumbers, TRANSFORM.format(seed="args.seed").replace(".backward()", ""))


@pytest.mark.parametrize(
    "seed",
    [
        "torch.manual_seed(args.seed + rank)",
        "torch.manual_seed(args.seed + dist.get_rank())",
        "torch.manual_seed(time.time_ns())",
        "random.seed(args.seed)",
        "numpy.random.seed(args.seed)",
        "args.fix(args.seed)",
        "stream = torch.Generator().manual_seed(args.seed)",
    ],
)
def test_seeds_that_are_fine(seed: str) -> None:
    check_nothing(SameRandomNumbers, program(seed=seed))


def test_a_second_seed_with_the_rank() -> None:
    check_nothing(SameRandomNumbers, program(after=("torch.manual_seed(args.seed + rank)",)))
    check_nothing(SameRandomNumbers, program("args.seed += rank"))
    check_nothing(SameRandomNumbers, program(seed="if rank == 0:\n        torch.manual_seed(1)"))


@pytest.mark.parametrize(
    "draw",
    [
        "noise = torch.rand(1)",
        "noise = random.choice(args.tasks)",
        "noise = torch.randperm(len(args.data))",
        "noise = torch.randn(x.shape, generator=args.stream)",
        "noise = x",
    ],
)
def test_draws_that_decide_over_no_sample(draw: str) -> None:
    check_nothing(SameRandomNumbers, program(draw=draw))


def test_draws_elsewhere() -> None:
    check_nothing(SameRandomNumbers, program(draw="noise = x", after=(NOISE.replace("x)", "args.x)"),)))
    evaluation = HEAD + "def evaluate(x):\n    return torch.randn_like(x)\n\n\n"
    check_nothing(SameRandomNumbers, program(draw="noise = evaluate(x)", head=evaluation))
    check_nothing(SameRandomNumbers, program().replace("DDP(args.net)", "args.net"))
    check_nothing(SameRandomNumbers, program(), path="tests/test_train.py")


def test_the_seed_of_the_parent_of_spawned_ranks() -> None:
    seeded = "\n\nif __name__ == '__main__':\n    torch.manual_seed(3)\n    START(main, nprocs=2)\n"
    head = HEAD.replace("import torch\n", "import torch\nimport torch.multiprocessing as mp\n", 1)
    source = program(seed="pass", head=head) + seeded
    check_nothing(SameRandomNumbers, source.replace("START", "mp.spawn"))


def test_the_seed_of_a_program_that_only_evaluates() -> None:
    seeds = "import torch\nimport torch.distributed as dist\nfrom train import main\n\ntorch.manual_seed(3)\n"
    files = {"train.py": program(seed="pass"), "eval_all.py": f"{seeds}main.check()\n"}
    check_nothing(SameRandomNumbers, files["eval_all.py"], files=files, path="eval_all.py")


MODEL = """\
class Diffusion(torch.nn.Module):
    def forward(self, x):
        b = len(x)
        {draw}
        return self.net(x, t)


"""


def test_the_time_of_each_sample_in_a_forward() -> None:
    head = HEAD + MODEL.format(draw="t = torch.randint(0, self.num_timesteps, (b,))")
    found = findings_of(SameRandomNumbers, program(draw="noise = 0", head=head))
    assert found and "num_timesteps" in found[0].message
    for other in ("t = torch.randn_like(x)", "base = torch.randint(2, 8, (b,))", "t = torch.randint(0, self.timesteps, (1,))"):
        check_nothing(SameRandomNumbers, program(draw="noise = 0", head=HEAD + MODEL.format(draw=other)))


def test_a_batch_size_of_any_name() -> None:
    assert findings_of(SameRandomNumbers, program(draw="noise = torch.randn((args.train_batch_size, 4))"))


CLIPS = """\
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed


class Clips(torch.utils.data.Dataset):
    def __init__(self, folders):
        self.folders = folders

    def __getitem__(self, index):
        folder = {pick}
        return torch.load(folder)


def main(args):
    accelerator = Accelerator()
    set_seed(args.seed{more})
    loader = accelerator.prepare(torch.utils.data.DataLoader(Clips(args.folders), num_workers=4))
    for x in loader:
        accelerator.backward(args.net(x))
"""


@pytest.mark.parametrize("pick", ["random.choice(self.folders)", "self.folders[random.randint(0, len(self.folders) - 1)]"])
def test_a_data_set_that_draws_its_samples_is_told(pick: str) -> None:
    found = check_told(SameRandomNumbers, CLIPS.format(pick=pick, more=""), reason="take the sample of the index")
    assert found.span.line == 13


@pytest.mark.parametrize(
    ("pick", "more"),
    [
        ("random.choice(self.folders)", ", device_specific=True"),
        ("self.folders[index]", ""),
        ("random.choice(self.folders) if index < 0 else self.folders[index]", ""),
        ("self.folders[0] if random.randint(0, 1) else self.folders[1]", ""),
    ],
)
def test_data_sets_that_take_the_index_or_draw_differently(pick: str, more: str) -> None:
    check_nothing(SameRandomNumbers, CLIPS.format(pick=pick, more=more))


def test_data_sets_of_an_evaluation_and_workers_with_seeds_of_their_own() -> None:
    source = CLIPS.format(pick="random.choice(self.folders)", more="")
    check_nothing(SameRandomNumbers, source.replace("Clips", "ValClips"))
    check_nothing(SameRandomNumbers, source.replace("num_workers=4", "num_workers=4, worker_init_fn=args.seeded"))
    check_nothing(SameRandomNumbers, source.replace("set_seed(args.seed)", "pass"))


LIGHTNING = CLIPS.replace("from accelerate.utils import set_seed", "import lightning.pytorch as pl").replace(
    "set_seed(args.seed{more})", "{more}"
)


@pytest.mark.parametrize("workers", ["", ", workers=False"])
def test_a_seed_of_lightning_that_workers_have_alike(workers: str) -> None:
    source = LIGHTNING.format(pick="random.choice(self.folders)", more=f"pl.seed_everything(args.seed{workers})")
    check_told(SameRandomNumbers, source, reason="take the sample of the index")


def test_workers_that_lightning_seeds_by_the_rank() -> None:
    source = LIGHTNING.format(pick="random.choice(self.folders)", more="pl.seed_everything(args.seed, workers=True)")
    check_nothing(SameRandomNumbers, source)


def test_a_seed_that_no_configuration_sets() -> None:
    source = CLIPS.format(pick="random.choice(self.folders)", more="")
    source = source.replace("    set_seed(args.seed)", '    if args.get("seed"):\n        set_seed(args.seed)')
    for line in ("# seed: 12\n", "seed: null\n", "seed:\n"):
        check_nothing(SameRandomNumbers, source, files={"configs/run.yaml": line})
    for line in ("seed: 12\n", "# seed: 12\nseed: 13\n"):
        assert findings_of(SameRandomNumbers, source, {"configs/run.yaml": line})


TOOLS = "import torch\n\n\ndef fix_seed(number, quick=True):\n{}    torch.manual_seed(number)\n"


def handed(call: str, *, inside: str = "", other: str = "") -> list[int]:
    """The lines of the findings where the seed is handed to a function of another file."""
    source = program(seed=call, head=HEAD.replace("import torch\n", "import torch\nfrom tools import fix_seed\n", 1))
    files = {"train.py": source, "tools.py": TOOLS.format(inside), **({"other.py": other} if other else {})}
    assert not findings_of(SameRandomNumbers, files["tools.py"], path="tools.py", files=files)
    return [f.span.line for f in findings_of(SameRandomNumbers, source, path="train.py", files=files)]


@pytest.mark.parametrize("call", ["fix_seed(args.seed)", "fix_seed(number=args.seed, quick=False)", "fix_seed(5)"])
def test_a_seed_that_is_handed_on_is_told_where_it_is_given(call: str) -> None:
    assert handed(call) == [12]


def test_seeds_that_are_handed_on_with_the_rank() -> None:
    assert not handed("fix_seed(args.seed + rank)")
    assert not handed("fix_seed(args.seed)", inside="    number = number + torch.distributed.get_rank()\n")


def test_the_seed_of_another_program_says_nothing_of_this_one() -> None:
    other = "import torch.distributed as dist\nfrom tools import fix_seed\n\n\ndef main():\n    fix_seed(dist.get_rank())\n"
    assert handed("fix_seed(args.seed)", other=other) == [12]


def test_a_playground() -> None:
    files = {"playground.py": "import torch\nimport train\n\ntorch.manual_seed(42)\n", "train.py": program(seed="pass")}
    assert not findings_of(SameRandomNumbers, files["playground.py"], path="playground.py", files=files)


PROCESS = """import torch


class Process:
    def {}(self, model, x):
        noise = torch.randn_like(x)
        return model(x + noise, noise)
"""
SPACED = "from process import Process\n\n\nclass Spaced(Process):\n    def __init__(self, steps):\n        self.steps = steps\n"


def over_another_file(method: str = "training_losses", *, imports: str = "import spaced", loop: str = "") -> list[int]:
    """The lines of the findings where the file that draws is imported by one that the training imports."""
    head = HEAD.replace("import torch\n", f"{imports}\nimport torch\n", 1)
    source = program(draw="loss = args.process.training_losses(model, x)", head=head)
    source = loop or source.replace("    model(x, noise).mean().backward()", "    loss.mean().backward()")
    files = {"train.py": source, "spaced.py": SPACED, "process.py": PROCESS.format(method)}
    return [f.span.line for f in findings_of(SameRandomNumbers, source, path="train.py", files=files)]


def test_draws_of_a_file_that_is_imported_over_another() -> None:
    assert over_another_file()


def test_draws_that_the_training_does_not_come_to() -> None:
    assert not over_another_file("sample")
    assert not over_another_file(imports="import spaces")
    alone = program(seed="torch.manual_seed(args.seed + rank)", draw="loss = args.process.training_losses(model, x)")
    assert not over_another_file(loop=alone.replace("import torch\n", "from spaced import Spaced\nimport torch\n", 1))


PREPARED = """\
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed


def noised(x):
    return x + torch.randn_like(x)


def main(args, net, loader):
    accelerator = Accelerator()
    set_seed(args.seed)

    @torch.no_grad()
    def prepare(x):
        return noised(x)

    for x in loader:
        x = prepare(x)
        accelerator.backward(net(x))
"""


def test_a_helper_without_gradients_that_prepares_each_batch() -> None:
    check_told(SameRandomNumbers, PREPARED, reason="device_specific=True")
    sometimes = "        if args.draw:\n            y = prepare(x)"
    check_nothing(SameRandomNumbers, PREPARED.replace("        x = prepare(x)", sometimes))
    check_nothing(SameRandomNumbers, PREPARED.replace("prepare", "sample"))


def test_a_seed_of_the_project_s_own_under_accelerate() -> None:
    files = {"tools.py": "import torch\n\n\ndef set_seed(seed):\n    torch.manual_seed(seed)\n"}
    source = PREPARED.replace("from accelerate.utils import", "from tools import")
    check_told(SameRandomNumbers, source, files=files, reason="accelerator.process_index")


def test_a_helper_that_nobody_calls() -> None:
    called = PREPARED.replace("    set_seed(args.seed)\n", "    fix(args.seed)\n").replace(
        "def noised", "def fix(seed):\n    set_seed(seed)\n\n\ndef noised"
    )
    assert findings_of(SameRandomNumbers, called)
    check_nothing(SameRandomNumbers, called.replace("    fix(args.seed)\n", ""))


def test_a_script_that_scores_images() -> None:
    score = "import torch\nimport train\n\n\ndef score(seed):\n    torch.manual_seed(seed)\n\n\nscore(1)\n"
    found = findings_of(SameRandomNumbers, score, files={"train.py": program()}, path="compute_metrics.py")
    assert not found


FIXED = "import random\n\nimport torch\n\n\ndef fix_seed(number):\n    random.seed(number)\n    torch.manual_seed(number)\n"


def test_the_advice_is_that_of_the_framework() -> None:
    tools = HEAD.replace("import torch\n", "import torch\nfrom tools import fix_seed\n", 1)
    helper = program(seed="fix_seed(args.seed)", head=tools)
    check_told(SameRandomNumbers, helper, files={"tools.py": FIXED}, reason="torch.manual_seed(seed + dist.get_rank())")
    head = HEAD.replace("import torch\n", "import torch\nfrom transformers import TrainingArguments, set_seed\n", 1)
    arguments = program("training_args = TrainingArguments('out')", seed="set_seed(training_args.seed)", head=head)
    check_told(SameRandomNumbers, arguments, reason="training_args.process_index")
    alone = program(seed="set_seed(args.seed)", head=head.replace("TrainingArguments, ", ""))
    check_told(SameRandomNumbers, alone, reason="torch.manual_seed(seed + dist.get_rank())")


STEPS = """\
import torch


def epoch(net, loader):
    for x in loader:
        batch_size = len(x)
        noise = torch.randn(batch_size, 100).to(x.device)
        net(x, noise).mean().backward()
"""
MODELS = """\
import torch
import torch.distributed as dist


def made(net):
    return {}
"""
WRAPPED = "torch.nn.parallel.DistributedDataParallel(net)"


def in_three_files(seed: str, *, made: str = WRAPPED, more: str = "") -> list[int]:
    """The lines of the findings where one file seeds, one wraps the model and a third draws."""
    main = f"import torch\nfrom models import made\nfrom steps import epoch\n\n\ndef main(args):\n    {seed}\n"
    main += f"    epoch(made(args.net), args.loader)\n{more}"
    files = {"main.py": main, "models.py": MODELS.format(made), "steps.py": STEPS}
    return [f.span.line for f in findings_of(SameRandomNumbers, main, path="main.py", files=files)]


@pytest.mark.parametrize("seed", ["torch.manual_seed(args.seed)", "torch.random.manual_seed(args.seed)"])
def test_seed_wrap_and_draw_in_files_of_their_own(seed: str) -> None:
    assert in_three_files(seed) == [7]


def test_a_model_that_no_file_of_the_program_wraps() -> None:
    assert not in_three_files("torch.manual_seed(args.seed)", made="net")
    assert not in_three_files("torch.manual_seed(args.seed)", made="torch.nn.DataParallel(net)")


def test_a_seed_with_the_rank_in_files_of_their_own() -> None:
    assert not in_three_files("torch.random.manual_seed(args.seed + torch.distributed.get_rank())")


def test_the_generator_of_a_shuffle_has_the_rank() -> None:
    order = "    order = torch.Generator().manual_seed(args.seed + torch.distributed.get_rank())\n"
    assert in_three_files("torch.manual_seed(args.seed)", more=order) == [7]


def test_a_second_seed_of_the_process_has_the_rank() -> None:
    second = "    torch.manual_seed(args.seed + torch.distributed.get_rank())\n"
    assert not in_three_files("torch.manual_seed(args.seed)", more=second)


def test_nothing_of_a_seed_of_the_loaders_workers() -> None:
    seeding = "def seed_worker(worker_id):\n    torch.manual_seed(worker_id)\n    random.seed(worker_id)\n\n\n"
    loader = ("loader = torch.utils.data.DataLoader(args.data, worker_init_fn=seed_worker)",)
    check_nothing(SameRandomNumbers, program(*loader, seed="pass", head=HEAD + seeding))
    other = seeding.replace("seed_worker(worker_id)", "fix(worker_id)").replace("worker_id", "number")
    assert findings_of(SameRandomNumbers, program(seed="fix(args.seed)", head=HEAD + other))


def test_nothing_where_the_function_puts_the_numbers_back() -> None:
    helper = (
        "def masks(number, n):\n    kept = torch.get_rng_state()\n    torch.manual_seed(number)\n    drawn = torch.rand(n)\n"
        "    torch.set_rng_state(kept)\n    return drawn\n\n\n"
    )
    check_nothing(SameRandomNumbers, program(seed="masks(3, 4)", head=HEAD + helper))
    left = helper.replace("    torch.set_rng_state(kept)\n", "")
    assert findings_of(SameRandomNumbers, program(seed="masks(3, 4)", head=HEAD + left))


OPTION = '''

def options():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default={})
    return parser.parse_args()
'''


@pytest.mark.parametrize("test", ["if args.seed is not None:", "if args.seed:"])
def test_a_seed_that_has_to_be_asked_for(test: str) -> None:
    source = program(test, seed="    torch.manual_seed(args.seed)")
    found = check_told(SameRandomNumbers, source + OPTION.format("None"), reason="seed again behind the wrap")
    assert found.message.startswith("with `--seed` the seed is the same") and "without it each rank" in found.message


@pytest.mark.parametrize(
    ("default", "files"), [("7", {}), ("None", {"run.sh": "torchrun --nproc_per_node=2 module.py --seed 1\n"})]
)
def test_a_seed_that_is_given(default: str, files: dict[str, str]) -> None:
    source = program("if args.seed is not None:", seed="    torch.manual_seed(args.seed)") + OPTION.format(default)
    found = check_told(SameRandomNumbers, source, reason="seed again behind the wrap", files=files)
    assert found.message.startswith("the seed is the same")


# What the repository's commands start as one process

ALONE = program() + "\n\nif __name__ == '__main__':\n    main(args)\n"


@pytest.mark.parametrize(
    "commands",
    [
        "CUDA_VISIBLE_DEVICES=0 accelerate launch train.py --seed 1\n",
        "```\nCUDA_VISIBLE_DEVICES=3 \\\n  python train.py\n```\n\ntorchrun --nproc_per_node=1 train.py\n",
        "accelerate launch --num_processes=1 train.py\n\ntorchrun --nproc_per_node=4 other.py\n",
    ],
)
def test_a_script_that_every_command_starts_as_one_process(commands: str) -> None:
    check_nothing(SameRandomNumbers, ALONE, files={"README.md": commands}, path="train.py")


@pytest.mark.parametrize(
    "commands",
    [
        "CUDA_VISIBLE_DEVICES=0 accelerate launch train.py\n\naccelerate launch train.py\n",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py\n",
        "CUDA_VISIBLE_DEVICES=0 python other.py\n",
        "torchrun --nproc_per_node=1 train.py\n\ntorchrun --nproc_per_node=8 $SCRIPT\n",
    ],
)
def test_a_script_that_some_command_starts_on_several(commands: str) -> None:
    assert len(findings_of(SameRandomNumbers, ALONE, files={"README.md": commands}, path="train.py")) == 1


PARSER = """\
import argparse


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument('--net')
    parser.add_argument('--loader')
    {}
    return parser.parse_args()
"""
NO_DEFAULT = "parser.add_argument('--seed', type=int, default=None)"
FIELDS = "from typing import Optional\nfrom transformers import HfArgumentParser\n\n\nclass Mine:\n    seed: Optional[int] = {}\n"


SEED, OTHERS = "    torch.manual_seed(args.seed)", {"show.sh": "python show.py --seed 1\n"}


@pytest.mark.parametrize(
    ("test", "seed", "parser", "files"),
    [
        ("if args.seed is not None:", SEED, PARSER.format(NO_DEFAULT), {}),
        ("if args.seed is not None:", SEED, FIELDS.format("None"), {}),
        ("if args.seed is not None:", SEED, FIELDS.format("field(default=None)"), {}),
        ("if args.fixed:", "    torch.manual_seed(3)", PARSER.format("parser.add_argument('--fixed', action='store_true')"), {}),
        ("if args.seed:", SEED, PARSER.format(NO_DEFAULT), OTHERS),  # a command of another script
        ("if args.seed:", SEED, PARSER.format(NO_DEFAULT), {"a.sh": "torchrun module.py --seed-of-it 1\n"}),  # another option
    ],
)
def test_a_seed_whose_option_stands_in_another_file(test: str, seed: str, parser: str, files: dict[str, str]) -> None:
    source = f"from settings import *\n{program(test, seed=seed)}\n\nif __name__ == '__main__':\n    main(options())\n"
    found = check_told(SameRandomNumbers, source, reason="seed again behind the wrap", files={"settings.py": parser, **files})
    assert found.message.startswith("with `--") and "without it each rank draws its own" in found.message


@pytest.mark.parametrize(
    ("parser", "files"),
    [
        (PARSER.format("parser.add_argument('--seed', type=int, default=7)"), {}),
        (PARSER.format(f"{NO_DEFAULT}\n    parser.add_argument('--seed', default=3)"), {}),  # two parsers
        (PARSER.format("parser.add_argument('--seed', type=int, required=True)"), {}),
        (FIELDS.format("7"), {}),
        (PARSER.format(NO_DEFAULT), {"run.sh": "torchrun --nproc_per_node=2 module.py --seed 1\n"}),
    ],
)
def test_a_seed_that_another_file_gives(parser: str, files: dict[str, str]) -> None:
    source = "from settings import *\n" + program("if args.seed is not None:", seed="    torch.manual_seed(args.seed)")
    source += "\n\nif __name__ == '__main__':\n    main(options())\n"
    found = check_told(SameRandomNumbers, source, reason="seed again behind the wrap", files={"settings.py": parser, **files})
    assert found.message.startswith("the seed is the same")


def test_a_draw_in_a_function_that_nothing_calls() -> None:
    head = HEAD + "def noisy(x):\n    return x + torch.randn_like(x)\n\n\n"
    old = "def old_epoch(model, loader):\n    for x in loader:\n        model(noisy(x)).mean().backward()\n\n\n"
    ends = "\n\nif __name__ == '__main__':\n    main(options())\n"
    unused = program(draw="noise = x", head=head + old) + ends
    check_nothing(SameRandomNumbers, unused)
    assert findings_of(SameRandomNumbers, program(draw="noise = noisy(x)", head=head) + ends)


PL_HEAD = "import pytorch_lightning as pl\nimport torch\n\n\n"
DIFFUSING = (
    PL_HEAD + "def either(a, b):\n    return a if a is not None else b\n\n\nclass Diffusing(pl.LightningModule):\n"
    "    def training_step(self, batch, i):\n        noise = torch.randn_like(batch)\n"
    "        return self.net(batch + noise).mean()\n"
)
CODING = (
    "class Coding(pl.LightningModule):\n    def __init__(self{given}):\n        super().__init__()\n"
    "        self.part = {part}\n\n"
    "    def training_step(self, batch, i):\n        return self.part(batch).mean()\n\n\n"
)


def coder(taken: str, *, part: str = "torch.nn.Linear(1, 1)", given: str = "", made: str = "Coding()") -> str:
    """A script that imports one name of the file with the diffusion, and fits a model."""
    head = PL_HEAD.replace("\n\n\n", f"\nfrom diffusing import {taken}\n\n\n") + CODING.format(part=part, given=given)
    fit = f"    pl.Trainer(devices=4, strategy='ddp').fit({made})\n"
    head += "def main(cfg, other):\n    pl.seed_everything(cfg.seed)\n"
    return f"{head}{fit}\n\nif __name__ == '__main__':\n    main(None, None)\n"


DIFFUSER = (
    "import pytorch_lightning as pl\nfrom diffusing import Diffusing\n\n\ndef main(cfg):\n"
    "    pl.Trainer(devices=4, strategy='ddp').fit(Diffusing())\n\n\nif __name__ == '__main__':\n    main(None)\n"
)


def test_a_class_that_another_program_makes() -> None:
    files = {"diffusing.py": DIFFUSING, "diffuse.py": DIFFUSER}
    check_nothing(SameRandomNumbers, coder("either", given=", net=None"), files=files)
    in_notebook = {**files, "look.ipynb": '{"cells": [{"cell_type": "code", "source": ["Diffusing()"], "metadata": {}}]}'}
    check_nothing(SameRandomNumbers, coder("either", given=", net=None"), files=in_notebook)


@pytest.mark.parametrize(
    ("taken", "part", "made"),
    [("Diffusing", "torch.nn.Linear(1, 1)", "Diffusing()"), ("Diffusing", "Diffusing()", "Coding()")],
)
def test_a_class_that_the_program_makes(taken: str, part: str, made: str) -> None:
    files = {"diffusing.py": DIFFUSING, "diffuse.py": DIFFUSER}
    check_told(SameRandomNumbers, coder(taken, part=part, made=made), files=files, reason="on_fit_start")


def test_a_class_that_a_setting_names_is_not_the_model_that_is_fitted() -> None:
    files = {"diffusing.py": DIFFUSING, "conf.yaml": "model:\n  _target_: diffusing.Diffusing\n"}
    check_nothing(SameRandomNumbers, coder("either"), files=files)
    built = coder("either", part="cfg.part", given=", cfg=None", made="Coding(other)")
    check_told(SameRandomNumbers, built, files=files, reason="on_fit_start")
