"""Values that are None on all ranks but 0, and where every rank needs them."""

from __future__ import annotations

import pytest

from codemods.ranks.value_of_one_rank import ValueOfOneRank
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def script(*lines: str, head: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"import torch.distributed as dist\n\n{head}\ndef main(args):\n    rank = dist.get_rank()\n{body}"


MADE = ("board = None", "if rank == 0:", "    board = Board(args.folder)")
USED = ("for step in range(9):", "    board.add(step)")


@pytest.mark.parametrize(
    "made",
    [
        MADE,
        ("if rank == 0:", "    board = Board(args.folder)", "else:", "    board = None"),
        ("board = Board(args.folder) if rank == 0 else None",),
        ("board = None if rank != 0 else Board(args.folder)",),
        ("names, board = args.names, None", "if rank == 0 and args.folder:", "    board = Board(args.folder)"),
        ("board, rest = None, None", "if not args.distributed or rank == 0:", "    board, rest = Board(1), 2"),
    ],
)
def test_a_call_goes_under_a_test_of_the_value(made: tuple[str, ...]) -> None:
    after = (*made, USED[0], "    if board is not None:", "        board.add(step)")
    check_transformed(ValueOfOneRank, script(*made, *USED), script(*after), unsafe=True)


@pytest.mark.parametrize(
    ("use", "error"),
    [
        ("rows = board.rows", "AttributeError"),
        ("board[0] = rank", "TypeError"),
        ("first, second = board", "TypeError"),
        ("for row in board: args.seen.append(row)", "TypeError"),
        ("mean = sum(args.all) / len(board)", "TypeError"),
        ("if args.epoch % args.log_every == 0: total = board.total", "AttributeError"),
    ],
)
def test_what_needs_the_value_is_told(use: str, error: str) -> None:
    found = check_told(ValueOfOneRank, script(*MADE, use), reason="test of the value itself")
    assert error in found.message and "line 8" in found.message


def test_an_assert_of_something_else_lets_every_rank_go_on() -> None:
    asserted = ("assert args.steps is not None", "board.add(1)")
    after = (asserted[0], "if board is not None:", "    board.add(1)")
    check_transformed(ValueOfOneRank, script(*MADE, *asserted), script(*MADE, *after), unsafe=True)
    for told in ("assert board is not None", "assert rank == 0", "assert args.is_main"):
        check_nothing(ValueOfOneRank, script(*MADE, told, "board.add(1)"))


@pytest.mark.parametrize(
    "use",
    [
        ("if board is not None:", "    board.add(1)"),
        ("if board:", "    board.add(1)"),
        ("if board is None:", "    return", "board.add(1)"),
        ("if rank != 0:", "    return", "board.add(1)"),
        ("assert board is not None", "board.add(1)"),
        ("try:", "    board.add(1)", "except AttributeError:", "    pass"),
        ("is_main = rank == 0", "if is_main:", "    board.add(1)"),
        ("if args.is_main:", "    board.add(1)"),
        ("if args.write_logs:", "    board.add(1)"),
        ("if speaks:", "    board.add(1)"),
        ("if not args.distributed:", "    board.add(1)"),
        ("board = Quiet() if board is None else board", "board.add(1)"),
        ("board = args.board", "board.add(1)"),
        ("board = share(board)", "board.add(1)"),
        ("x = board and board.add(1)",),
        ("show(board)",),
        ("print(board == 1, board)",),
        ("x = board or args.board",),
        ("late = lambda: board.add(1)",),
    ],
)
def test_uses_that_are_fine(use: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*MADE, *use))


@pytest.mark.parametrize(
    "made",
    [
        ("board = None", "if rank == 0 or args.all:", "    board = Board()"),
        ("board = None", "if rank == 0:", "    board = Board()", "else:", "    board = Quiet()"),
        ("board = None", "if rank == 0:", "    board = Board()", "for board in args.boards:", "    pass"),
        ("board = Board() if rank == 0 else Quiet()",),
        ("board = Board() if args.folder else None",),
        ("board = None", "if rank == 0:", "    board = Board()", "board = args.make()"),
    ],
)
def test_values_that_the_others_have_too(made: tuple[str, ...]) -> None:
    check_nothing(ValueOfOneRank, script(*made, *USED))


def test_a_value_that_is_made_in_a_loop() -> None:
    lines = ("kept = None", "for i, row in enumerate(args.rows):", "    if dist.get_rank() == 0 and kept is None:")
    source = script(*lines, "        kept = empty(row)", "    kept[i] = row")
    check_told(ValueOfOneRank, source, reason="test of the value itself")


# In a function that it is handed to

TRAIN = "def train(net, board, every):\n    for step in range(9):\n        BODY\n"


def test_a_function_that_needs_what_it_is_handed() -> None:
    files = {"engine.py": TRAIN.replace("BODY", "board.add(step)")}
    source = script(*MADE, "train(args.net, board, 5)", head="from engine import train\n")
    found = check_told(ValueOfOneRank, source, files=files, reason="engine.py:3")
    assert found.span.line == 10 and "hands it on" in found.message
    check_nothing(ValueOfOneRank, source.replace("    train(", "    if rank == 0:\n        train("), files=files)
    named = source.replace("board, 5)", "every=1, board=board)")
    check_told(ValueOfOneRank, named, files=files, reason="engine.py:3")


@pytest.mark.parametrize(
    "body",
    [
        "if board is not None:\n            board.add(step)",
        "if every and board:\n            board.add(step)",
        "if net.rank == 0:\n            board.add(step)",
        "if net.shows:\n            board.add(step)",
        "board = board or net.board\n        board.add(step)",
        "net.show(board)",
    ],
)
def test_functions_that_ask_for_it(body: str) -> None:
    source = script(*MADE, "train(args.net, board, 5)", head="from engine import train\n")
    check_nothing(ValueOfOneRank, source, files={"engine.py": TRAIN.replace("BODY", body)})


# Fields


def loop(use: str, *, made: str = "if dist.get_rank() == 0:\n            self.board = Board()", head: str = "") -> str:
    return (
        f"import torch.distributed as dist\n\nclass Loop:\n{head}    def __init__(self):\n        self.board = None\n"
        f"        {made}\n\n    def step(self, loss):\n        {use}\n"
    )


def test_a_field_of_an_object() -> None:
    source, after = loop("self.board.add(loss)"), loop("if self.board is not None:\n            self.board.add(loss)")
    check_transformed(ValueOfOneRank, source, after, unsafe=True)
    body = loop("self.board.add(loss)", head="    board = None\n\n").replace("        self.board = None\n", "")
    assert findings_of(ValueOfOneRank, body)
    check_nothing(ValueOfOneRank, loop("self.board = None\n        self.board.add(loss)"))
    check_nothing(ValueOfOneRank, source, files={"other.py": "def f(loop):\n    loop.board = Board()\n"})
    check_nothing(ValueOfOneRank, source.replace("class Loop:", "class Loop(Base):"))


# What functions give back

RESULT = """\
import torch.distributed as dist


def gathered(rows):
    dist.barrier()
    if dist.get_rank() != 0:
        return
    return rows, len(rows)
"""


@pytest.mark.parametrize(
    "use",
    ["rows, count = gathered(args.rows)", "print(gathered(args.rows)[0])", "rows = gathered(args.rows)\n    first = rows[0]"],
)
def test_a_result_that_rank_0_alone_is_given(use: str) -> None:
    source = script(use, head="from results import gathered\n").replace("rank = dist.get_rank()", "print(dist.get_rank() == 0)")
    found = check_told(ValueOfOneRank, source, files={"results.py": RESULT}, reason="test of the value itself")
    assert "results.py:8" in found.message and "TypeError" in found.message


def test_a_result_that_a_file_without_ranks_needs_is_told_where_it_is_given() -> None:
    files = {"evaluate.py": "from results import gathered\n\n\ndef main(rows):\n    rows, count = gathered(rows)\n"}
    (found,) = findings_of(ValueOfOneRank, RESULT, files=files, path="results.py")
    assert found.span.line == 8 and "evaluate.py:5" in found.message


@pytest.mark.parametrize(
    "result",
    [
        RESULT.replace("        return\n", "        return [], 0\n"),
        RESULT.replace("        return\n", "        raise SystemExit\n"),
        RESULT.replace("    return rows, len(rows)", "    yield rows, len(rows)"),
        RESULT.replace("def gathered", "@shared\ndef gathered"),
        RESULT.replace("    return rows,", "    dist.broadcast_object_list(rows)\n    return rows,").replace("!= 0", "> 9"),
    ],
)
def test_functions_that_give_the_others_a_value_too(result: str) -> None:
    check_nothing(ValueOfOneRank, script("rows, count = gathered(args.rows)", head=result.partition("\n")[2]))


def test_one_process_alone_is_given_it_otherwise() -> None:
    alone = RESULT.replace("    dist.barrier()\n", "    if dist.get_world_size() == 1:\n        return rows, 1\n")
    assert findings_of(ValueOfOneRank, script("rows, count = gathered(args.rows)", head=alone.partition("\n")[2]))


def test_the_first_process_of_each_node_has_none() -> None:
    source = """
        from accelerate import Accelerator

        def train(args, batches):
            accelerator = Accelerator()
            board = Board(args.folder) if accelerator.is_main_process else None
            for step, loss in enumerate(batches):
                accelerator.backward(loss)
                if accelerator.is_local_main_process:
                    board.add(step, loss)
        """
    found = check_told(ValueOfOneRank, source, reason="rank 0 of the run")
    assert "second node ends with AttributeError" in found.message
    check_nothing(ValueOfOneRank, source.replace("is_local_main_process", "is_main_process"))


def test_what_no_program_of_the_project_runs() -> None:
    source = script(*MADE, *USED).replace("def main(", "def train(")
    start = "import torch.distributed as dist\nIMPORT\nif __name__ == '__main__':\n    CALL\n"
    called = start.replace("IMPORT", "from module import train").replace("CALL", "dist.init_process_group(train(1))")
    assert findings_of(ValueOfOneRank, source, {"main.py": called})
    alone = start.replace("IMPORT", "").replace("CALL", "dist.init_process_group('gloo')")
    check_nothing(ValueOfOneRank, source, files={"main.py": alone})


ASKED = """\
import torch.distributed as dist


def main(args):
    rank = dist.get_rank()
    board = Board() if rank == 0 else None
    if {asked}:
        return
    board.add(1)
"""


def test_a_setting_that_is_asked_for_by_its_key() -> None:
    source = ASKED.format(asked="args['evaluate']")
    assert findings_of(ValueOfOneRank, source)
    for put in ("args['evaluate'] = dist.get_rank() > 0", 'args["evaluate"] = True', "args.evaluate = True"):
        check_nothing(ValueOfOneRank, source, files={"start.py": f"def start(args):\n    {put}\n"})
    for asked in ("state['evaluate']", "args[key]", "args['logs']", "args['is_main']"):
        check_nothing(ValueOfOneRank, ASKED.format(asked=asked))
