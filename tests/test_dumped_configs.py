"""DDP202: a configuration of mmcv or mmengine that each rank writes into one file."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = UnguardedFileIo

SCRIPT = """import argparse
import os.path as osp
import torch.distributed as dist
{imports}


def main():
    args = argparse.ArgumentParser().parse_args()
{body}
    dist.init_process_group('gloo')


if __name__ == '__main__':
    main()
"""


def script(*lines: str, imports: str = "from mmengine.config import Config") -> str:
    return SCRIPT.format(imports=imports, body="\n".join(f"    {line}" for line in lines))


READ = "cfg = Config.fromfile(args.config)"


@pytest.mark.parametrize(
    ("imports", "lines"),
    [
        ("from mmengine.config import Config", (READ, "cfg.dump(osp.join(cfg.out, 'run.py'))")),
        ("from mmcv import Config", (READ, "cfg.merge_from_dict(args.options)", "cfg.dump(osp.join(cfg.out, 'run.py'))")),
        ("import mmcv", ("settings = mmcv.Config.fromfile(args.config)", "settings.dump(file='out/run.py')")),
    ],
)
def test_every_rank_dumps_it(imports: str, lines: tuple[str, ...]) -> None:
    found = check_told(RULE, script(*lines, "show(open('run.py').read())", imports=imports), reason="no group exists yet")
    assert "dump(…) writes" in found.message


def test_a_file_that_nobody_reads() -> None:
    """Each rank writes the same text, and no run misses it."""
    check_nothing(RULE, script(READ, "cfg.dump(osp.join(cfg.out, 'run.py'))"))
    check_nothing(RULE, script(READ, "cfg.dump(osp.join(cfg.out, 'run.py'))", "show(open('other.py').read())"))


@pytest.mark.parametrize(
    "lines",
    [
        (READ, "text = cfg.dump()"),
        (READ, "if int(os.environ['RANK']) == 0:", "    cfg.dump(args.out)"),
        ("cfg = args.model", "cfg.dump(args.out)"),
        (READ, "cfg = args.model", "cfg.dump(args.out)"),
        (READ, "cfg.dump(osp.join(cfg.out, f\"{os.environ['RANK']}.py\"))"),
    ],
)
def test_what_is_none(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, script(*lines, imports="import os\nfrom mmengine.config import Config"))


def test_under_a_test_of_the_rank_where_one_is_at_hand() -> None:
    body = (
        "dist.init_process_group('gloo')",
        "if dist.get_rank() == 0:",
        "    print('started')",
        READ,
        "cfg.dump(cfg.out)",
    )
    source = script(*body).replace("    dist.init_process_group('gloo')\n\n\nif", "\n\nif")
    (found,) = findings_of(RULE, source)
    assert found.edits, found.message
