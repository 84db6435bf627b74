"""What the pages on renames and plug-ins tell one to type does what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from ddpfix.testing import check_nothing, check_transformed, plugged_in
from tests.gitrepos import make
from tests.programs import ddpfix

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}(?: [^\n]*)?\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


def commands(page: str) -> list[list[str]]:
    return [shlex.split(line) for block in blocks(page, "console") for line in block.splitlines()]


def status(root: Path, command: list[str], env: dict[str, str] | None = None) -> int:
    if command[0] == "ddpfix":
        return ddpfix(root, *command[1:], env=env).returncode
    own = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-q -p no:cacheprovider -k 'not runs_right'"}
    environment = {**os.environ, **own, **(env or {})}
    return subprocess.run([sys.executable, *command[1:]], cwd=root, env=environment, capture_output=True, check=False).returncode


def test_the_renames_of_the_page(tmp_path: Path) -> None:
    source = b"from utils.dist import is_main, init_group\n\ninit_group(backend_name='nccl')\nprint(is_main(), x.rank0)\n"
    dist = b"def is_main(): ...\n\n\ndef init_group(backend): ...\n\n\nclass Meter:\n    def sync(self): ...\n"
    config = blocks("rewrites.md", "toml")[0].encode()
    root = make(tmp_path, {"ddpfix.toml": config, "utils/__init__.py": b"", "utils/dist.py": dist, "a.py": source})
    assert [status(root, c) for c in commands("rewrites.md")] == [1, 1, 0]
    assert (root / "a.py").read_text() == (
        "from utils.distributed import is_rank_zero, init_group\n\ninit_group(backend='nccl')\nprint(is_rank_zero(), x.is_zero)\n"
    )
    assert b"def is_rank_zero" in (root / "utils/dist.py").read_bytes()
    assert b"def reduce(self)" in (root / "utils/dist.py").read_bytes()


def test_the_commands_of_the_page_on_plug_ins(tmp_path: Path) -> None:
    root = make(tmp_path, {"a.py": b"from team import old_barrier\n\nold_barrier()\n"})
    steps = commands("plugins.md")
    (root / "ddpfix.toml").write_text(blocks("plugins.md", "toml")[0])
    assert [c[:2] for c in steps] == [["ddpfix", "new-codemod"], ["ddpfix", "new-codemod"], ["python", "-m"], ["ddpfix", "check"],
                                      ["ddpfix", "diff"], ["python", "-P"]]  # fmt: skip
    assert [status(root, c) for c in steps[:5]] == [0, 0, 0, 1, 1]
    (root / "acme_ddp").mkdir()
    (root / "acme_ddp/__init__.py").touch()
    (root / "acme_ddp/no_old_barrier.py").write_bytes((root / "ci/codemods/no_old_barrier.py").read_bytes())
    binding = "from acme_ddp.no_old_barrier import NoOldBarrier\nfrom codemods.libcst_commands import command_for\n\n"
    (root / "acme_ddp/commands.py").write_text(f"{binding}NoOldBarrier = command_for(NoOldBarrier, __name__)\n")
    (root / "train.py").write_bytes((root / "a.py").read_bytes())
    env = {"PYTHONPATH": os.pathsep.join([str(root), str(ROOT)])}
    assert status(root, [*steps[5][:-1], "--unsafe-fixes", "train.py"], env) == 0
    assert (root / "train.py").read_text() == "from team import old_barrier\n\nbarrier()\n"


def test_the_codemod_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "loud_save.py"
    file.write_text(blocks("plugins.md", "python")[0])
    (codemod,) = plugged_in(file)
    check_transformed(codemod, "save_all()\n", "save_once()\n")
    check_nothing(codemod, "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    save_all()\n")
