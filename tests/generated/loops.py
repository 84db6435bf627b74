"""Programs with a training loop of their own: torch's DDP under torchrun or `mp.spawn`, and Accelerate."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator

from tests.generated import texts
from tests.generated.records import Holes, Program, Shape, filled, marked

STARTS = ("torchrun", "torchrun_shell", "spawn")
SETUPS = ("main", "helper", "class")
RANKS = ("variable", "argument", "attribute", "property", "environment", "function")
PLACES = ("function", "method", "file", "try", "with", "profiled")


def shapes() -> Iterator[Shape]:
    for start, setup, rank, place in itertools.product(STARTS, SETUPS, RANKS, PLACES):
        if (start, rank) != ("spawn", "environment"):
            yield Shape("raw", start, setup, rank, place)
    for rank, place in itertools.product(("variable", "argument", "attribute"), PLACES):
        yield Shape("accelerate", "launch", "main", rank, place)


def program(shape: Shape, holes: Holes) -> Program:
    accelerate = shape.frame == "accelerate"
    names = ["args", "model", "loader", "val_loader", "optimizer", *([] if accelerate else ["sampler", "device"])]
    names += [x for x, wanted in (("rank", shape.rank == "argument"), ("accelerator", accelerate)) if wanted]
    holes = {**(_accelerate_holes() if accelerate else _raw_holes()), **holes}
    imports = _imports(shape)
    loop, call = _loop(shape, names, holes)
    helpers = filled("<helpers>", holes, _words(shape, "", main=True))
    main = _main(shape, names, holes, call)
    own = filled("<imports>", holes, {})
    if shape.place == "file":
        files = {"train.py": imports + "from engine import train\n" + own + texts.NET + helpers + main}
        files["engine.py"] = imports + own + "\n\n" + helpers + loop
    else:
        files = {"train.py": imports + own + texts.NET + helpers + loop + main}
    if not accelerate:
        spawn = shape.start == "spawn"
        files["distributed.py"] = (texts.ENV_OF_SPAWN + texts.PROCESSES_OF_SPAWN) if spawn else (texts.ENV + texts.PROCESSES)
    return marked(files | _launch(shape))


def _raw_holes() -> Holes:
    return {
        "data": texts.DATA,
        "held_out": texts.HELD_OUT,
        "wrap": texts.WRAP,
        "set_epoch": "$sampler.set_epoch(epoch)",
        "batch": "x, y = x.to($device), y.to($device)",
        "backward": "loss.backward()",
        "arguments": "args = parser.parse_args()",
        "end": "dist.destroy_process_group()",
    }


def _accelerate_holes() -> Holes:
    made = {
        "data": texts.ACCELERATE_DATA,
        "held_out": texts.ACCELERATE_HELD_OUT,
        "wrap": texts.ACCELERATE_WRAP,
        "backward": "$accelerator.backward(loss)",
        "batch": "",
    }
    return made | {"arguments": "args = parser.parse_args()"}


def _imports(shape: Shape) -> str:
    if shape.frame == "accelerate":
        kept = [line for line in texts.IMPORTS.splitlines() if "ist" not in line or "argparse" in line]
        return "\n".join(kept) + "\nfrom accelerate import Accelerator\n"
    names = {"function": "get_rank, is_main_process", "property": "Environment"}.get(shape.rank, "")
    wanted = [
        n
        for n in (
            names,
            {"helper": "setup_worker" if shape.start == "spawn" else "setup_distributed", "class": "Processes"}.get(
                shape.setup, ""
            ),
        )
        if n
    ]
    return texts.IMPORTS + (f"from distributed import {', '.join(wanted)}\n" if wanted else "")


def _words(shape: Shape, own: str, *, main: bool) -> dict[str, str]:
    """What the words of the holes are called here; `own` is `self.` in a method."""
    words = {n: own + n for n in ("args", "model", "loader", "val_loader", "optimizer", "sampler", "device", "accelerator")}
    if shape.frame == "accelerate":
        words |= {"first": f"{own}accelerator.is_main_process", "rank": f"{own}accelerator.process_index"}
        words |= {"world": f"{own}accelerator.num_processes", "wait": f"{own}accelerator.wait_for_everyone()"}
        words |= {"reduce": f"total = {own}accelerator.reduce(total)", "inner": f"{own}accelerator.unwrap_model({own}model)"}
        words |= {"device": f"{own}accelerator.device"}
        if shape.rank in ("variable", "argument") and not main:
            name = own + "rank" if shape.rank == "argument" else "rank"
            words |= {"first": f"{name} == 0", "rank": name}
        return words
    rank = {
        "argument": "rank" if main else own + "rank",
        "attribute": "args.rank" if main else own + ("rank" if own else "args.rank"),
        "property": "environment.rank",
        "function": "get_rank()",
    }.get(shape.rank, "rank")
    first = {"property": "environment.is_main", "function": "is_main_process()"}.get(shape.rank, f"{rank} == 0")
    words |= {"rank": rank, "first": first, "world": "dist.get_world_size()", "wait": "dist.barrier()"}
    return words | {"reduce": "dist.all_reduce(total)", "inner": f"{own}model.module"}


def _rank_lines(shape: Shape, *, main: bool) -> str:
    """What binds the rank at the head of a function."""
    if shape.frame == "accelerate":
        binding = ("variable", "argument") if main else ("variable",)
        return "rank = accelerator.process_index\n" if shape.rank in binding else ""
    rank = "rank" if shape.start == "spawn" else "dist.get_rank()"
    by_main = {"argument": f"rank = {rank}\n", "attribute": f"args.rank = {rank}\n"}
    everywhere = {
        "variable": "rank = dist.get_rank()\n",
        "property": "environment = Environment()\n",
        "environment": 'rank = int(os.environ["RANK"])\n',
    }
    text = everywhere.get(shape.rank, by_main.get(shape.rank, "") if main else "")
    return "" if text == "rank = rank\n" else text


def _loop(shape: Shape, names: list[str], holes: Holes) -> tuple[str, str]:
    """The text of the loop, and the statement that starts it."""
    own = "self." if shape.place == "method" else ""
    head = _rank_lines(shape, main=False)
    if own:
        head = head.replace("accelerator.", "self.accelerator.")
    body = head + filled(texts.LOOP, holes, _words(shape, own, main=False))
    around = {
        "try": ("try:\n", "finally:\n    torch.cuda.empty_cache()\n"),
        "with": ("with torch.autograd.set_detect_anomaly(True):\n", ""),
        "profiled": ("with torch.profiler.profile() as profiler:\n", ""),
    }.get(shape.place)
    if around:
        body = around[0] + textwrap.indent(body, "    ") + around[1]
    if not own:
        return f"def train({', '.join(names)}):\n{textwrap.indent(body, '    ')}\n\n", f"train({', '.join(names)})"
    sets = "".join(f"        self.{n} = {n}\n" for n in names)
    if shape.rank == "attribute" and shape.frame == "raw":
        sets += "        self.rank = dist.get_rank()\n"
    text = f"class Training:\n    def __init__(self, {', '.join(names)}):\n{sets}\n    def fit(self):\n"
    return f"{text}{textwrap.indent(body, '        ')}\n\n", f"Training({', '.join(names)}).fit()"


def _main(shape: Shape, names: list[str], holes: Holes, call: str) -> str:
    words = _words(shape, "", main=True)
    own_start = "accelerator = Accelerator()\n"
    start = own_start if shape.frame == "accelerate" else texts.SETUP[shape.start.split("_")[0], shape.setup]
    body = (
        start
        + _rank_lines(shape, main=True)
        + filled(f"<data>\n<held_out>\n<wrap>\n<main>\n{call}\n<behind>\n<end>\n", holes, words)
    )
    arguments = texts.ARGUMENTS + filled("<arguments>", holes, words)
    if shape.start == "spawn":
        worker = f"def worker(rank, args):\n{textwrap.indent(body, '    ')}\n\n"
        spawn = "mp.spawn(worker, nprocs=args.gpus, args=(args,))\n"
        main = "def main():\n" + textwrap.indent(arguments + spawn, "    ")
        return f'{worker}{main}\n\nif __name__ == "__main__":\n    main()\n'
    main = "def main():\n" + textwrap.indent(arguments + body, "    ")
    return f'{main}\n\nif __name__ == "__main__":\n    main()\n'


def _launch(shape: Shape) -> dict[str, str]:
    return {
        "torchrun": {"README.md": "# Train\n\n```bash\ntorchrun --nproc_per_node=4 train.py --epochs 20\n```\n"},
        "torchrun_shell": {"run.sh": "#!/bin/bash\ntorchrun --nproc_per_node=4 train.py --epochs 20\n"},
        "launch": {"README.md": "# Train\n\n```bash\naccelerate launch --multi_gpu --num_processes 4 train.py\n```\n"},
    }.get(shape.start, {})
