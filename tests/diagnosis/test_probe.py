"""`ddpfix probe` on real programs: it names what leads to no loss, changes no number, and passes on what is the program's."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.api.evidence import from_json
from tests.diagnosis.probed import ACCELERATE, HF, LIGHTNING, QUIET, RAW, last_line, plain, probe, watched_python, with_branch
from tests.gitrepos import make, own_settings, put, sh
from tests.programs import ddpfix
from tests.prove.programs import needs_torch

pytestmark = [pytest.mark.proof, pytest.mark.torch, needs_torch]


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"needs {name}")


def line_of(source: str, text: str) -> int:
    return next(i for i, line in enumerate(source.splitlines(), 1) if text in line)


def numbers(output: bytes) -> list[bytes]:
    """The losses as printed; what transformers says of the time that it took is left out."""
    return [line for line in output.splitlines() if line[:1].isdigit()]


FRAMEWORKS = [
    pytest.param(RAW, "torch", "Net", ("aux.weight", "aux.bias"), (), "DDP(Net(", id="raw"),
    pytest.param(LIGHTNING, "Lightning", "Lit", (), ("other.weight", "other.bias"), "pl.Trainer(", id="lightning",
                 marks=needs("lightning")),
    pytest.param(HF, "transformers", "Classifier", ("second.weight", "second.bias"), (), "TrainingArguments(\n", id="hf",
                 marks=needs("transformers")),
    pytest.param(ACCELERATE, "Accelerate", "Net", ("aux.weight", "aux.bias"), (), "Accelerator(cpu", id="accelerate",
                 marks=needs("accelerate")),
]  # fmt: skip


@pytest.mark.parametrize(("source", "framework", "model", "never", "sometimes", "made"), FRAMEWORKS)
def test_the_branch_is_named(
    tmp_path: Path, source: str, framework: str, model: str, never: tuple[str, ...], sometimes: tuple[str, ...], made: str
) -> None:
    text = with_branch(source)
    # a Python of its own, which imports the framework under the hook: the other tests fork one that has done so
    done, evidence = probe(tmp_path, text, "--steps", "20", command=(sys.executable, "train.py"))
    assert done.returncode == 0, done.stderr.decode()
    assert evidence is not None
    (row,) = evidence.observed
    assert (row.framework, row.model, row.steps) == (framework, model, 20)
    assert (row.never, row.sometimes) == (never, sometimes)
    assert dict(row.counts) == {**dict.fromkeys(never, 20), **dict.fromkeys(sometimes, 10)}
    assert ("train.py", line_of(text, made.strip())) in row.places
    assert [round(chance, 3) for _, chance in row.missed] == [0.818, 0.358, 0.122]
    assert evidence.command == f"{Path(sys.executable).name} train.py"
    assert {"python", "torch"} <= set(evidence.versions)
    said = "ddpfix: stopped by ddpfix after 20 steps; 2 parameters were left out; written to seen.json"
    assert last_line(done).startswith(said)
    assert f"{(never or sometimes)[0].partition('.')[0]} (2 parameters)" in done.stderr.decode()


@pytest.mark.parametrize(("source", "framework"), [pytest.param(*p.values[:2], id=p.id, marks=p.marks) for p in FRAMEWORKS])
def test_no_number_changes_and_a_model_without_such_a_branch_is_clean(tmp_path: Path, source: str, framework: str) -> None:
    alone = plain(tmp_path, source)
    assert alone.returncode == 0, alone.stderr.decode()
    done, evidence = probe(tmp_path, source, "--steps", "1000")
    assert numbers(done.stdout) == numbers(alone.stdout) and len(numbers(done.stdout)) == 30
    assert done.returncode == 0
    assert evidence is not None
    (row,) = evidence.observed
    assert (row.framework, row.steps, row.parameters) == (framework, 30, ())
    assert last_line(done).startswith("ddpfix: the program ended by itself; no parameter was left out; written to seen.json")


def test_the_run_is_stopped_with_its_own_cleaning_up_and_its_files_are_as_they_were(tmp_path: Path) -> None:
    source = RAW.replace("for step in range(30):", "import atexit\natexit.register(print, 'left')\nfor step in range(10**9):")
    done, evidence = probe(tmp_path, source, "--steps", "7")
    assert done.returncode == 0 and evidence is not None
    assert [t.split()[0] for t in done.stdout.decode().splitlines()] == [*map(str, range(7)), "left"]
    assert (tmp_path / "train.py").read_text() == source
    assert {p.name for p in tmp_path.iterdir()} == {"train.py", "seen.json"}


def test_a_program_that_catches_everything_is_stopped_as_well(tmp_path: Path) -> None:
    source = RAW.replace("    y, other = model(torch.randn(4, 8))", "    try:\n        y, other = model(torch.randn(4, 8))\n"
                         "    except BaseException:\n        continue").replace("range(30)", "range(10**9)")  # fmt: skip
    done, evidence = probe(tmp_path, source, "--steps", "5")
    assert done.returncode == 0 and evidence is not None and evidence.observed[0].steps == 5


@pytest.mark.parametrize(
    ("crash", "status", "said"),
    [
        ("raise ValueError('the data is gone')", 1, "ValueError: the data is gone"),
        ("raise SystemExit(7)", 7, ""),
        ("os.kill(os.getpid(), 9)", 128 + signal.SIGKILL, ""),
    ],
)
def test_a_crash_is_passed_on_and_what_was_seen_is_kept(tmp_path: Path, crash: str, status: int, said: str) -> None:
    source = with_branch(RAW).replace("    optimizer.step()\n", f"    optimizer.step()\n    if step == 3:\n        {crash}\n")
    done, evidence = probe(tmp_path, source)
    assert done.returncode == status
    assert evidence is not None and evidence.observed[0].never == ("aux.weight", "aux.bias")
    assert f"the program failed (status {status})" in last_line(done)
    if said:
        alone = plain(tmp_path, source)
        traceback = alone.stderr.decode()[alone.stderr.decode().index("Traceback") :]
        assert traceback in done.stderr.decode() and said in traceback


def test_an_interrupted_probe_keeps_what_it_saw(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(with_branch(RAW).replace("range(30)", "range(10**9)"))
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "probe", "--steps", "100000000", "--out", "seen.json", "--"]
    own = subprocess.Popen(
        [*command, sys.executable, "train.py"], cwd=tmp_path, env={**os.environ, **QUIET}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert own.stdout is not None
        for _ in range(5):
            own.stdout.readline()
        os.killpg(own.pid, signal.SIGINT)
        _, said = own.communicate(timeout=180)
    finally:
        if own.poll() is None:
            os.killpg(own.pid, signal.SIGKILL)
    assert own.returncode == 130
    assert b"the program failed (status 130); 2 parameters were left out" in said
    seen = from_json((tmp_path / "seen.json").read_text()).observed[0]
    assert seen.steps >= 4 and seen.never == ("aux.weight", "aux.bias")


@needs("accelerate")
def test_a_traceback_through_watched_code_holds_the_users_frames_and_torchs(tmp_path: Path) -> None:
    fails = """\
        h = self.body(x)
        try:
            h.missing()
        except AttributeError as error:
            raise ValueError("inside") from error
"""
    source = ACCELERATE.replace("        h = self.body(x)\n", fails)
    alone = plain(tmp_path, source).stderr.decode().splitlines()
    done, _ = probe(tmp_path, source)
    said = done.stderr.decode().splitlines()
    assert any("direct cause" in line for line in alone)
    assert not [line for line in said if "_ddpfix" in line]
    own = [line for line in alone if "train.py" in line or not line.startswith(" ")]
    assert [line for line in said if line in own] == own


def test_a_command_that_is_not_there_and_a_program_without_a_wrap(tmp_path: Path) -> None:
    done = ddpfix(tmp_path, "probe", "--", "no-such-python", "train.py")
    assert done.returncode == 2 and b"no-such-python cannot be run" in done.stderr
    done, evidence = probe(tmp_path, "print('nothing')\n")
    assert (done.returncode, done.stdout, evidence) == (2, b"nothing\n", None)
    assert "no backward pass of a wrapped model was seen, so no evidence was written" in last_line(done)
    assert "torchrun train.py" in last_line(done)


# One device


NO_GROUP = with_branch(RAW).replace('dist.init_process_group("gloo")\n', "").replace("dist.destroy_process_group()\n", "")


def test_a_wrap_without_a_group_is_answered_by_a_stand_in_and_said(tmp_path: Path) -> None:
    alone = plain(tmp_path, NO_GROUP)
    assert alone.returncode == 1 and b"Default process group has not been initialized" in alone.stderr
    source = NO_GROUP.replace("DDP(Net(),", "DDP(Net(), device_ids=[0],").replace(
        "    print(step", "    with model.no_sync():\n        assert isinstance(model, DDP) and model.module\n    print(step"
    )
    done, evidence = probe(tmp_path, source, "--steps", "5")
    assert done.returncode == 0, done.stderr.decode()
    assert evidence is not None
    assert evidence.observed[0].never == ("aux.weight", "aux.bias") and evidence.observed[0].flag is True
    assert b"DistributedDataParallel is a stand-in that passes calls through" in done.stderr


def test_the_flag_off_does_not_stop_the_run_in_its_second_step(tmp_path: Path) -> None:
    done, evidence = probe(tmp_path, with_branch(RAW).replace(", find_unused_parameters=True", ""), "--steps", "5")
    assert done.returncode == 0 and evidence is not None
    assert (evidence.observed[0].steps, evidence.observed[0].flag) == (5, False)


def test_torchrun_spawn_and_nccl_become_one_process(tmp_path: Path) -> None:
    own = with_branch(RAW).replace(
        'os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")\n', ""
    ).replace('"gloo"', '"nccl"')  # fmt: skip
    command = (watched_python(), "-m", "torch.distributed.run", "--nproc_per_node", "4", "train.py")
    done, evidence = probe(tmp_path, "import os\nassert os.environ['LOCAL_RANK'] == '0'\n" + own, "--steps", "5", command=command)
    assert done.returncode == 0, done.stderr.decode()
    assert evidence is not None and evidence.observed[0].never == ("aux.weight", "aux.bias")
    assert b"torchrun was left out" in done.stderr and b"NCCL was asked for; run with gloo" in done.stderr
    top, loop = own.split('dist.init_process_group("nccl")\n')
    work = "def work(rank, world):\n    dist.init_process_group('nccl', 'tcp://127.0.0.1:29999', world_size=world, rank=rank)\n"
    body = "".join(f"    {line}\n" for line in loop.splitlines())
    start = "if __name__ == '__main__':\n    torch.multiprocessing.spawn(work, args=(4,), nprocs=4)\n"
    done, evidence = probe(tmp_path, top + work + body + start, "--steps", "5")
    assert done.returncode == 0, done.stderr.decode()
    assert evidence is not None and evidence.observed[0].never == ("aux.weight", "aux.bias")
    assert b"4 processes were to be spawned" in done.stderr


@needs("lightning")
def test_a_trainer_for_eight_gpus_runs_on_what_there_is(tmp_path: Path) -> None:
    source = with_branch(LIGHTNING).replace('accelerator="cpu", devices=1, strategy="ddp"', 'accelerator="gpu", devices=8, '
        'strategy="ddp_spawn_find_unused_parameters_true", sync_batchnorm=True')  # fmt: skip
    done, evidence = probe(tmp_path, source, "--steps", "6")
    assert done.returncode == 0, done.stderr.decode()
    assert evidence is not None
    assert (evidence.observed[0].sometimes, evidence.observed[0].flag) == (("other.weight", "other.bias"), True)
    assert b"a GPU was asked for; run on the CPU" in done.stderr and b"devices=8 was asked for; run with 1" in done.stderr


# Graphs


BODY = """\
import copy, random
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
random.seed(0)
"""


def test_a_layer_dropped_at_random_is_counted(tmp_path: Path) -> None:
    source = BODY + """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.layers:
            if random.random() > 0.3:
                x = layer(x)
            else:
                print(layer is self.layers[0], flush=True)
        return self.head(x)

model = DDP(Net())
for _ in range(40):
    model(torch.randn(2, 4)).sum().backward()
    model.zero_grad()
"""
    done, evidence = probe(tmp_path, source)
    assert evidence is not None, done.stderr.decode()
    drops = done.stdout.decode().split()
    counts = dict(evidence.observed[0].counts)
    assert counts["layers.0.weight"] == drops.count("True") > 0
    assert counts["layers.1.bias"] == drops.count("False") > 0
    assert set(evidence.observed[0].sometimes) == set(counts) and not evidence.observed[0].never


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_hides_nothing(tmp_path: Path, reentrant: bool) -> None:
    source = BODY + f"""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.dead = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        return self.c(checkpoint(self.b, self.a(x), use_reentrant={reentrant}))

model = DDP(Net())
for step in range(6):
    model(torch.randn(2, 4)).sum().backward()
    model.zero_grad(set_to_none=step % 2 == 0)
"""
    done, evidence = probe(tmp_path, source)
    assert evidence is not None, done.stderr.decode()
    row = evidence.observed[0]
    assert (row.never, row.sometimes, row.reentrant, row.steps) == (("dead.weight", "dead.bias"), (), reentrant, 6)
    assert (b"a reentrant checkpoint hides a part of the graph" in done.stderr) is reentrant


def test_two_losses_of_one_forward_are_one_step_and_two_models_are_told_apart(tmp_path: Path) -> None:
    source = BODY + """\
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        return self.a(x), self.b(x)

both = DDP(Two())
G, D = DDP(nn.Linear(4, 4)), DDP(Two())
for _ in range(4):
    one, other = both(torch.randn(2, 4))
    one.sum().backward()
    other.sum().backward()
    fake = G(torch.randn(2, 4))
    (D(torch.randn(2, 4))[0].sum() - D(fake.detach())[0].sum()).backward()
    D(fake)[0].sum().backward()
"""
    done, evidence = probe(tmp_path, source)
    assert evidence is not None, done.stderr.decode()
    seen = {(row.model, row.places[0][1] if row.places else 0): (row.steps, row.parameters) for row in evidence.observed}
    first = line_of(source, "both = DDP")
    assert seen[("Two", first)] == (4, ())
    assert seen[("Linear", first + 1)] == (4, ())
    assert seen[("Two", first + 1)] == (8, ("b.weight", "b.bias"))


@needs("lightning")
def test_each_backward_by_hand_is_a_step_and_what_is_frozen_after_the_wrap_is_left_out(tmp_path: Path) -> None:
    source = """\
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader


class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d, self.late = (torch.nn.Linear(4, 4) for _ in range(3))

    def training_step(self, batch, batch_idx):
        self.late.requires_grad_(False)
        for optimizer, fake in zip(self.optimizers(), (self.g(batch), self.g(batch).detach())):
            self.toggle_optimizer(optimizer)
            self.manual_backward(self.late(self.d(fake)).mean())
            optimizer.step()
            optimizer.zero_grad()
            self.untoggle_optimizer(optimizer)

    def configure_optimizers(self):
        return torch.optim.SGD(self.g.parameters(), 0.1), torch.optim.SGD(self.d.parameters(), 0.1)


pl.Trainer(
    accelerator="cpu", devices=1, strategy="ddp_find_unused_parameters_true", max_epochs=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
).fit(Gan(), DataLoader(torch.randn(20, 4), batch_size=4))
"""
    done, evidence = probe(tmp_path, source)
    assert evidence is not None, done.stderr.decode()
    (row,) = evidence.observed
    assert row.steps == 10
    assert row.never == ("late.weight", "late.bias")
    assert {n: k for n, k in row.counts if n not in row.never} == dict.fromkeys(("g.weight", "g.bias", "d.weight", "d.bias"), 5)


def test_copies_and_pickles_of_a_watched_model_work(tmp_path: Path) -> None:
    if importlib.util.find_spec("accelerate") is None:
        pytest.skip("needs accelerate")
    source = ACCELERATE + """\
import copy, io, subprocess, sys
average = copy.deepcopy(model)
average(torch.randn(2, 8))["y"].sum().backward()
torch.save(model, "model.pt")
load = "import sys, torch; sys.argv = ['x']; from train_net import Net; import __main__; __main__.Net = Net; " \\
       "print(torch.load('model.pt', weights_only=False)(torch.ones(1, 8))['y'].shape, 'ddpfix' in str(sys.modules))"
open("train_net.py", "w").write(open("train.py").read().partition("set_seed(0)")[0])
print(subprocess.run([sys.executable, "-c", load], capture_output=True, text=True))
"""
    done, evidence = probe(tmp_path, source, "--steps", "1000")
    assert done.returncode == 0 and evidence is not None, done.stderr.decode()
    assert "torch.Size([1, 1]) False" in done.stdout.decode()


# Into the codemods


def test_apply_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, tmp_path)
    hub = "from torch import nn\n\n\ndef load(name):\n    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))\n"
    head, _, loop = RAW.partition("class Net")
    source = head + "import importlib\n\n" + loop[loop.index("os.environ.update") :].replace(
        "DDP(Net(),", "DDP(importlib.import_module('hub').load('x'),"
    ).replace("y, other = ", "y = ")
    repo = make(tmp_path, {"train.py": source.encode(), "hub.py": hub.encode(), "README.md": b"text\n"})
    told = ddpfix(repo, "diff", "--unsafe-fixes", "--select", "DDP001")
    assert told.stdout == b""
    done, evidence = probe(repo, source, "--steps", "25")
    assert done.returncode == 0 and evidence is not None and evidence.base == sh(repo, "rev-parse", "HEAD")
    offered = ddpfix(repo, "diff", "--evidence", "seen.json", "--select", "DDP001")
    assert offered.stdout == b"", "not by default"
    put(repo, {"README.md": b"other text, the same code\n"})
    sh(repo, "commit", "-qam", "words")
    applied = ddpfix(repo, "apply", "--unsafe-fixes", "--evidence", "seen.json", "--select", "DDP001")
    assert applied.returncode == 0, applied.stderr.decode()
    text = (repo / "train.py").read_text()
    assert "find_unused_parameters=False" in text and "in 25 steps of a probe" in text
    summary = (repo / "DDPFIX_SUMMARY.md").read_text()
    assert "seen.json" in summary and "had a path to the loss in each of 25 steps" in summary
    assert str(tmp_path) not in summary
    refused = ddpfix(repo, "diff", "--evidence", "seen.json")
    assert refused.returncode == 2 and b"it was seen on other code: train.py" in refused.stderr
