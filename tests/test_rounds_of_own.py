"""What is written once for each item of a rank's own share: by the loops, their tests, and the loops of the callers."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

HEAD = (
    "import os\nimport torch\nimport torch.distributed as dist\n{imports}\n\n"
    "def main(args):\n    dist.init_process_group('gloo')\n    rank, world_size = dist.get_rank(), dist.get_world_size()\n"
)
MAIN = "\n\nif __name__ == '__main__':\n    main(parse())\n"
SHARE = "[i for i in range(rank, 100, world_size)]"
HELPER = """
import json, os
import torch

def play(out, games, mine=()):
    for number, game in enumerate(games):
        {test}
            continue
        with open(os.path.join(out, 'results.json'), 'w') as f:
            json.dump(score(game), f)
"""
KEEPER = """
import json
import torch

class Keeper:
    def __init__(self, out):
        self.out = out

    def step(self, rows):
        {write}
"""


def program(*lines: str, imports: str = "") -> str:
    return HEAD.format(imports=imports) + "".join(f"    {line}\n" for line in lines) + MAIN


@pytest.mark.parametrize(
    ("test", "call", "told"),
    [
        ("if mine and number not in mine:", f"play(args.out, args.games, mine={SHARE})", False),
        ("if number not in mine:", f"play(args.out, args.games, {SHARE})", False),
        ("if number % 5 == 0:", f"play(args.out, args.games, {SHARE})", True),
        ("if number not in mine:", "play(args.out, args.games, args.chosen)", True),
        ("if number in (1, 2):", "play(args.out, args.games)", True),
    ],
)
def test_numbers_of_a_share_that_a_caller_hands_over(test: str, call: str, told: bool) -> None:
    found = findings_of(UnguardedFileIo, HELPER.format(test=test), {"go.py": program(call, imports="from module import play")})
    assert bool(found) is told


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("for game in args.games[rank::world_size]:", "    Keeper(args.out).step(game)"), False),
        (
            ("games = list(args.games)", "if dist.is_initialized():", "    everything, games = games, []",
             "    for i in range(len(everything)):", "        if i % dist.get_world_size() == dist.get_rank():",
             "            games.append(everything[i])", "for game in games:", "    Keeper(args.out).step(game)"), False,
        ),
        (("for i, game in enumerate(args.games):", "    if i % world_size != rank:", "        continue",
          "    keeper = Keeper(args.out)", "    keeper.step(game)"), False),
        (("for i, game in enumerate(args.games):", "    if i % world_size == rank:",
          "        Keeper(args.out).step(game)"), False),
        (("for game in args.games:", "    Keeper(args.out).step(game)"), True),
        (("for i, game in enumerate(args.games):", "    if i % args.every != 0:", "        continue",
          "    Keeper(args.out).step(game)"), True),
        (("mine = args.games[rank::world_size]", "for game in args.games:", "    Keeper(args.out).step(game)"), True),
        (("games = []", "for i in range(9):", "    if i % args.every == args.first:", "        games.append(i)",
          "for game in games:", "    Keeper(args.out).step(game)"), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("rule", "write"),
    [(UnguardedSave, "torch.save(rows, self.out)"), (UnguardedFileIo, "json.dump(rows, open(self.out, 'w'))")],
)
def test_a_loop_of_a_caller(
    rule: type[UnguardedSave | UnguardedFileIo], write: str, lines: tuple[str, ...], told: bool
) -> None:
    files = {"go.py": program(*lines, imports="from module import Keeper")}
    assert bool(findings_of(rule, KEEPER.format(write=write), files)) is told


def test_a_helper_that_a_nested_function_calls_for_each_item() -> None:
    lines = ("def each(game):", "    Keeper(args.out).step(game)", "for game in args.games[rank::world_size]:", "    each(game)")
    source = KEEPER.format(write="torch.save(rows, self.out)")
    check_nothing(UnguardedSave, source, files={"go.py": program(*lines, imports="from module import Keeper")})


EXPORT = """
import json, os
import torch

def export(row, out):
    json.dump(row, open(os.path.join(out, "rows.json"), "w"))
"""
POOL = ("with multiprocessing.get_context('spawn').Pool(4) as pool:",)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("keys = names(args)", "if args.several:", "    keys = keys[rank::world_size]", "rows = Rows(args.root, keys, cached=0)",
          "for key in rows.keys():", "    export(rows[key], args.out)"), False),
        (("keys = names(args)", "keys = keys[rank::world_size]", "for key in keys:", "    export(key, args.out)"), False),
        (("keys = names(args)[rank::world_size]", *POOL, "    for key in keys:",
          "        pool.starmap_async(export, ((key, args.out),))"), False),
        (("keys = names(args)", "if args.several:", "    keys = keys[rank::world_size]", "rows = Rows(keys=keys)", *POOL,
          "    done = [pool.apply_async(print, (key,)) for key in rows]", "    for key in rows:",
          "        done.append(pool.apply_async(export, (key, args.out)))", "export(args.first, args.out)"), False),
        (("keys = names(args)", "keys = keys[: args.most]", "for key in keys:", "    export(key, args.out)"), True),
        (("keys = names(args)", "mine = keys[rank::world_size]", "rows = Rows(args.root, keys)", "for key in rows.keys():",
          "    export(rows[key], args.out)"), True),
        (("keys = names(args)", "keys = keys[rank::world_size]", "for batch in keys:", "    args.net(batch).backward()",
          "    export(batch, args.out)"), True),
        (("keys = names(args)", "keys = keys[rank::world_size]", "rows = Rows(keys)", "for batch in rows:",
          "    train_step(batch, args.net)", "    export(batch, args.out)"), True),
        (("keys = names(args)", "keys = keys[rank::world_size]", "batches = DataLoader(keys)", "for batch in batches:",
          "    export(batch, args.out)"), True),
        (("keys = names(args)", "keys = keys[rank::world_size]", "for row in args.rows:", "    export(row, args.out)"), True),
    ],
)  # fmt: skip
def test_a_list_that_is_cut_and_what_is_made_of_it(lines: tuple[str, ...], told: bool) -> None:
    files = {"go.py": program(*lines, imports="import multiprocessing\nfrom data import Rows\nfrom module import export")}
    assert bool(findings_of(UnguardedFileIo, EXPORT, files)) is told
