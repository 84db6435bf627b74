"""DDP203 leaves alone what a guard would tear, silence or hide."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, findings_of

HEAD = "import logging\nimport os\nimport torch\nimport torch.distributed as dist\n\n"


def script(*lines: str, above: str = "") -> str:
    return f"{HEAD}{above}\ndef main(rank, args):\n    dist.init_process_group('nccl')\n" + "".join(f"    {x}\n" for x in lines)


SET_UP = "def set_up(name):\n    log = logging.getLogger(name)\n    print('logging to', name)\n{}\n"


@pytest.mark.parametrize(
    "set_up",
    [
        "    log.setLevel(logging.INFO)\n",
        "    log.addHandler(logging.StreamHandler())\n",
        "    if log.hasHandlers():\n        print('there')\n    else:\n        log.addHandler(logging.FileHandler(name))\n",
        "    logging.basicConfig(level=logging.INFO)\n",
    ],
)
def test_a_logger_that_is_set_up_is_no_output(set_up: str) -> None:
    use = script("set_up('run')", "train(args, rank)", "print(f'done {args}')", above=SET_UP.format(set_up))
    lines = {f.span.line for f in findings_of(UnguardedPrint, use)}
    call = use.splitlines().index("    set_up('run')") + 1
    assert call not in lines and len(use.splitlines()) in lines


def test_a_function_that_prints_alone_is_output() -> None:
    use = script("set_up('run')", "train(args, rank)", above=SET_UP.format(""))
    assert len(findings_of(UnguardedPrint, use)) == 1


WAIT = "dist.barrier()"


def test_half_a_line() -> None:
    check_nothing(UnguardedPrint, script("print('saving ... ', end='')", WAIT, "x = clock()", "print(f'done on {rank}')"))
    torn = script("print('saving ... ', end='', flush=True)", WAIT, "args.step = save(args)", "print('done')")
    check_nothing(UnguardedPrint, torn)


@pytest.mark.parametrize(
    "lines",
    [
        ("print('saving ... ', end='')", "print('done')", WAIT),
        (WAIT, "print('saving', end='\\n')", WAIT, "print('done')"),
        ("print('\\r', args.step, end='')", WAIT, "print('done')"),
        ("print('saving ... ', end='')", WAIT),
    ],
)
def test_whole_lines(lines: tuple[str, ...]) -> None:
    assert findings_of(UnguardedPrint, script(*lines))


def test_what_this_machine_does_not_have() -> None:
    lines = "if os.path.exists(args.path):", "    load(args)", "else:", "    print('{}')"
    check_nothing(UnguardedPrint, script(*lines).format("Not loading: the path does not exist."))
    assert findings_of(UnguardedPrint, script(*lines).format("Training from the start."))


def test_the_end_of_what_every_rank_writes() -> None:
    saves = "torch.save(args, args.path)", "writer = args.writer", "writer.close()", "print('{}')"
    check_nothing(UnguardedPrint, script(*saves).format("Output completed."))
    assert findings_of(UnguardedPrint, script(*saves).format("Next epoch."))
