"""DDP306: a collective where there may be no process group."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.sync.collective_without_group import CollectiveWithoutGroup
from ddpfix.testing import MAIN, check_nothing, check_told, check_transformed, findings_of

RULE = CollectiveWithoutGroup
DIST = "import torch\nimport torch.distributed as dist\n\n"
START = "    if args.distributed:\n        dist.init_process_group('nccl')\n"
HELPER = (
    "import torch.distributed as dist\n\ndef get_rank():\n    if not dist.is_initialized():\n        return 0\n"
    "    return dist.get_rank()\n"
)


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


def test_the_end_of_a_script() -> None:
    before = """
    import os
    import torch
    from torch.distributed import destroy_process_group, init_process_group

    ddp = int(os.environ.get("RANK", -1)) != -1
    if ddp:
        init_process_group("nccl")
    train()
    destroy_process_group()
    """
    end = "    if torch.distributed.is_initialized():\n        destroy_process_group()\n"
    check_transformed(RULE, before, before.replace("    destroy_process_group()\n", end))


def test_a_barrier() -> None:
    before = f"{DIST}def main(args):\n{START}    train()\n    dist.barrier()\n"
    check_transformed(RULE, before, before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()"))


def test_another_collective_is_unsafe() -> None:
    before = f"{DIST}def main(args, loss):\n{START}    dist.all_reduce(loss)\n"
    after = before.replace("    dist.all_reduce(loss)", "    if dist.is_initialized():\n        dist.all_reduce(loss)")
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize("call", ["all_gather(parts, loss)", "all_gather_object(parts, loss)"])
def test_what_fills_a_list_is_told(call: str) -> None:
    fill = f"    parts = [torch.empty_like(loss) for _ in range(args.size)]\n    dist.{call}\n    return torch.cat(parts)\n"
    reason = (
        "under a test alone, what it fills would stay as it was made: put the own values there in an `else`"
    )
    check_told(RULE, f"{DIST}def main(args, loss):\n{START}{fill}", reason=reason)


@pytest.mark.parametrize("asked", ["get_world_size", "get_rank"])
def test_a_function_that_asks_torch_itself_does_not_run_without_a_group(asked: str) -> None:
    body = "    size = dist.{}()\n    if get_rank() == 0:\n        show(loss)\n    dist.all_reduce(loss)\n    loss /= size\n"
    before = f"{DIST}from tools import get_rank\n\ndef mean(loss):\n{body.format(asked)}"
    check_nothing(RULE, before, files={"tools.py": HELPER})
    known = before.replace(f"dist.{asked}()", "1")
    assert findings_of(RULE, known, {"tools.py": HELPER})


def test_a_helper_that_works_without_a_group() -> None:
    head = f"{DIST}from tools import get_rank\n\ndef validate(results):\n    rank = get_rank()\n"
    before = f"{head}    for r in results:\n        dist.reduce(r, 0)\n"
    after = before.replace("        dist.reduce(r, 0)", "        if dist.is_initialized():\n            dist.reduce(r, 0)")
    fixed = check_transformed(RULE, before, after, files={"tools.py": HELPER}, unsafe=True)
    assert "helper" in fixed[0].reason


@pytest.mark.parametrize("wrapper", ["FullyShardedDataParallel", "DistributedDataParallel"])
def test_a_model_that_is_wrapped_above_needs_the_group_first(wrapper: str) -> None:
    where = "torch.distributed.fsdp" if wrapper.startswith("Fully") else "torch.nn.parallel"
    head = f"{DIST}from {where} import {wrapper} as Wrapper\nfrom tools import get_rank\n\ndef validate(net, results):\n"
    body = "    rank = get_rank()\n    net = Wrapper(net)\n    for r in results:\n        dist.reduce(r, 0)\n"
    check_nothing(RULE, f"{head}{body}", files={"tools.py": HELPER})
    assert findings_of(RULE, f"{head}{body.replace('    net = Wrapper(net)', '    net = net.eval()')}", {"tools.py": HELPER})
    # Below the collective, the program has ended already.
    late = body.replace("    net = Wrapper(net)\n", "") + "    net = Wrapper(net)\n"
    late = late.replace("    net = Wrapper", "    if rank:\n        net = Wrapper")
    assert findings_of(RULE, f"{head}{late}", {"tools.py": HELPER})


def test_the_size_that_the_helper_of_mmcv_gives() -> None:
    head = f"from mmcv.runner import get_dist_info\n{DIST}def validate(ws):\n    "
    check_nothing(RULE, f"{head}rank, ws = get_dist_info()\n    if ws > 1:\n        dist.barrier()\n")
    assert findings_of(RULE, f"{head}rank, n = get_dist_info()\n    if ws > 1:\n        dist.barrier()\n")


def test_the_helper_of_mmcv() -> None:
    head = f"from mmcv.runner import get_dist_info\n{DIST}def validate():\n    rank, size = get_dist_info()\n"
    before = f"{head}    dist.barrier()\n"
    after = before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()")
    check_transformed(RULE, before, after, unsafe=True)


# Told


def test_a_call_whose_result_is_used() -> None:
    line = "work = dist.all_reduce(x, async_op=True)"
    check_told(RULE, f"{DIST}def main(args, x):\n{START}    {line}\n", reason="used on the spot")


def test_a_call_that_shares_its_line() -> None:
    before = f"{DIST}def main(args, x):\n{START}    x = 1; dist.barrier()\n"
    after = before.replace("1; dist.barrier()", "1\n    if dist.is_initialized():\n        dist.barrier()")
    check_transformed(RULE, before, after)


# Nothing to say


@pytest.mark.parametrize(
    "body",
    [f"{START}    if args.distributed:\n        dist.barrier()\n",
     f"{START}    if dist.is_initialized():\n        dist.barrier()\n",
     f"{START}    if args.world_size > 1:\n        dist.barrier()\n",
     f"{START}    if not args.distributed:\n        return\n    dist.barrier()\n",
     f"{START}    try:\n        dist.barrier()\n    except ValueError:\n        pass\n",
     f"{START}    dist.barrier(group=args.group)\n",
     "    dist.init_process_group('nccl')\n    dist.barrier()\n",
     "    if not dist.is_initialized():\n        dist.init_process_group('nccl')\n    dist.barrier()\n",
     "    if args.a:\n        dist.init_process_group('nccl')\n    else:\n        dist.init_process_group('gloo')\n"
     "    dist.barrier()\n",
     "    dist.barrier()\n"],
)  # fmt: skip
def test_right_or_not_shown_to_be_wrong(body: str) -> None:
    check_nothing(RULE, f"{DIST}def main(args, x):\n{body}")


def test_a_helper_that_needs_the_group() -> None:
    files = {"tools.py": "import torch.distributed as dist\n\ndef get_rank():\n    return dist.get_rank()\n"}
    check_nothing(RULE, f"{DIST}from tools import get_rank\n\ndef f():\n    rank = get_rank()\n    dist.barrier()\n", files=files)


def test_a_test_by_a_key_of_the_configuration() -> None:
    body = "def validate(opt):\n    rank, size = get_dist_info()\n    if opt['dist']:\n        dist.barrier()\n"
    check_nothing(RULE, f"from mmcv.runner import get_dist_info\n{DIST}{body}")


VALIDATE = """
from mmcv.runner import get_dist_info
class Base:
    def run(self, args, world_size):
        {call}
class Middle(Base):
    pass
class Video(Middle):
    def validate_together(self):
        rank, size = get_dist_info()
        dist.barrier()
"""


@pytest.mark.parametrize(
    "call",
    ["if args['dist']:\n            self.validate_together()\n        else:\n            print()",
     "if world_size > 1 and args.validate:\n            self.validate_together()",
     "if not args.distributed:\n            return\n        self.validate_together()",
     "if world_size == 1:\n            print()\n        else:\n            self.validate_together()",
     "if args.local_rank != -1:\n            self.validate_together()",
     "if 'WORLD_SIZE' in os.environ:\n            self.validate_together()",
     "if args.get('distributed', False):\n            self.validate_together()",
     "if dist.is_available() and dist.is_initialized():\n            self.validate_together()"],
)  # fmt: skip
def test_all_callers_ask_for_a_distributed_run(call: str) -> None:
    check_nothing(RULE, f"{DIST}{VALIDATE.format(call=call)}")


@pytest.mark.parametrize(
    "call",
    ["self.validate_together()",
     "if args.validate:\n            self.validate_together()",
     "if not args.distributed:\n            self.validate_together()",
     "if args.distributed or args.validate:\n            self.validate_together()",
     "if world_size >= 1:\n            self.validate_together()",
     "if args.local_rank == -1:\n            self.validate_together()",
     "if dist.is_available():\n            self.validate_together()",
     "if args.distributed:\n            self.validate_together()\n        self.validate_together()",
     "if args.distributed:\n            self.validate_together()\n        args.run(self.validate_together)"],
)  # fmt: skip
def test_a_caller_that_comes_without_a_group(call: str) -> None:
    found = findings_of(RULE, f"{DIST}{VALIDATE.format(call=call)}")
    assert ["may be no process group here" in f.message for f in found] == [True]


def test_callers_of_callers_in_another_file() -> None:
    head = f"{DIST}from mmcv.runner import get_dist_info\n\n"
    source = f"{head}def gather(x):\n    rank, size = get_dist_info()\n    dist.barrier()\n"
    main = "def main(args):\n    if args.distributed:\n        score(1)\n"
    files = {"eval.py": f"from {MAIN.removesuffix('.py')} import gather\n\ndef score(x):\n    gather(x)\n\n{main}"}
    check_nothing(RULE, source, files=files)
    files["eval.py"] += "    score(2)\n"
    assert findings_of(RULE, source, files)


def test_the_tests_of_a_repository_are_left_alone() -> None:
    check_nothing(RULE, f"{DIST}def main(args):\n{START}    dist.barrier()\n", path="tests/test_main.py")


# The group is destroyed where there is none

CLEAN = "def cleanup():\n    dist.destroy_process_group()\n\n\n"
GUARDED = CLEAN.replace("    dist.d", "    if dist.is_initialized():\n        dist.d")
MAIN_ = "def main(rank):\n    dist.init_process_group('nccl', rank=rank)\n    train(rank)\n"


@pytest.mark.parametrize(
    "first",
    ["    dist.destroy_process_group()\n", "    cleanup()\n",
     "    try:\n        dist.destroy_process_group()\n    except Exception:\n        pass\n",
     "    if dist.is_initialized():\n        dist.destroy_process_group()\n"],
)  # fmt: skip
def test_a_group_that_is_destroyed_twice(first: str) -> None:
    before = f"{DIST}{CLEAN}{MAIN_}{first}    print('done')\n    cleanup()\n"
    (found, *_) = check_transformed(RULE, before, before.replace(CLEAN, GUARDED))
    assert "has destroyed the process group already" in found.message


def test_the_process_that_has_spawned_the_ranks() -> None:
    parent = "def launch():\n    mp.spawn(main, nprocs=2)\n    cleanup()\n"
    before = f"{DIST}import torch.multiprocessing as mp\n\n{CLEAN}{MAIN_}\n\n{parent}"
    check_transformed(RULE, before, before.replace(CLEAN, GUARDED))


def test_a_helper_whose_caller_starts_the_group_under_a_condition() -> None:
    setup = "def setup(rank):\n    dist.init_process_group('nccl', rank=rank)\n\n\n"
    body = "def main(args):\n    if args.gpu:\n        setup(args.gpu)\n    train(args)\n    cleanup()\n"
    before = f"{DIST}{setup}{CLEAN}{body}"
    check_transformed(RULE, before, before.replace(CLEAN, GUARDED))


def test_a_destruction_that_shares_its_line() -> None:
    before = f"{DIST}{MAIN_}    dist.destroy_process_group()\n    dist.destroy_process_group(); print('done')\n"
    assert [f.applicability for f in findings_of(RULE, before)] == [Applicability.SAFE]


@pytest.mark.parametrize(
    "source",
    [
        f"{CLEAN}{MAIN_}    cleanup()\n",
        f"{GUARDED}{MAIN_}    cleanup()\n    cleanup()\n",
        f"{CLEAN}{MAIN_}    cleanup()\n    dist.init_process_group('gloo')\n    cleanup()\n",
        f"{CLEAN}{MAIN_}    cleanup()\n    try:\n        cleanup()\n    except AssertionError:\n        pass\n",
        f"{CLEAN}{MAIN_}    if rank > 3:\n        cleanup()\n        return\n    cleanup()\n",
        f"{CLEAN}def main(args):\n    if args.distributed:\n        setup(args)\n    train(args)\n"
        "    if args.distributed:\n        cleanup()\n"
        "\n\ndef setup(args):\n    dist.init_process_group('nccl')\n",
        f"{CLEAN}def main(args):\n    mp.spawn(train, nprocs=2)\n    dist.init_process_group('gloo')\n    cleanup()\n",
    ],
)  # fmt: skip
def test_a_group_that_is_there(source: str) -> None:
    check_nothing(RULE, f"{DIST}import torch.multiprocessing as mp\n\n\n{source}")


def test_an_arm_whose_every_way_returns() -> None:
    leaves = "    if get_world_size() == 1:\n        if flat:\n            return x\n        else:\n            return [x]\n"
    size = HELPER.replace("get_rank", "get_world_size").replace("return 0", "return 1")
    gather = "\n\ndef gather(x, flat):\n{}    dist.all_reduce(x)\n    get_world_size()\n    dist.barrier()\n    return x\n"
    check_nothing(RULE, size + gather.format(leaves))
    assert findings_of(RULE, size + gather.format("    print(get_world_size())\n"))


# The rank, asked of torch itself

ASKED = "    if dist.get_rank() == 0:\n        save(args)\n"


def test_the_rank_behind_a_start_under_a_condition() -> None:
    check_told(RULE, f"{DIST}def main(args):\n{START}{ASKED}", reason="its result is used on the spot")
    source = f"{DIST}def train(args):\n{ASKED}\n\ndef main(args):\n{START}    train(args)\n"
    found = check_told(RULE, source, reason="its result is used on the spot")
    assert "started under `args.distributed` only" in found.message


@pytest.mark.parametrize(
    "source",
    [f"def main(args):\n{START}    if args.distributed:\n    {ASKED.replace(chr(10), chr(10) + '    ', 1)}",
     f"def main(args):\n{START}    if dist.is_initialized() and dist.get_rank() == 0:\n        save(args)\n",
     f"def main(args):\n{START}    rank = dist.get_rank() if args.distributed else 0\n",
     f"def main(args):\n{START}    model = torch.nn.parallel.DistributedDataParallel(args.model)\n{ASKED}",
     f"def main(args):\n{START}    else:\n        raise ValueError(args)\n{ASKED}",
     f"def main(args):\n    dist.init_process_group('nccl')\n{ASKED}", f"def train(args):\n{ASKED}",
     f"def train(args):\n{ASKED}\n\ndef main(args):\n{START}    if args.distributed:\n        train(args)\n",
     f"def train(args):\n{ASKED}\n\ndef main(args):\n    train(args)\n{START}"],
)  # fmt: skip
def test_the_rank_where_there_is_a_group(source: str) -> None:
    check_nothing(RULE, DIST + source)


BELOW = (
    "import torch.distributed as dist\nfrom ranks import get_rank\n\n"
    "def set_up(args):\n    {start}\n    return args.device\n\n"
    "def load(args):\n    print(get_rank())\n    dist.all_reduce(args.count)\n\n"
    "def main(args):\n    device = set_up(args)\n    load(args)\n"
)


def test_a_function_that_is_called_below_a_plain_start() -> None:
    """The helper is written for both, but every way here has started the group."""
    others = {"ranks.py": HELPER}
    check_nothing(RULE, BELOW.format(start="dist.init_process_group('nccl')"), files=others)
    for start in ("if args.many:\n        dist.init_process_group('nccl')", "args.seen = True",
                  "if args.one:\n        return None\n    dist.init_process_group('nccl')"):  # fmt: skip
        assert findings_of(RULE, BELOW.format(start=start), files=others)
    elsewhere = "\ndef show(args):\n    load(args)\n"
    assert findings_of(RULE, BELOW.format(start="dist.init_process_group('nccl')") + elsewhere, files=others)


LAUNCHER = """\
class Launcher:
    def set_up(self, model):
        raise NotImplementedError


class Cluster(Launcher):
    def set_up(self, model):
        model = model.cuda()
        {start}
        return model
"""


def test_an_object_that_starts_the_group_where_there_is_none() -> None:
    main = (
        f"{DIST}from launchers import Cluster\n\n\ndef init(args):\n    if not args.many:\n        return\n"
        "    dist.init_process_group('nccl')\n\n\ndef main(args):\n    init(args)\n    cluster = Cluster()\n"
        "    model = cluster.set_up(args.model)\n    dist.barrier()\n"
    )
    asked = "if not dist.is_initialized():\n            dist.init_process_group('nccl')"
    starts = DIST + LAUNCHER.format(start=asked)
    check_nothing(RULE, main, files={"launchers.py": starts})
    assert findings_of(RULE, main, files={"launchers.py": DIST + LAUNCHER.format(start="self.ready = True")})


def test_an_optimizer_that_shards_has_asked_for_the_group_at_its_making() -> None:
    code = (
        f"{DIST}from torch.distributed.optim import ZeroRedundancyOptimizer\nfrom ranks import get_rank\n\n\n"
        "def main(args, model):\n"
        "    optimizer = ZeroRedundancyOptimizer(model.parameters(), SGD) if args.zero else SGD(model.parameters())\n"
        "    print(get_rank())\n    train(model, optimizer)\n    if args.zero:\n        {0}\n"
    )
    check_nothing(RULE, code.format("optimizer.consolidate_state_dict()"), files={"ranks.py": HELPER})
    assert findings_of(RULE, code.format("dist.barrier()"), {"ranks.py": HELPER})


BY_DEVICE = (
    "import os\nimport torch\nimport torch.distributed as dist\n\n\ndef setup(device):\n    if device == 'npu':\n"
    "        dist.init_process_group('hccl')\n    elif device == 'cuda':\n        dist.init_process_group('nccl')\n"
)


def test_nothing_below_a_start_that_knows_each_device() -> None:
    check_nothing(RULE, f"{BY_DEVICE}\n\ndef main(args):\n    setup(args.device)\n    dist.barrier()\n    train()\n")


def test_a_start_for_one_device_alone_leaves_the_others_without_a_group() -> None:
    one = BY_DEVICE.replace("    elif device == 'cuda':\n        dist.init_process_group('nccl')\n", "")
    before = f"{one}\n\ndef main(args):\n    setup(args.device)\n    dist.barrier()\n    train()\n"
    check_transformed(RULE, before, before.replace("    dist.barrier()", "    if dist.is_initialized():\n        dist.barrier()"))


def test_nothing_above_a_wrapper_that_needs_a_group() -> None:
    head = f"{HELPER}\n\ndef setup():\n    if 'RANK' in os.environ:\n        dist.init_process_group('nccl')\n"
    body = "\n\ndef main(model):\n    setup()\n    dist.barrier()\n    model = DistributedDataParallel(model)\n    train(model)\n"
    names = "import os\nfrom torch.nn.parallel import DistributedDataParallel\n"
    check_nothing(RULE, f"{names}{head}{body}")
    loose = body.replace("    model = Dist", "    if dist.is_initialized():\n        model = Dist")
    assert findings_of(RULE, f"{names}{head}{loose}")


def test_nothing_of_a_function_that_nobody_calls() -> None:
    source = (
        "import torch.distributed as dist\nfrom mmcv.runner import get_dist_info\n\n\ndef collect(part):\n"
        "    rank, size = get_dist_info()\n    dist.barrier()\n    return merged(part)\n"
    )
    script = '\n\nif __name__ == "__main__":\n    main(build())\n'
    nobody = "\n\ndef main(model):\n    return model()\n"
    check_nothing(RULE, source + nobody + script)
    check_nothing(RULE, f"{source}\n\ndef on_all_ranks(model):\n    return collect(model()){nobody}{script}")
    assert findings_of(RULE, f"{source}\n\ndef main(model):\n    return collect(model()){script}")


STARTED = (
    "import torch.multiprocessing as mp\nimport torch.distributed as dist\n\n\n"
    "def cleanup():\n    dist.destroy_process_group()\n\n\n"
    "def work(place, args):\n    if {asked}:\n        dist.init_process_group('nccl', rank=place)\n"
    "    train(args)\n    cleanup()\n\n\n"
    "def main(args):\n    mp.spawn(work, nprocs=args.count, args=(args,))\n"
)


@pytest.mark.parametrize("asked", ["place != -1", "place is not None", "place >= 0", "place > -1"])
def test_a_number_that_spawn_gives_is_never_what_the_test_asks(asked: str) -> None:
    """mp.spawn numbers its processes from 0: each of them has started the group."""
    source = STARTED.format(asked=asked)
    check_nothing(RULE, source)
    check_nothing(RULE, source.replace("    cleanup()\n\n\ndef main", "    dist.destroy_process_group()\n\n\ndef main"))


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ("place != 0", ""), ("place > 0", ""), ("args.several", ""), ("place != args.alone", ""),
        ("place != -1", "\n\ndef alone(args):\n    work(-1, args)\n"),
    ],
)  # fmt: skip
def test_a_test_that_some_process_does_not_pass(asked: str, more: str) -> None:
    assert findings_of(RULE, STARTED.format(asked=asked) + more)


GATHERS = "import torch.distributed as dist\n\n\ndef collect(rows):\n    write(rows)\n    {wait}\n    return merged()\n"
ENTRY = (
    "import os\nimport torch.distributed as dist\nfrom store import collect\n\n\ndef start():\n    if 'RANK' not in os.environ:\n"
    "        return\n    dist.init_process_group('nccl')\n\n\ndef main(loader):\n    start()\n    for epoch in range(3):\n"
    "        for rows in loader:\n            {call}\n        dist.barrier()\n"
)


def test_an_earlier_wait_of_the_same_way_is_named() -> None:
    """In a loop that may have no round: where every way comes to it, nothing is said at all."""
    source = ENTRY.format(call="rows = collect(rows)")
    waits = {"store.py": GATHERS.format(wait="dist.all_reduce(rows)")}
    found = check_told(RULE, source, reason="store.py:6, which needs the group too", files=waits)
    assert "comes back without one" in found.message


@pytest.mark.parametrize(
    ("call", "wait"),
    [
        ("rows = collect(rows)", "if dist.is_initialized():\n        dist.barrier()"),
        ("rows = collect(rows)", "flush()"),
        ("if dist.is_initialized():\n                rows = collect(rows)", "dist.barrier()"),
    ],
)
def test_an_earlier_wait_that_has_its_test_stands_in_no_way(call: str, wait: str) -> None:
    before = ENTRY.format(call=call)
    after = before.replace("        dist.barrier()\n", "        if dist.is_initialized():\n            dist.barrier()\n")
    check_transformed(RULE, before, after, files={"store.py": GATHERS.format(wait=wait)})


BEHIND = (
    "import os\nimport torch.distributed as dist\nfrom store import collect\n\n\ndef start():\n    if 'RANK' not in os.environ:\n"
    "        return\n    dist.init_process_group('nccl')\n\n\ndef main(loader):\n    start()\n    for rows in loader:\n"
    "        dist.barrier()\n{call}"
)


@pytest.mark.parametrize(
    "call", ["        collect(rows)\n", "    if loader.done:\n        collect(loader)\n", "    rows = collect(loader)\n"]
)
def test_a_wait_of_a_function_that_is_called_below_is_named(call: str) -> None:
    """A test round the first one alone moves the end of the program there."""
    waits = {"store.py": GATHERS.format(wait="dist.all_reduce(rows)")}
    check_told(RULE, BEHIND.format(call=call), reason="store.py:6, which needs the group too", files=waits)


@pytest.mark.parametrize(
    ("call", "wait"),
    [
        ("        collect(rows)\n", "if dist.is_initialized():\n        dist.barrier()"),
        ("        if dist.is_initialized():\n            collect(rows)\n", "dist.barrier()"),
        ("        show(rows)\n", "dist.barrier()"),
    ],
)
def test_a_wait_below_that_has_its_test_stands_in_no_way(call: str, wait: str) -> None:
    before = BEHIND.format(call=call)
    after = before.replace("        dist.barrier()\n", "        if dist.is_initialized():\n            dist.barrier()\n")
    check_transformed(RULE, before, after, files={"store.py": GATHERS.format(wait=wait)})


UNDER_TEST = (
    f"{DIST}def main(several, done):\n    if several:\n        dist.init_process_group('gloo')\n    train()\n    {{end}}\n"
)


@pytest.mark.parametrize(
    "end",
    [
        "several and dist.destroy_process_group()",
        "not several or dist.destroy_process_group()",
        "started = dist.is_initialized()\n    if started:\n        dist.destroy_process_group()",
        "started = dist.is_available() and dist.is_initialized()\n    started and dist.barrier()",
    ],
)
def test_a_test_that_is_written_otherwise(end: str) -> None:
    check_nothing(RULE, UNDER_TEST.format(end=end))


@pytest.mark.parametrize("end", ["done and dist.barrier()", "dist.barrier() or several"])
def test_another_operand_says_nothing_of_the_group(end: str) -> None:
    check_told(RULE, UNDER_TEST.format(end=end), reason="it shares its line")


def test_a_name_that_is_given_something_else_too() -> None:
    source = UNDER_TEST.format(end="on = dist.is_initialized()\n    on = True\n    if on:\n        dist.barrier()")
    inside = "        if dist.is_initialized():\n            dist.barrier()"
    check_transformed(RULE, source, source.replace("        dist.barrier()", inside))


ASKS_ABOVE = """
    import os

    import torch.distributed as dist

    def say(text):
        if {asked} == 0:
            print(text)

    def main(folder):
        if "LOCAL_RANK" in os.environ:
            dist.init_process_group("nccl")
        say(folder)
        dist.barrier()
    """


def test_a_helper_that_asks_for_the_rank_ends_the_program_before() -> None:
    (found,) = [f for f in findings_of(CollectiveWithoutGroup, ASKS_ABOVE.format(asked="dist.get_rank()")) if f.span.line == 14]
    assert found.fix is None and "the program ends before, in module.py:7" in found.reason
    other = findings_of(CollectiveWithoutGroup, ASKS_ABOVE.format(asked='int(os.environ.get("RANK", 0))'))
    assert [f.applicability for f in other if f.span.line == 14] == [Applicability.SAFE]


LOADED = """import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def start(args):
    if args.many:
        dist.init_process_group("nccl")


def loader(data, alone=False):
    if alone:
        return_of = DataLoader(data)
    else:
        return_of = DataLoader(data, sampler=DistributedSampler(data{ranks}))
    return return_of


def main(args):
    start(args)
    batches = {call}
    train(batches)
    dist.barrier()
"""


@pytest.mark.parametrize(
    ("call", "ranks", "told"),
    [
        ("loader(args.data)", "", False),
        ("loader(args.data, alone=True)", "", True),
        ("loader(args.data)", ", num_replicas=args.many", True),
        ("loader(args.data) if args.fast else None", "", True),
    ],
)
def test_a_loader_that_ends_a_run_without_a_group(call: str, ranks: str, *, told: bool) -> None:
    assert bool(findings_of(RULE, LOADED.format(call=call, ranks=ranks))) is told


SETUP = (
    "import os\nimport torch.distributed as dist\n\ndef set_up(options):\n    if os.environ.get('LOCAL_RANK') is not None:\n"
    "        dist.init_process_group('nccl')\n    else:\n        options.rank = 0\n"
)


def _behind_a_helper(size: str, rank: str) -> str:
    head = "import torch.distributed as dist\nfrom setting import set_up\n\n\ndef train(options):\n    set_up(options)\n"
    return f"{head}    {size}\n    rank = {rank}\n    run(rank)\n{MAIN_OF_TRAIN}"


MAIN_OF_TRAIN = "\n\nif __name__ == '__main__':\n    train(parse())\n"
ASKS_FIRST = "dist.get_rank() if dist.is_initialized() else options.rank"


def test_the_size_behind_a_helper_that_may_start_no_group() -> None:
    source = _behind_a_helper("several = dist.get_world_size() > 1", ASKS_FIRST)
    (found,) = findings_of(RULE, source, files={"setting.py": SETUP})
    assert "set_up() comes back without one from setting.py:5" in found.message and found.span.line == 7


@pytest.mark.parametrize(
    ("source", "setting"),
    [
        (_behind_a_helper("several = dist.is_initialized() and dist.get_world_size() > 1", ASKS_FIRST), SETUP),
        (_behind_a_helper("several = dist.get_world_size() > 1", "dist.get_rank()"), SETUP),  # nothing shows a run without one
        (_behind_a_helper("several = dist.get_world_size() > 1", ASKS_FIRST),
         SETUP.replace("options.rank = 0", "raise SystemExit('start it with torchrun')")),
        (_behind_a_helper("net = DistributedDataParallel(net)", ASKS_FIRST) + "    dist.get_rank()\n", SETUP),
    ],
)  # fmt: skip
def test_the_size_behind_a_helper_where_there_is_a_group(source: str, setting: str) -> None:
    check_nothing(RULE, source, files={"setting.py": setting})


# Behind Accelerate's end of the training

ACCELERATE = "from accelerate import Accelerator\n\n"
ENDED = f"{ACCELERATE}def main(args):\n    accelerator = Accelerator()\n    train(accelerator)\n"


@pytest.mark.parametrize(
    "body",
    [
        "    accelerator.end_training()\n    accelerator.wait_for_everyone()\n",
        "    if args.tracks:\n        accelerator.end_training()\n"
        "    if args.out is not None:\n        accelerator.wait_for_everyone()\n",
        "    if accelerator.num_processes < 2 and args.idle:\n        return\n"
        "    accelerator.end_training()\n    accelerator.wait_for_everyone()\n",
        "    accelerator.end_training()\n    with accelerator.main_process_first():\n        write()\n",
        "    accelerator.end_training()\n    score = accelerator.gather(evaluate()).mean()\n",
        "    for epoch in range(3):\n        if done(epoch):\n            accelerator.end_training()\n"
        "    accelerator.wait_for_everyone()\n",
    ],
)
def test_what_waits_behind_the_end_of_the_training(body: str) -> None:
    source = ENDED + body
    found = check_told(RULE, source, reason="when all is done")
    assert "from Accelerate 0.34 on" in found.message
    assert ("where `args.tracks` holds" in found.message) is ("args.tracks" in body)


def test_an_accelerator_in_a_field_and_torchs_own_barrier() -> None:
    held = (
        f"import torch.distributed as dist\n{ACCELERATE}class Fit:\n    def __init__(self):\n        self.acc = Accelerator()\n\n"
        "    def run(self):\n        self.acc.end_training()\n        dist.barrier()\n"
    )
    check_told(RULE, held, reason="when all is done")


def test_an_accelerator_that_is_handed_over() -> None:
    source = "def fit(accelerator, model):\n    accelerator.end_training()\n    accelerator.wait_for_everyone()\n"
    used = f"{ACCELERATE}from job.fit import fit\n\nfit(Accelerator(), build())\n"
    check_told(RULE, source, reason="when all is done", files={"job/run.py": used}, path="job/fit.py")


def test_a_version_that_is_pinned() -> None:
    source = f"{ENDED}    accelerator.end_training()\n    accelerator.wait_for_everyone()\n"
    check_nothing(RULE, source, files={"requirements.txt": "accelerate==0.33.0\n"})
    found = check_told(RULE, source, reason="when all is done", files={"requirements.txt": "accelerate==1.2.1\n"})
    assert "accelerate ==1.2.1 is pinned" in found.message


@pytest.mark.parametrize(
    "body",
    [
        "    accelerator.wait_for_everyone()\n    accelerator.end_training()\n",
        "    accelerator.end_training()\n    accelerator.print('done')\n"
        "    accelerator.unwrap_model(net).save_pretrained('out')\n",
        "    if args.early:\n        accelerator.end_training()\n        return\n    accelerator.wait_for_everyone()\n",
        "    if args.early:\n        accelerator.end_training()\n    else:\n        accelerator.wait_for_everyone()\n",
        "    if args.early:\n        accelerator.end_training()\n"
        "    if not args.early:\n        accelerator.wait_for_everyone()\n",
        "    accelerator.end_training()\n    accelerator = Accelerator()\n    accelerator.wait_for_everyone()\n",
        "    accelerator.end_training()\n    other.gather(rows)\n",
        "    accelerator.end_training()\n    try:\n        accelerator.wait_for_everyone()\n"
        "    except ValueError:\n        pass\n",
        "    accelerator.end_training()\n    if torch.distributed.is_initialized():\n        accelerator.wait_for_everyone()\n",
        "    accelerator.end_training()\n    def later():\n        accelerator.wait_for_everyone()\n",
    ],
)
def test_nothing_that_waits_comes_behind_the_end_of_the_training(body: str) -> None:
    check_nothing(RULE, ENDED + body)


def test_the_group_stays_below_a_notebooks_launcher() -> None:
    source = f"{ENDED}    accelerator.end_training()\n    accelerator.wait_for_everyone()\n"
    started = "from accelerate import notebook_launcher\nfrom run import main\n\nnotebook_launcher(main)\n"
    check_nothing(RULE, source, files={"start.py": started})


def test_an_end_of_another_kind_of_object() -> None:
    source = "import torch.distributed as dist\n\ndef main(run):\n    run.end_training()\n    dist.barrier()\n"
    check_nothing(RULE, source)


MENDED = (
    "import torch.distributed as dist\n\n\n"
    "def start(args):\n    if args.local_rank != -1:\n        dist.init_process_group('nccl')\n\n\n"
    "def train(args, rows):\n    for row in rows:\n        step(row)\n        {inner}\n\n\n"
    "def main(args, rows):\n    start(args)\n    {above}\n    dist.barrier()\n    {below}\n\n\n"
    "if __name__ == '__main__':\n    main(parse(), load())\n"
)


@pytest.mark.parametrize("inner", ["dist.barrier()", "torch.distributed.monitored_barrier()"])
@pytest.mark.parametrize(("above", "below"), [("prepare(rows)", "train(args, rows)"), ("train(args, rows[:0])", "finish(rows)")])
def test_a_wait_that_is_mended_in_the_same_run_is_no_end(inner: str, above: str, below: str) -> None:
    head = "import torch\n" if "torch." in inner else ""
    found = findings_of(RULE, head + MENDED.format(inner=inner, above=above, below=below))
    levels = [f.applicability for f in found]
    assert levels and all(level is Applicability.SAFE for level in levels)


@pytest.mark.parametrize("inner", ["dist.all_reduce(row)", "done = dist.get_world_size()", "dist.broadcast(row, 0)"])
def test_a_collective_that_stays_in_its_way_is_still_named(inner: str) -> None:
    found = findings_of(RULE, MENDED.format(inner=inner, above="prepare(rows)", below="train(args, rows)"))
    assert any("needs the group too" in f.reason for f in found)


def test_a_wait_of_another_file_that_is_mended_in_the_same_run() -> None:
    source, waits = BEHIND.format(call="    rows = collect(loader)\n"), GATHERS.format(wait="dist.barrier()")
    tested = "        if dist.is_initialized():\n            dist.barrier()\n"
    check_transformed(RULE, source, source.replace("        dist.barrier()\n", tested), files={"store.py": waits})
    (there,) = findings_of(RULE, waits, {"main.py": source}, path="store.py")
    assert there.applicability is not Applicability.DISPLAY
