"""Job files on their whole way: check, diff, apply and undo in a repository, and the JSON of a finding over several lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
FILES = {
    "requirements.txt": "transformers>=5.0\n",
    "train.py": "from transformers import HfArgumentParser, TrainingArguments\n\n"
    "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n",
    "jobs/run.sh": "#!/bin/sh\ntorchrun train.py \\\n  --evaluation_strategy epoch \\\n  --output_dir out\n",
    "jobs/job.yaml": "command: >-\n  accelerate launch train.py\n  --no_cuda True\nname: x  # y\n",
    "jobs/old.sh": "# ddpfix: ignore[DDP602] for the old image\npython train.py --evaluation_strategy epoch\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "jobs/run.sh").chmod(0o755)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path


def ddpfix(root: Path, *words: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE), "HOME": str(root / ".git"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "ddpfix", *words], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_job_files_are_fixed_committed_and_taken_back(repository: Path) -> None:
    report = json.loads(ddpfix(repository, "check", "--select", "DDP602", "--output-format", "json", "."))
    assert [(f["path"], f["line"]) for f in report["findings"]] == [("jobs/job.yaml", 3), ("jobs/run.sh", 3)]
    patch = ddpfix(repository, "diff", "--select", "DDP602", ".")
    subprocess.run(["git", "-C", repository, "apply", "--check"], input=patch, text=True, check=True)
    ddpfix(repository, "apply", "--select", "DDP602", ".")
    assert (repository / "jobs/run.sh").read_text() == FILES["jobs/run.sh"].replace("evaluation_", "eval_")
    assert (repository / "jobs/run.sh").stat().st_mode & 0o111
    assert (repository / "jobs/job.yaml").read_text() == FILES["jobs/job.yaml"].replace("no_cuda", "use_cpu")
    assert json.loads(ddpfix(repository, "check", "--select", "DDP602", "--output-format", "json", "."))["findings"] == []
    ddpfix(repository, "undo", ".")
    assert {name: (repository / name).read_text() for name in FILES} == FILES
