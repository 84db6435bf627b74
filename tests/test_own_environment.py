"""The project's own rank from the environment is asked in a script of Lightning, above the Trainer as well."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of, fix

LOOP = """\
def get_rank():
    for name in ('RANK', 'LOCAL_RANK', 'SLURM_PROCID'):
        rank = os.environ.get(name)
        if rank is not None:
            return int(rank)
    return 0
"""
PLAIN = "def get_rank():\n    return int(os.environ.get('LOCAL_RANK', 0))\n"
SCRIPT = """\
import os

import pytorch_lightning as pl

{helper}

def folder(name):
    if get_rank() == 0:
        return name
    return None


def main():
    loader = make(folder('out'))
    print('batches', len(loader))
    trainer = pl.Trainer(strategy='ddp')
    print('starting')
    trainer.fit(loader)


if __name__ == '__main__':
    main()
"""
ABOVE = "    if get_rank() == 0:\n        print('batches', len(loader))\n"
BELOW = "    if get_rank() == 0:\n        print('starting')\n"


def written(source: str, files: dict[str, str] | None = None) -> str:
    (text,) = fix(UnguardedPrint, source, files).changed.values()
    return text.decode()


@pytest.mark.parametrize("helper", [LOOP, PLAIN, PLAIN.replace("os.environ.get", "os.getenv"), PLAIN.replace(", 0)", ", '0')")])
def test_lines_above_and_below_the_trainer_ask_it(helper: str) -> None:
    fixed = written(SCRIPT.format(helper=helper))
    assert ABOVE in fixed and BELOW in fixed


def test_a_function_of_another_file() -> None:
    source = SCRIPT.format(helper="from ranks import get_rank\n")
    fixed = written(source, {"ranks.py": f"import os\n\n\n{LOOP}"})
    assert ABOVE in fixed and BELOW in fixed


@pytest.mark.parametrize(
    "helper",
    [
        LOOP.replace("'LOCAL_RANK', ", ""),  # Lightning sets no other one
        LOOP.replace("'RANK'", "'NODE_RANK'"),
        LOOP.replace("return 0", "return -1"),
        LOOP.replace("return 0", "return None"),
        LOOP.replace("    return 0", "    return torch.distributed.get_rank()"),
        PLAIN.replace(", 0)", ", 1)"),
        PLAIN.replace(", 0)", ")"),
    ],
)
def test_what_does_not_tell_the_ranks_apart_is_not_asked(helper: str) -> None:
    source = SCRIPT.format(helper=helper)
    texts = [e for f in findings_of(UnguardedPrint, source) for e in f.edits]
    assert not any("get_rank()" in str(e) for e in texts)


def test_a_file_is_kept_to_one_rank_by_lightning() -> None:
    source = SCRIPT.format(helper=LOOP).replace("print('batches', len(loader))", "open('a.txt', 'w').write('x')")
    texts = [str(e) for f in findings_of(UnguardedFileIo, source) for e in f.edits]
    assert texts and not any("get_rank()" in text for text in texts)  # it may be the rank on the node
