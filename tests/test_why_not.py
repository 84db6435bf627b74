"""`ddpfix check --why-not FILE:LINE`: which codemods looked at a line, what they asked, and what the answers were."""

from __future__ import annotations

import ast
from pathlib import Path
from types import FunctionType

import pytest

from codemods.analysis import names
from codemods.analysis.files.folder_calls import creates_folder
from codemods.analysis.ranks.start_kinds import Start
from codemods.files import nodes
from codemods.runtime.record import record
from codemods.store import corpus
from ddpfix import place_facts
from ddpfix.asked_answers import gives, in_words, question, reads_only, spells
from ddpfix.listening import no_file_holds
from ddpfix.plain_answers import asks_what_is_not, sentence, sentence_of_name
from tests.programs import ddpfix

SOURCE = """\
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    print("starting")
    if rank == 0:
        print("on the first")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


def asked(folder: Path, place: str, *options: str) -> tuple[int, str]:
    ran = ddpfix(folder, "check", "--why-not", place, *options)
    return ran.returncode, ran.stdout.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SOURCE)
    (tmp_path / "pyproject.toml").write_text("[tool.ddpfix]\n")
    return tmp_path


def part(text: str, code: str) -> str:
    """The lines about one codemod."""
    return next((p for p in text.split("\n\n") if p.startswith(code)), "")


def test_a_line_that_is_reported(folder: Path) -> None:
    status, text = asked(folder, "train.py:7")
    assert status == 0
    assert text.startswith('train.py:7: print("starting")\n')
    assert "reports it (safe): every rank prints in main" in part(text, "DDP203")


def test_a_line_under_a_guard_names_the_question_that_let_it_be(folder: Path) -> None:
    _, text = asked(folder, "train.py:9", "--select", "DDP203")
    told = part(text, "DDP203")
    assert "looked at it, and reports nothing here" in told
    assert any(line.endswith((": yes", ": no", ": found none")) for line in told.splitlines()[1:])


def test_the_gate_and_what_asks_nothing(folder: Path) -> None:
    _, text = asked(folder, "train.py:1")
    closed = next(p for p in text.split("\n\n") if "find none of their words" in p)
    assert "DDP101" in closed  # nothing of Lightning in the file
    assert "DDP203" not in closed


def test_the_same_answer_whatever_was_asked_before(folder: Path) -> None:
    _, alone = asked(folder, "train.py:9", "--select", "DDP203")
    _, together = asked(folder, "train.py:9")
    assert part(alone, "DDP203") == part(together, "DDP203")


def test_a_file_that_is_not_read(folder: Path) -> None:
    (folder / "train.py").write_text("import torch.distributed as dist\nprint 'x'\n")
    status, text = asked(folder, "train.py:2")
    assert status == 0
    assert "The file is not read:" in text


@pytest.mark.parametrize("given", ["train.py", "train.py:", "train.py:0", "train.py:x"])
def test_a_place_that_is_none(folder: Path, given: str) -> None:
    status, _ = asked(folder, given)
    assert status == 2


def test_a_file_that_is_no_python(folder: Path) -> None:
    (folder / "notes.txt").write_text("torchrun train.py\n")
    assert ddpfix(folder, "check", "--why-not", "notes.txt:1").returncode == 2
    (folder / "other.py").write_text('import os\n\nprint(os.environ["LOCAL_RANK"])\n')
    (folder / "run.sh").write_text("python -m torch.distributed.launch other.py\n")
    said = ddpfix(folder, "check", "--why-not", "run.sh:1")
    assert b"DDP702 torch-distributed-launch reports it" in said.stdout


TRAINER = """\
import pytorch_lightning as pl


def main(model, many):
    strategy = "ddp" if many else None
    trainer = pl.Trainer(devices=2, strategy=strategy)
    trainer.fit(model)
"""


def test_a_pin_that_lets_a_line_be(folder: Path) -> None:
    (folder / "train.py").write_text(TRAINER)
    (folder / "requirements.txt").write_text("pytorch-lightning==1.9.5\n")
    _, text = asked(folder, "train.py:5", "--select", "DDP801")
    assert "requirements.txt:1 (pytorch-lightning ==1.9.5), pytorch-lightning is" in part(text, "DDP801")
    (folder / "pyproject.toml").write_text('[tool.ddpfix]\ntarget-lightning = "2"\n')
    _, text = asked(folder, "train.py:5", "--select", "DDP801")
    assert "reports it (safe)" in part(text, "DDP801")


def test_a_line_of_a_yaml_file(folder: Path) -> None:
    (folder / "trainer").mkdir()
    (folder / "trainer" / "ddp.yaml").write_text("_target_: pytorch_lightning.Trainer\ngpus: 4\n")
    (folder / "requirements.txt").write_text("pytorch-lightning==1.6.5\n")
    _, text = asked(folder, "trainer/ddp.yaml:2", "--select", "DDP801")
    assert "requirements.txt:1 (pytorch-lightning ==1.6.5), pytorch-lightning is" in part(text, "DDP801")
    (folder / "requirements.txt").write_text("pytorch-lightning>=2\n")
    _, text = asked(folder, "trainer/ddp.yaml:2", "--select", "DDP801")
    assert "reports it (unsafe): trainer.gpus: 4 is an error" in part(text, "DDP801")


OPTION = """\
import argparse
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl")
"""


@pytest.mark.parametrize(
    ("place", "code", "since"), [("other.py:6", "DDP701", "2.0"), ("other.py:9", "DDP304", "2.4"), ("run.sh:1", "DDP702", "2.0")]
)
def test_a_text_that_names_an_old_torch_is_told_with_its_line(folder: Path, place: str, code: str, since: str) -> None:
    (folder / "train.py").unlink()
    (folder / "other.py").write_text(OPTION)
    (folder / "run.sh").write_text("python -m torch.distributed.launch other.py\n")
    assert "reports it" in part(asked(folder, place)[1], code)
    (folder / "README.md").write_text("# Install\n\npip install torch==1.12.1\n")
    assert f"by README.md:3, torch is older than {since}" in part(asked(folder, place)[1], code)


@pytest.mark.parametrize(
    ("docstring", "answer", "text"),
    [
        ("True where a rank leaves, or `node` does: why. More.", "no", "asked whether a rank leaves, or it does: no"),
        ("True for a file\n    of this rank.\n\n    More.", "yes", "asked whether this is a file of this rank: yes"),
        ("False where nobody waits.", "yes", "asked whether nobody waits: no"),
        ("True unless the bar is shown.", "yes", "asked whether the bar is shown: no"),
        ("True under a test of the rank.", "no", "asked whether this stands under a test of the rank: no"),
        ("The loop round it; None where there is none.", "nothing", "looked for the loop round it: found none"),
        ("None where every torch has it.", "nothing", "asked whether every torch has it: yes"),
        ("`accelerator.log` of a loop.", "nothing", "looked for `accelerator.log` of a loop: found none"),
        ("The loop round it.", "yes", ""),
        ("", "no", ""),
    ],
)
def test_a_question_is_a_sentence(docstring: str, answer: str, text: str) -> None:
    assert sentence(docstring, ["node"], answer) == text


def test_no_name_of_a_function_is_shown(folder: Path) -> None:
    _, text = asked(folder, "train.py:9")
    parts = [p for p in text.split("\n\n") if p.startswith("DDP")]
    told = [line for p in parts for line in p.splitlines() if line.startswith("    ")]
    assert told
    assert all(line.strip().startswith(("asked ", "looked for ", "by ", "no file ", "line ", "judged line ")) for line in told)


SAVES = """\
import torch
import torch.distributed as dist


def main(args, model, best, loss):
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(model)
    if args.holder(loss, args.rank):
        torch.save(model.module.state_dict(), "model.pt")
    torch.save({"rank": dist.get_rank()}, f"rank{dist.get_rank()}.pt")


main(None, None, None, None)
"""


def reasons(text: str, code: str) -> list[str]:
    """The questions that are shown of one codemod, the deciding one first."""
    return [line.strip() for line in part(text, code).splitlines()[1:]]


def test_a_record_that_holds_the_call_is_the_place(folder: Path) -> None:
    (folder / "train.py").write_text(SAVES)
    told = reasons(asked(folder, "train.py:9", "--select", "DDP501")[1], "DDP501")
    assert told[0] == "line 8: looked for what a test says of ranks: found none"
    assert "looked for how every rank comes to a save: found none" in told
    assert len(told) <= 4


def test_an_answer_of_an_earlier_place_is_shown_with_what_it_rests_on(folder: Path) -> None:
    calls = "def a():\n    torch.save(1, 'a.pt')\n    torch.save(2, 'b.pt')\n\n\nif dist.get_rank() == 0:\n    a()\n"
    head = "import torch\nimport torch.distributed as dist\n\ndist.init_process_group()\n\n\n"
    (folder / "train.py").write_text(head + calls)
    first = reasons(asked(folder, "train.py:8", "--select", "DDP501")[1], "DDP501")
    second = reasons(asked(folder, "train.py:9", "--select", "DDP501")[1], "DDP501")
    assert first
    assert second == first


def test_a_file_of_no_repository_is_seen_from_the_folder(folder: Path) -> None:
    (folder / "pyproject.toml").unlink()
    (folder / "below").mkdir()
    (folder / "train.py").rename(folder / "below" / "train.py")
    _, text = asked(folder, "below/train.py:7")
    assert text.startswith("below/train.py:7: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [("_is_muted", "asked whether it is muted: no"), ("holds_save", "asked whether it holds save: no"), ("pass_on", "")],
)
def test_the_words_of_a_name_ask(name: str, text: str) -> None:
    assert sentence_of_name(name, "no") == text


def test_a_colon_in_brackets_ends_no_question() -> None:
    told = sentence("False where no statement of the function (None: of the module) stands under a guard.", [], "no")
    assert told == "asked whether no statement of the function stands under a guard: yes"


@record
class Pair:
    first: str = ""
    second: tuple[str, ...] = ()


@pytest.mark.parametrize("value", [("", False), ((), None), ([], {}), None, "", False, (), Pair()])
def test_what_holds_nothing_was_not_found(value: object) -> None:
    assert not gives(value)
    assert in_words(value) == ("no" if value is False else "nothing")


@pytest.mark.parametrize("value", [("because", False), (None, ast.Pass()), (0,), Pair(second=("x",)), ast.Pass(), "x"])
def test_what_holds_something_was_found(value: object) -> None:
    assert gives(value)
    assert in_words(value) == ""


@pytest.mark.parametrize(
    ("function", "is_lookup"),
    [(names.dotted, True), (names.last, True), (nodes.called_name, True), (corpus.is_call, True), (creates_folder, False)],
)
def test_who_only_reads_asks_nothing(function: FunctionType, is_lookup: bool) -> None:
    assert reads_only(function.__code__) is is_lookup
    assert not (is_lookup and question(function.__code__))


def test_a_text_of_a_node_alone_is_how_it_is_written() -> None:
    assert spells([ast.Pass()], "name")
    assert spells([ast.Pass(), 1, "x", None], "")
    assert not spells([ast.Pass()], None)  # no text
    assert not spells([object(), ast.Pass()], "why it may not")  # who is given more may judge
    assert not spells(["a", "b"], "c")


SIZES = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(args, model, rows):
    dist.init_process_group(args.backend)
    loader = DataLoader(rows)
    args.batch_size //= torch.cuda.device_count()
    if args.rank == 0:
        print(len(loader))
    dist.destroy_process_group()


main(None, None, None)
"""


def test_a_statement_that_no_codemod_looks_for_is_said_first(folder: Path) -> None:
    (folder / "train.py").write_text(SIZES)
    _, text = asked(folder, "train.py:9")
    short = text.split("\n\n")[1].splitlines()
    assert short[0] == "No codemod found in this statement what it looks for."
    assert short[1] == "The error may be one that no rule covers, or one that is judged at another line."
    assert "last name of what is called" not in text


def test_of_a_line_with_a_finding_it_is_not_said(folder: Path) -> None:
    assert "no rule covers" not in asked(folder, "train.py:7")[1]


def test_of_one_codemod_nothing_is_said_of_the_others(folder: Path) -> None:
    (folder / "train.py").write_text(SIZES)
    _, text = asked(folder, "train.py:9", "--select", "DDP703")
    assert "Nothing in this statement is what DDP703 looks for.\n" in text
    assert "no rule covers" not in text


def test_the_line_of_the_function_that_the_codemod_judged_is_named(folder: Path) -> None:
    (folder / "train.py").write_text(SIZES.replace("args.backend", '"nccl" if args.fast else "gloo"'))
    told = reasons(asked(folder, "train.py:9", "--select", "DDP703")[1], "DDP703")
    assert told[0].startswith("judged line 7 of this function: asked whether")


def test_a_line_of_another_function_is_not(folder: Path) -> None:
    (folder / "train.py").write_text(
        SIZES.replace("    loader =", "    work(args, model, rows)\n\n\ndef work(args, model, rows):\n    loader =")
    )
    _, text = asked(folder, "train.py:12", "--select", "DDP703")
    assert "judged line" not in text


def test_every_reason_to_leave_a_file_out_is_a_line(folder: Path) -> None:
    (folder / "train.py").write_text("import os\n\n\ndef save(model, folder):\n    os.makedirs(folder)\n    model.state_dict()\n")
    _, text = asked(folder, "train.py:6")
    left = next(p for p in text.split("\n\n") if "leave the file out" in p).splitlines()
    assert len(left) > 2
    told = [line.strip().partition(": ") for line in left[1:]]
    assert all(code.startswith("DDP") for code, _, _ in told)
    given = [reason for _, _, reason in told if reason]
    assert given
    assert len(given) == len(set(given))
    assert all(
        reason.startswith(("asked ", "looked for ", "no file ", "by ", "line ")) and "[at:end]" not in reason for reason in given
    )


def test_a_yes_to_what_is_not_recognises_nothing() -> None:
    assert asks_what_is_not("False where the function stands in another file.")
    assert not asks_what_is_not("True where the function stands in another file.")


def test_those_that_tell_most_of_the_line_come_first(folder: Path) -> None:
    (folder / "train.py").write_text(SIZES)
    parts = asked(folder, "train.py:9")[1].split("\n\n")
    judges = [at for at, p in enumerate(parts) if "and judges another one:" in p]
    looks = [at for at, p in enumerate(parts) if "looked at it, and reports nothing here" in p]
    assert judges
    assert looks
    assert max(judges) < min(looks)


def test_words_that_no_file_holds_are_one_reason() -> None:
    assert no_file_holds([b"a(", b".b"]) == "no file of the project holds `a(` or `.b`"


def test_every_start_of_a_program_has_its_sentence() -> None:
    assert set(place_facts._STARTS) == set(Start)
