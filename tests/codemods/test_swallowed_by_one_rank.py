from __future__ import annotations

import pytest

from codemods.sync.swallowed_by_one_rank import SwallowedByOneRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = """\
import contextlib
import logging
import sys

import torch.distributed as dist
from loguru import logger
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, rows):
    net = DDP(net)
    for row in rows:
        net(row).sum().backward()


def stop():
    dist.destroy_process_group()


"""


def handled(*handler: str, kind: str = "except Exception as error:", last: tuple[str, ...] = ()) -> str:
    lines = ["try:", "    train(net, rows)", kind, *(f"    {h}" for h in handler), *last]
    return HEAD + "def main(net, rows):\n    dist.init_process_group()\n" + "".join(f"    {line}\n" for line in lines)


def test_example_of_the_page() -> None:
    sections = SwallowedByOneRank.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(SwallowedByOneRank, before, after, unsafe=True)


@pytest.mark.parametrize("kind", ["except:", "except Exception:", "except BaseException as e:", "except (OSError, Exception):"])
def test_handlers_round_the_training(kind: str) -> None:
    log = "logging.exception('failed')"
    check_transformed(SwallowedByOneRank, handled(log, kind=kind), handled(log, "raise", kind=kind), unsafe=True)


def test_what_would_be_left_out_behind_it() -> None:
    last = ("upload('run.log')",)
    check_told(SwallowedByOneRank, handled("print(error)", last=last), reason="(line 26) in a `finally`")
    behind = ("print('ended')", "dist.destroy_process_group()")
    given = handled("print(error)", last=behind)
    check_transformed(SwallowedByOneRank, given, handled("print(error)", "raise", last=behind), unsafe=True)


def test_what_comes_behind_is_named() -> None:
    found = check_transformed(
        SwallowedByOneRank,
        handled("print(error)", last=("dist.barrier()",)), handled("print(error)", "raise", last=("dist.barrier()",)),
        unsafe=True,
    )  # fmt: skip
    assert "goes on to torch.distributed.barrier" in found[0].message


def decorated(decorator: str) -> str:
    return f"{HEAD}@{decorator}\ndef main(net, rows):\n    train(net, rows)\n"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("logger.catch", "logger.catch(reraise=True)"),
        ("logger.catch()", "logger.catch(reraise=True)"),
        ("logger.catch(message='failed')", "logger.catch(message='failed', reraise=True)"),
        ("logger.catch(reraise=False)", "logger.catch(reraise=True)"),
    ],
)
def test_a_decorator(given: str, wanted: str) -> None:
    check_transformed(SwallowedByOneRank, decorated(given), decorated(wanted), unsafe=True)


def test_a_block() -> None:
    source = HEAD + "def main(net, rows):\n    with {}:\n        train(net, rows)\n"
    check_transformed(
        SwallowedByOneRank, source.format("logger.catch()"), source.format("logger.catch(reraise=True)"), unsafe=True
    )
    check_told(SwallowedByOneRank, source.format("contextlib.suppress(Exception)"), reason="let the error out")


@pytest.mark.parametrize("handler", [("pass",), ("print(error)", "return"), ("print(error)", "sys.exit(0)"), ("sys.exit()",)])
def test_handlers_that_end_otherwise(handler: tuple[str, ...]) -> None:
    check_told(SwallowedByOneRank, handled(*handler), reason="end the handler with `raise`")


@pytest.mark.parametrize(
    "handler",
    [
        ("print(error)", "raise"),
        ("if rows:", "    raise"),
        ("raise RuntimeError('failed') from error",),
        ("sys.exit(1)",),
        ("sys.exit(str(error))",),
        ("stop()",),
        ("dist.destroy_process_group()",),
        ("cleanup(error)",),
        ("return 1",),
        ("net.failed = True",),
        ("rows['error'] = error",),
        ("rows.append(error)",),
        ("dist.barrier()",),
    ],
)
def test_handlers_that_tell(handler: tuple[str, ...]) -> None:
    check_nothing(SwallowedByOneRank, handled(*handler))


def test_what_is_read_later() -> None:
    check_nothing(SwallowedByOneRank, handled("failed = error", last=("if failed:", "    raise failed")))


@pytest.mark.parametrize("kind", ["except KeyboardInterrupt:", "except OSError:", "except (ValueError, RuntimeError):"])
def test_handlers_of_one_kind(kind: str) -> None:
    check_nothing(SwallowedByOneRank, handled("print(1)", kind=kind))


def test_the_group_is_taken_down_at_the_end() -> None:
    check_nothing(SwallowedByOneRank, handled("print(error)", last=("finally:", "    stop()")))


@pytest.mark.parametrize(
    "decorator", ["logger.catch(reraise=True)", "logger.catch(ValueError)", "logger.catch(onerror=stop)", "cached"]
)
def test_decorators_that_let_errors_out(decorator: str) -> None:
    check_nothing(SwallowedByOneRank, decorated(decorator))


@pytest.mark.parametrize(
    "body", ["import apex", "size = dist.get_world_size()", "rows = open('a').read()", "dist.all_reduce(net)"]
)
def test_other_things_in_a_try(body: str) -> None:
    check_nothing(SwallowedByOneRank, handled("print(error)").replace("train(net, rows)\n    except", f"{body}\n    except"))


def test_inside_of_a_loop() -> None:
    loop = "    for _ in rows:\n        try:\n            train(net, rows)\n        except Exception:\n            print(1)\n"
    check_nothing(SwallowedByOneRank, HEAD + "def main(net, rows):\n" + loop)


def test_one_process() -> None:
    source = "def main(net, rows):\n    try:\n        net(rows).backward()\n    except Exception:\n        print('a Trainer')\n"
    check_nothing(SwallowedByOneRank, source)


def test_a_trainer_with_one_device() -> None:
    source = """\
        import lightning.pytorch as pl


        def run(model, loader):
            trainer = pl.Trainer(devices=1)
            try:
                trainer.fit(model, loader)
            except Exception:
                print("failed")
        """
    check_nothing(SwallowedByOneRank, source)
    several = source.replace("=1", "=4")
    check_transformed(SwallowedByOneRank, several, several.rstrip() + "\n                raise\n", unsafe=True)


_AGAIN = """\
import torch
import torch.distributed as dist


def start(rank):
    {ask}dist.init_process_group("nccl", rank=rank)


def train(net, rank):
    {begin}
    net.fit()


def main(net, rank):
    try:
        train(net, rank)
    except {kind}:
        {first}
        {second}(net, rank)
"""


def again(ask: str = "", begin: str = "start(rank)", kind: str = "torch.cuda.OutOfMemoryError", first: str = "net.small()",
          second: str = "train") -> str:  # fmt: skip
    return _AGAIN.format(ask=ask, begin=begin, kind=kind, first=first, second=second)


@pytest.mark.parametrize("kind", ["torch.cuda.OutOfMemoryError", "RuntimeError as error", "(ValueError, RuntimeError)"])
def test_a_second_run_starts_the_group_again(kind: str) -> None:
    found = check_told(SwallowedByOneRank, again(kind=kind), reason="start it again")
    assert "a second time (line 6)" in found.message
    check_told(SwallowedByOneRank, again(begin="dist.init_process_group('nccl')", kind=kind), reason="start it again")


@pytest.mark.parametrize(
    "source",
    [
        again(ask="if not dist.is_initialized(): "),
        again(begin="pass"),  # the group is started once, above both
        again(first="dist.destroy_process_group()"),
        again(second="net.report"),
        again(kind="KeyboardInterrupt"),
        again(begin="torch.multiprocessing.spawn(start, nprocs=2)"),  # the workers start it, anew each time
    ],
)
def test_second_runs_that_are_right(source: str) -> None:
    check_nothing(SwallowedByOneRank, source)


def test_a_handler_that_reports_to_ray_waits_there() -> None:
    source = handled("train_of_ray.report({'loss': 1e9})")
    ray = source.replace("import sys\n", "import sys\n\nfrom ray import train as train_of_ray\n")
    told = check_told(SwallowedByOneRank, ray, reason="of Ray waits for all workers")
    assert "where it waits for the other workers" in told.message
    check_transformed(SwallowedByOneRank, source, source + "        raise\n", unsafe=True)


def test_a_loss_that_is_made_past_the_wrapper_is_waited_for_nowhere() -> None:
    past = handled("print(error)").replace("net(row).sum()", "net.module.score(row).sum()")
    check_nothing(SwallowedByOneRank, past)  # its backward pass reduces nothing
    met = past.replace("    train(net, rows)\n    except", "    train(net, rows)\n        dist.barrier()\n    except")
    (finding,) = findings_of(SwallowedByOneRank, met)
    assert "wait for it in torch.distributed.barrier" in finding.message


PROBE = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def probe(net, optimizer, rank):
    {guard}
    try:
        net(torch.zeros(4, 8)).mean().backward()
        optimizer.step()
    except Exception as error:
        print("no probe", error)


def main(net, optimizer, rows):
    dist.init_process_group("nccl")
    net = DDP(net)
    probe(net, optimizer, dist.get_rank())
    for row in rows:
        net(row).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "guard", ["if rank != 0:\n        return", "if dist.get_rank() != 0 or not torch.cuda.is_available():\n        return"]
)
def test_a_backward_pass_of_one_rank_is_waited_for_by_nobody(guard: str) -> None:
    source = PROBE.format(guard=guard)
    check_nothing(SwallowedByOneRank, source)
    met = source.replace("        optimizer.step()\n    except", "        dist.barrier()\n    except")
    (finding,) = findings_of(SwallowedByOneRank, met)
    assert "wait for it in torch.distributed.barrier" in finding.message


@pytest.mark.parametrize("guard", ["print(rank)", "if not torch.cuda.is_available():\n        return"])
def test_a_backward_pass_of_all_ranks_is_waited_for(guard: str) -> None:
    (finding,) = findings_of(SwallowedByOneRank, PROBE.format(guard=guard))
    assert "backward" in finding.message


def test_a_program_that_says_it_is_alone() -> None:
    alone = "import os\nos.environ['RANK'] = '0'\nos.environ['WORLD_SIZE'] = '1'\n"
    check_nothing(SwallowedByOneRank, alone + handled("print(error)"))
    check_transformed(
        SwallowedByOneRank, alone.replace("'1'", "'2'") + handled("print(error)"),
        alone.replace("'1'", "'2'") + handled("print(error)", "raise"), unsafe=True,
    )  # fmt: skip


COMMAND = """\
import functools
import logging


def command(parser):
    def over(work):
        @functools.wraps(work)
        def run():
            args = parser.parse_args()
            try:
                work(args)
            except Exception as error:
                logging.error(error)
                exit()

        return run

    return over
"""
COMMANDED = """\
import torch.distributed as dist
from command import command
from options import parser
from torch.nn.parallel import DistributedDataParallel as DDP


@command(parser)
def main(args):
    dist.init_process_group("nccl")
    net = DDP(args.net)
    for row in args.rows:
        net(row).sum().backward()


if __name__ == "__main__":
    main()
"""


def test_a_decorator_round_the_work() -> None:
    check_told(SwallowedByOneRank, COMMAND, files={"train.py": COMMANDED}, path="command.py", reason="end the handler with")
    plain = COMMAND.replace("def command(parser):\n    def over(work):", "def command(work):\n    if work:").replace(
        "        return run\n\n    return over", "        return run"
    )
    used = {"train.py": COMMANDED.replace("@command(parser)", "@command")}
    source = plain.replace("parser.", "work.")
    check_told(SwallowedByOneRank, source, files=used, path="command.py", reason="end the handler with")


@pytest.mark.parametrize(
    ("what", "source", "work"),
    [
        ("it ends with a status", COMMAND.replace("exit()", "exit(1)"), COMMANDED),
        ("it raises", COMMAND.replace("exit()", "raise"), COMMANDED),
        ("nobody carries it", COMMAND, COMMANDED.replace("@command(parser)\n", "")),
        ("another decorator of that name", COMMAND, COMMANDED.replace("from command", "from other")),
        ("the work waits for nobody", COMMAND, COMMANDED.replace("net(row).sum().backward()", "print(row)")),
        ("what is tried is not the work", COMMAND.replace("work(args)", "parser.show(args)"), COMMANDED),
    ],
)
def test_decorators_that_are_right(what: str, source: str, work: str) -> None:
    check_nothing(SwallowedByOneRank, source, files={"train.py": work}, path="command.py")


SCORED = """\
import json
import logging
import os

import torch.distributed as dist


class Scorer:
    def __init__(self, net):
        self.net = net

    def put_together(self, rows):
        json.dump(rows, open(f"part-{{dist.get_rank()}}.json", "w"))
        if dist.get_world_size() > 1:
            dist.barrier()

    def score(self, rows):
        {work}
        self.put_together(found)


def main():
    dist.init_process_group("gloo")
    scorer = Scorer(len)
    try:
        scorer.score(os.listdir("rows"))
    except Exception as error:
        logging.exception(error)
{behind}

if __name__ == "__main__":
    main()
{last}"""
LOOPED = "found = []\n        for row in rows[dist.get_rank()::dist.get_world_size()]:\n            found.append(self.net(row))"


@pytest.mark.parametrize("name", ["score", "rank"])  # `scorer.rank(…)` asks for no rank: nobody takes its answer
def test_a_program_that_ends_with_the_attempt(name: str) -> None:
    source = SCORED.format(work=LOOPED, behind="", last="").replace("score(", f"{name}(")
    found = findings_of(SwallowedByOneRank, source)
    assert [len(f.fix.edits) if f.fix else 0 for f in found] == [1]
    assert "torch.distributed.barrier" in found[0].message


@pytest.mark.parametrize(
    ("work", "behind", "last"),
    [
        ("found = [len(rows)]", "", ""),  # a tear-down, a hand-over
        (LOOPED, "    print('ended')\n", ""),
        (LOOPED, "", "    print('ended')\n"),
    ],
)
def test_one_wait_in_an_attempt_is_no_run(work: str, behind: str, last: str) -> None:
    check_nothing(SwallowedByOneRank, SCORED.format(work=work, behind=behind, last=last))
