"""Which bytes may hold a guard by rank, before a file is parsed."""

from __future__ import annotations

import pytest

from codemods.data.rank_words import RANK_GUARDS, RANK_TEST

TESTS = (
    "if dist.get_rank() == 0:", 'if int(os.environ.get("RANK", "0")) == 0:', 'if int(os.environ["LOCAL_RANK"]) in (-1, 0):',
    "if args.local_rank in [-1, 0]:", "if not dist.get_rank():", "if not rank and args.save:", "main = not get_rank()",
    "if rank != 0: return", "if rank > 0:", "if rank < 1:", "r = dist.get_rank()", "if trainer.is_global_zero:",
    "while accelerator.is_main_process and on:", "if state.is_world_process_zero:", "if master_process:", "if is_master(args):",
    "save = self.is_main_process\n", "if args.should_save:", "if accelerator.process_index == 0:", "if is_rank_zero():",
    "if rank0():\n", "x = 1 if is_main_process else 2", 'if int(os.environ["SLURM_PROCID"]) == 0:', "if self.rank is 0:",
    "match rank:\n    case 0:", "if (r := dist.get_rank()) == 0:", "if -1 <= rank <= 0:", "if rank == FIRST:", "if rank:",
    "if is_lead_process():", "if xm.is_master_ordinal():", "if xm.get_ordinal() == 0:", "if is_main_worker:",
)  # fmt: skip
NOT_TESTS = (
    "if self.q_lora_rank is None:", "if rank is not None:", "if bigram not in self.bpe_ranks:",
    "from lightning.utilities.rank_zero import rank_zero_warn", "rank_zero_warn(text)", "# .../blob/master/train.py",
    "def is_global_zero(self) -> bool:", "def rank(self):\n", "bar = tqdm(total=n, disable=(self.rank != 0), desc=text)",
    "rank = dist.get_rank()", "tp_rank = group.rank",
)  # fmt: skip


@pytest.mark.parametrize("line", TESTS)
def test_a_line_that_may_guard(line: str) -> None:
    assert RANK_TEST.search(f"{line}\n    save()\n".encode())


@pytest.mark.parametrize("line", NOT_TESTS)
def test_a_line_that_guards_nothing(line: str) -> None:
    assert not any(site.search(f"{line}\n    f()\n".encode()) for site in RANK_GUARDS)


def test_a_decorator_is_a_guard_and_no_test() -> None:
    source = b"@rank_zero_only\ndef f():\n    save()\n"
    assert any(site.search(source) for site in RANK_GUARDS) and not RANK_TEST.search(source)


IDLE = "class A:\n    def f(self):\n        if self.accelerator.is_main_process:\n            {}\n        go()\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_block_that_only_logs_a_line_does_not_count(newline: str) -> None:
    assert not RANK_TEST.search(IDLE.format('logger.info(f"{n} processes")').replace("\n", newline).encode())


@pytest.mark.parametrize(
    "body",
    [
        "logger.info(text)\n            dist.barrier()", "logger.info(text)\n\n            dist.barrier()",
        "logger.info(text)\n        # later\n            dist.barrier()", "logger.info(text)\n        else:\n            g()",
        "logger.info(gather(text))", "print(trainer.log_dir)", "dist.barrier()",
    ],
)  # fmt: skip
def test_a_block_that_does_more_than_log_counts(body: str) -> None:
    assert RANK_TEST.search(IDLE.format(body).encode())
