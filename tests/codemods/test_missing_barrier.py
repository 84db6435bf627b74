"""DDP302: nobody waits for what rank 0 writes."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.shown_runs import start_at, unseen_run
from codemods.api.findings import Applicability
from codemods.store.project import Project
from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = MissingBarrier
ACC = "import os, json, torch\nfrom accelerate import Accelerator\n\n"
DIST = "import os, torch\nimport torch.distributed as dist\n\n"


def hook(body: str, *, base: str = "Callback", head: str = "import lightning.pytorch as pl\nimport torch") -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").split("\n"))
    return f"{head}\n\n\nclass C(pl.{base}):\n{lines}\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after)


def test_a_callback_hook() -> None:
    before = """
def on_train_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        # best weights
        torch.save(pl_module.state_dict(), self.path)  # one file

    # everyone
    pl_module.load_state_dict(torch.load(self.path))
"""
    after = """
def on_train_end(self, trainer, pl_module):
    if trainer.is_global_zero:
        # best weights
        torch.save(pl_module.state_dict(), self.path)  # one file
    trainer.strategy.barrier()

    # everyone
    pl_module.load_state_dict(torch.load(self.path))
"""
    check_transformed(RULE, hook(before), hook(after))


def test_a_hook_of_a_module_with_two_blanks() -> None:
    check_transformed(
        RULE,
        """
        import lightning.pytorch as pl
        import os

        class M(pl.LightningModule):
          def on_fit_start(self):
            if self.trainer.is_global_zero:
              os.makedirs(self.out)
            with open(os.path.join(self.out, "a.txt"), "a") as f:
              f.write("x")
        """,
        """
        import lightning.pytorch as pl
        import os

        class M(pl.LightningModule):
          def on_fit_start(self):
            if self.trainer.is_global_zero:
              os.makedirs(self.out)
            self.trainer.strategy.barrier()
            with open(os.path.join(self.out, "a.txt"), "a") as f:
              f.write("x")
        """,
    )


def test_a_base_in_another_file() -> None:
    source = "import os\nfrom base import Base\nclass C(Base):\n    def on_fit_end(self, trainer, m):\n"
    before = (
        "        if trainer.is_global_zero:\n            self.p.write_text('x')\n"
        "        print(self.p.read_text())\n"
    )
    after = before.replace("        print", "        trainer.strategy.barrier()\n        print")
    base = "import lightning.pytorch as pl\nclass Base(pl.Callback):\n    pass\n"
    files = {"base.py": base, "requirements.txt": "lightning==2.2\n"}
    check_transformed(RULE, source + before, source + after, files=files)


def test_an_unpinned_pytorch_lightning() -> None:
    body = (
        "def on_fit_end(self, trainer, m):\n    if trainer.is_global_zero:\n"
        "        torch.save(m, self.p)\n{}    torch.load(self.p)"
    )
    head = "import pytorch_lightning as pl\nimport torch"
    fixed = check_transformed(
        RULE, hook(body.format(""), head=head), hook(body.format("    trainer.strategy.barrier()\n"), head=head), unsafe=True
    )
    assert "1.6 or newer" in fixed[0].reason


def test_behind_fit_in_a_script() -> None:
    head = (
        "import lightning.pytorch as pl\nimport torch\n\ntrainer = pl.Trainer()\n"
        "trainer.fit(m)\nif trainer.is_global_zero:\n    torch.save(m, p)\n"
    )
    check_transformed(RULE, f"{head}torch.load(p)\n", f"{head}trainer.strategy.barrier()\ntorch.load(p)\n")


def test_accelerate_with_a_name_for_the_test_and_for_the_path() -> None:
    before = f"""{ACC}def f(accelerator, args):
    first = accelerator.is_main_process
    out = os.path.join(args.dir, "a.json")
    if first:
        with open(out, "w") as file:
            json.dump(1, file)
    return json.load(open(os.path.join(args.dir, "a.json")))
"""
    check_transformed(RULE, before, before.replace("    return", "    accelerator.wait_for_everyone()\n    return"))


def test_fabric() -> None:
    before = (
        "from lightning.fabric import Fabric\nimport os\ndef f(fabric, p):\n"
        "\tif fabric.global_rank == 0:\n\t\tp.mkdir()\n\tfor x in p.iterdir():\n\t\tuse(x)\n"
    )
    check_transformed(RULE, before, before.replace("\tfor", "\tfabric.barrier()\n\tfor"))


def test_raw_ddp_is_unsafe() -> None:
    before = f"{DIST}def f(m, p):\n    if dist.get_rank() == 0:\n        torch.save(m, p)\n    torch.load(p)\n"
    check_transformed(RULE, before, before.replace("    torch.load", "    dist.barrier()\n    torch.load"), unsafe=True)


def test_raw_ddp_behind_is_initialized() -> None:
    before = f"{DIST}def f(m, p, rank):\n    if rank == 0:\n        torch.save(m, p)\n    torch.load(p)\n"
    barrier = "    if dist.is_initialized():\n        dist.barrier()\n"
    check_transformed(RULE, before, before.replace("    torch.load", f"{barrier}    torch.load"), unsafe=True)


def test_a_trainer_of_transformers() -> None:
    before = (
        "from transformers import AutoModel, Trainer\ndef f(model, args):\n    trainer = Trainer(model)\n"
        "    if trainer.is_world_process_zero():\n        model.save_pretrained(args.out)\n"
        "    AutoModel.from_pretrained(args.out)\n"
    )
    after = before.replace("    AutoModel", "    trainer.accelerator.wait_for_everyone()\n    AutoModel")
    check_transformed(RULE, before, after, unsafe=True)


# Told


def test_a_branch_that_may_differ() -> None:
    body = (
        "def f(accelerator, p, acc, best):\n    if acc > best:\n"
        "        if accelerator.is_main_process:\n            torch.save(acc, p)\n"
    )
    check_told(RULE, f"{ACC}{body}        torch.load(p)\n", reason="could hang")


def test_an_exit_above_that_may_differ() -> None:
    body = (
        "def f(accelerator, p, acc):\n    if acc:\n        return\n"
        "    if accelerator.is_main_process:\n        torch.save(acc, p)\n"
    )
    check_told(RULE, f"{ACC}{body}    torch.load(p)\n", reason="could hang")


def test_before_fit() -> None:
    source = (
        "import lightning.pytorch as pl\nimport torch\ntrainer = pl.Trainer()\n"
        "if trainer.is_global_zero:\n    torch.save(m, p)\n"
    )
    check_told(RULE, f"{source}torch.load(p)\ntrainer.fit(m)\n", reason="before fit()")


def test_no_spelling_at_hand() -> None:
    source = (
        "import os\ndef f(p, is_main_process):\n    if is_main_process:\n"
        "        os.makedirs(p)\n    os.listdir(p)\n"
    )
    check_told(RULE, source, reason="no spelling")


def test_an_old_lightning() -> None:
    body = (
        "def on_fit_end(self, trainer, m):\n    if trainer.is_global_zero:\n"
        "        torch.save(m, self.p)\n    torch.load(self.p)"
    )
    head = "import pytorch_lightning as pl\nimport torch"
    pins = {"requirements.txt": "pytorch-lightning==1.5.10\n"}
    check_told(RULE, hook(body, head=head), reason="before Lightning 1.6", files=pins)


def test_an_elif_waits_behind_all_branches() -> None:
    body = (
        "def f(accelerator, p, args):\n    if args.x:\n        pass\n"
        "    elif accelerator.is_main_process:\n        torch.save(1, p)\n"
    )
    after = f"{body}    accelerator.wait_for_everyone()\n    torch.load(p)\n"
    check_transformed(RULE, f"{ACC}{body}    torch.load(p)\n", f"{ACC}{after}")


# Nothing to say


def test_prepare_data_runs_on_one_process() -> None:
    body = (
        "def prepare_data(self):\n    if self.trainer.is_global_zero:\n"
        "        torch.save(1, self.p)\n    torch.load(self.p)"
    )
    check_nothing(RULE, hook(body, base="LightningDataModule"))


@pytest.mark.parametrize(
    "body",
    [
        "if accelerator.is_main_process:\n    torch.save(m, p)\naccelerator.wait_for_everyone()\ntorch.load(p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\nx = accelerator.gather(x)\ntorch.load(p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\nwait(accelerator)\ntorch.load(p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\ntorch.load(q)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\np = other\ntorch.load(p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\nif accelerator.is_main_process:\n    torch.load(p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, p)\n    torch.load(p)\n",
        "torch.load(p)\nif accelerator.is_main_process:\n    torch.save(m, p)\n",
        "if accelerator.is_main_process:\n    torch.save(m, f'{p}_{rank}')\ntorch.load(f'{p}_{rank}')\n",
        "if accelerator.is_main_process:\n    os.makedirs(p)\ntorch.load(os.path.join(p, 'last.pt'))\n",
        "if accelerator.is_main_process:\n    os.makedirs(p)\nos.makedirs(p, exist_ok=True)\n",
        "if m:\n    torch.save(m, p)\ntorch.load(p)\n",
        "with accelerator.main_process_first():\n    if accelerator.is_main_process:\n"
        "        torch.save(m, p)\n    torch.load(p)\n",
        "if not accelerator.is_main_process:\n    torch.save(m, p)\ntorch.load(p)\n",
        "if accelerator.is_main_process:\n    with open(p) as f:\n        f.read()\ntorch.load(p)\n",
    ],
)
def test_right_as_it_is(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    wait = "def wait(accelerator):\n    accelerator.wait_for_everyone()\n"
    check_nothing(RULE, f"{ACC}{wait}def f(accelerator, m, p, q, x, rank):\n{lines}")


def test_a_function_that_is_called_under_a_guard_itself() -> None:
    body = "def f(accelerator, p):\n    if accelerator.is_main_process:\n        torch.save(1, p)\n    torch.load(p)\n"
    check_nothing(RULE, f"{ACC}{body}def main(accelerator, p):\n    if accelerator.is_main_process:\n        f(accelerator, p)\n")


def test_the_tests_of_a_repository_are_left_alone() -> None:
    source = f"{ACC}def test_f(acc, x, p):\n    if acc.is_main_process:\n        torch.save(x, p)\n    torch.load(p)\n"
    check_nothing(RULE, source, path="tests/test_train.py")


# Through functions, files and objects


def test_a_helper_in_another_file_writes() -> None:
    build = "import json\n\n\ndef build(folder):\n    with open(f'{folder}/index.json', 'w') as f:\n        json.dump([], f)\n"
    files = {"prepare.py": build}
    before = """
    import json
    from accelerate import Accelerator
    from pathlib import Path
    from prepare import build

    def main(args):
        accelerator = Accelerator()
        if accelerator.is_main_process:
            build(args.root)
        index = json.loads((Path(args.root) / "index.json").read_text())
    """
    after = before.replace("        index", "        accelerator.wait_for_everyone()\n        index")
    fixed = check_transformed(RULE, before, after, files=files)
    assert "prepare.py:5" in fixed[0].message


def test_a_helper_in_another_file_reads() -> None:
    data = "import torch\nclass Data:\n    def __init__(self, root):\n        self.items = torch.load(root + '/items.pt')\n"
    files = {"data.py": data}
    before = """
    import torch
    from accelerate import Accelerator
    from data import Data

    def main(accelerator, args):
        if accelerator.is_main_process:
            torch.save([], f"{args.root}/items.pt")
        train = Data(args.root)
    """
    after = before.replace("        train", "        accelerator.wait_for_everyone()\n        train")
    fixed = check_transformed(RULE, before, after, files=files)
    assert "data.py:4" in fixed[0].message


def test_the_caller_reads_what_its_callee_wrote() -> None:
    before = f"""{ACC}def save(accelerator, model, folder):
    target = os.path.join(folder, "best.pt")
    if accelerator.is_main_process:
        torch.save(model, target)
    return target


def main(accelerator, model, args):
    best = save(accelerator, model, args.out)
    return torch.load(best)
"""
    check_transformed(RULE, before, before.replace("    return target", "    accelerator.wait_for_everyone()\n    return target"))


def test_a_constructor_makes_the_folder_and_a_method_uses_it() -> None:
    before = f"""{ACC}class Store:
    def __init__(self, accelerator, root):
        self.root = root
        if accelerator.is_main_process:
            os.makedirs(root)

    def put(self, name):
        with open(os.path.join(self.root, name), "w") as f:
            f.write(name)


def main(accelerator, args):
    store = Store(accelerator, args.root)
    store.put("a")
"""
    after = before.replace("\n    def put", "        accelerator.wait_for_everyone()\n\n    def put")
    check_transformed(RULE, before, after)


def test_a_function_whose_rest_is_rank_0s_gets_the_barrier_behind_its_call() -> None:
    before = f"""{ACC}def save(accelerator, model, path):
    if not accelerator.is_main_process:
        return
    torch.save(model, path)


def main(accelerator, model, args):
    save(accelerator, model, args.path)
    model = torch.load(args.path)
"""
    after = before.replace("    model = torch", "    accelerator.wait_for_everyone()\n    model = torch")
    check_transformed(RULE, before, after)


def test_a_decorated_function() -> None:
    before = """
    import torch
    import lightning.pytorch as pl
    from lightning.pytorch.utilities import rank_zero_only

    class C(pl.Callback):
        @rank_zero_only
        def write(self, m):
            torch.save(m, self.path)

        def on_fit_end(self, trainer, pl_module):
            self.write(pl_module)
            torch.load(self.path)
    """
    after = before.replace("            torch.load", "            trainer.strategy.barrier()\n            torch.load")
    check_transformed(RULE, before, after)


def test_a_folder_that_is_removed_while_others_write_into_it() -> None:
    before = f"""{ACC}import shutil
def main(accelerator, out):
    if accelerator.is_main_process:
        shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out, exist_ok=True)
"""
    after = before.replace("    os.makedirs", "    accelerator.wait_for_everyone()\n    os.makedirs")
    fixed = check_transformed(RULE, before, after)
    assert "removes" in fixed[0].message


def test_save_model_of_transformers_does_not_wait() -> None:
    before = (
        "from transformers import AutoModel, Trainer\ndef f(model, args):\n    trainer = Trainer(model)\n"
        "    trainer.save_model(args.out)\n    AutoModel.from_pretrained(args.out)\n"
    )
    after = before.replace("    AutoModel", "    trainer.accelerator.wait_for_everyone()\n    AutoModel")
    check_transformed(RULE, before, after, unsafe=True)


def test_a_data_set_that_rank_0_fetches() -> None:
    before = f"""{DIST}from torchvision import datasets
def data(rank, root):
    if rank == 0:
        datasets.MNIST(root, download=True)
    return datasets.MNIST(root)
"""
    barrier = "    if dist.is_initialized():\n        dist.barrier()\n"
    check_transformed(RULE, before, before.replace("    return", f"{barrier}    return"), unsafe=True)


def test_the_other_branch_reads() -> None:
    body = "def f(accelerator, p):\n    if accelerator.is_main_process:\n        torch.save(1, p)\n    else:\n"
    body += "        torch.load(p)\n"
    check_told(RULE, f"{ACC}{body}", reason="the other branch")


def test_above_the_start_of_the_group() -> None:
    body = "def f(rank, p):\n    if rank == 0:\n        torch.save(1, p)\n    torch.load(p)\n"
    body += "    dist.init_process_group('gloo')\n"
    check_told(RULE, f"{DIST}{body}", reason="starts further down")


def test_a_guard_on_one_line_with_something_else() -> None:
    body = "def f(accelerator, p):\n    if accelerator.is_main_process: torch.save(1, p)\n    torch.load(p)\n"
    after = body.replace("    torch.load", "    accelerator.wait_for_everyone()\n    torch.load")
    check_transformed(RULE, f"{ACC}{body}", f"{ACC}{after}")
    shared = "def f(accelerator, p): \n    x = 1; save(accelerator, p)\n    torch.load(p)\n"
    guarded = "def save(accelerator, p):\n    if not accelerator.is_main_process:\n        return\n    torch.save(1, p)\n"
    assert [f.applicability for f in findings_of(RULE, f"{ACC}{guarded}{shared}")] == [Applicability.SAFE]


@pytest.mark.parametrize(
    "between",
    ["loss.backward()", "model = DDP(model)", "model = accelerator.prepare(model)", "wait_until(p)",
     "with FileLock(p):\n        pass", "while not os.path.exists(p):\n        time.sleep(1)",
     "while not found:\n        found = p.exists()", "os.makedirs(p, exist_ok=True)", "train_one_epoch(model)"],
)  # fmt: skip
def test_what_stands_between_waits_or_settles_it(between: str) -> None:
    head = f"{ACC}import time\nfrom filelock import FileLock\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    body = "def f(accelerator, model, loss, p):\n    if accelerator.is_main_process:\n        os.makedirs(p)\n"
    body += f"    {between}\n    os.listdir(p)\n"
    check_nothing(RULE, head + body)


def test_one_hook_writes_and_another_reads() -> None:
    body = (
        "def on_fit_start(self, trainer, m):\n    if trainer.is_global_zero:\n        torch.save(1, self.p)\n\n"
        "def on_train_start(self, trainer, m):\n    torch.load(self.p)"
    )
    check_nothing(RULE, hook(body))


@pytest.mark.parametrize("way", ["save(accelerator, 1, args.other)\n    torch.load(args.path)", "load(accelerator, args.path)"])
def test_callers_that_use_another_path_or_are_guarded(way: str) -> None:
    body = (
        "def save(accelerator, m, path):\n    if accelerator.is_main_process:\n        torch.save(m, path)\n\n"
        "def load(accelerator, path):\n    if accelerator.is_main_process:\n        save(accelerator, 1, path)\n"
        f"        torch.load(path)\n\ndef main(accelerator, args):\n    {way}\n"
    )
    check_nothing(RULE, f"{ACC}{body}")


def test_a_call_under_a_guard_has_its_barrier_behind_that() -> None:
    before = f"""{ACC}def save(accelerator, m, path):
    if accelerator.is_main_process:
        torch.save(m, path)

def main(accelerator, args):
    if accelerator.is_main_process:
        save(accelerator, 1, args.path)
    torch.load(args.path)
"""
    check_transformed(RULE, before, before.replace("    torch.load", "    accelerator.wait_for_everyone()\n    torch.load"))


def test_a_guarded_save_model_that_every_rank_loads() -> None:
    source = """\
        from transformers import AutoModel, Trainer

        def main(model, out):
            trainer = Trainer(model=model)
            trainer.train()
            if trainer.is_world_process_zero():
                trainer.save_model(f"{out}/final")
            return AutoModel.from_pretrained(f"{out}/final")
        """
    waited = source.replace("            return", "            trainer.accelerator.wait_for_everyone()\n            return")
    check_transformed(MissingBarrier, source, waited, unsafe=True)
    check_nothing(MissingBarrier, waited)
    check_nothing(MissingBarrier, source.replace('from_pretrained(f"{out}/final")', 'from_pretrained(out + "/first")'))


@pytest.mark.parametrize(("test", "level"), [("loss.item() < 1", Applicability.DISPLAY), ("True", Applicability.SAFE)])
def test_a_caller_that_some_ranks_may_leave_out(test: str, level: Applicability) -> None:
    source = ACC + f"""
def keep(accelerator, model, path):
    if accelerator.is_main_process:
        torch.save(model.state_dict(), path)
    return torch.load(path)


def main():
    accelerator = Accelerator()
    loss = step(accelerator)
    if {test}:
        keep(accelerator, model, "best.pt")
"""
    (finding,) = findings_of(RULE, source)
    assert finding.applicability is level
    assert ("comes out the same on every rank" in finding.reason) == (level is Applicability.DISPLAY)


KEPT = "if accelerator.is_main_process:\n    torch.save(model.state_dict(), path)\nreturn torch.load(path)"


def inside(head: str, tail: str = "") -> str:
    """The handover below `head`, in a function of its own."""
    depth = "    " * (1 + head.count(":\n") + head.endswith(":"))
    body = KEPT.replace("\n", f"\n{depth}")
    return ACC + f"\n\ndef keep(accelerator, model, path, files):\n    {head}\n{depth}{body}\n{tail}"


@pytest.mark.parametrize(
    ("head", "tail", "reason"),
    [
        ("try:", "    except OSError:\n        return None\n", "no rank leaves the `try`"),
        ("for name in files:", "", "as many rounds over `files`"),
        ("for name in os.listdir(path):", "", "as many rounds"),
    ],
)
def test_a_barrier_that_not_every_rank_comes_to_as_often_is_told(head: str, tail: str, reason: str) -> None:
    check_told(RULE, inside(head, tail), reason=reason)


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("try:", "    finally:\n        print()\n"),
        ("try:", "    except KeyboardInterrupt:\n        print()\n"),
        ("try:", "    except OSError:\n        raise\n"),
        ("for epoch in range(3):", ""),
        ("for part in ('a', 'b'):", ""),
    ],
)
def test_a_barrier_that_every_rank_comes_to_stays_safe(head: str, tail: str) -> None:
    (found,) = findings_of(RULE, inside(head, tail))
    assert found.applicability is Applicability.SAFE


def test_the_workers_of_a_loader_meet_nobody() -> None:
    source = ACC + """

class Rows:
    def __getitem__(self, index):
        return self.made(index)

    def made(self, index):
        if self.accelerator.is_main_process:
            torch.save(index, self.path)
        return torch.load(self.path)
"""
    check_told(RULE, source, reason="a loader calls it in its workers")


def test_a_function_that_runs_above_the_start_of_the_group_is_told() -> None:
    source = """
import torch
import torch.distributed as dist


def prepare(path):
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save({}, path)
    return torch.load(path)


def main(path):
    rows = prepare(path)
    dist.init_process_group("gloo")
"""
    check_told(RULE, source, reason="no process group yet: init_process_group() starts it (module.py:14)")
    below = source.replace("    rows = prepare(path)\n", "") + "    rows = prepare(path)\n"
    (found,) = findings_of(RULE, below)
    assert found.applicability is Applicability.UNSAFE


def test_another_loop_over_a_name_is_about_another_file() -> None:
    source = ACC + """
def put(accelerator, folder, parts, model):
    if accelerator.is_main_process:
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
    for name, part in parts.items():
        torch.save(part, os.path.join(folder, name))
    accelerator.prepare(model)
"""
    check_nothing(RULE, source)


def test_who_asks_for_a_folder_needs_no_barrier() -> None:
    source = ACC + """
def start(accelerator, folder, model):
    if accelerator.is_main_process:
        os.makedirs(folder, exist_ok=True)
    if os.path.isdir(folder):
        print("there")
    accelerator.prepare(model)
"""
    check_nothing(RULE, source)
    (found,) = findings_of(RULE, source.replace('print("there")', "print(os.listdir(folder))"))
    assert found.applicability is Applicability.SAFE


def test_a_folder_that_every_rank_has_made_above() -> None:
    source = ACC + """
def start(accelerator, folder, model):
    os.makedirs(folder, exist_ok=True)
    if accelerator.is_main_process:
        os.makedirs(folder, exist_ok=True)
    print(os.listdir(folder))
    accelerator.prepare(model)
"""
    check_nothing(RULE, source)
    assert findings_of(RULE, source.replace("    os.makedirs(folder, exist_ok=True)\n    if", "    if", 1))


PARENT = """\
import torch.distributed as dist


class Saver:
    def keep(self, folder):
        if dist.get_rank() == 0:
            self.net.save_pretrained(folder)
"""
CHILD = """\
from pathlib import Path

import torch.distributed as dist

from base import Saver


class TwoTowers(Saver):
    def keep(self, folder):
        super().keep(folder)
        towers = Path(f"{{folder}}/towers")
        {asked}
            {body}
        if dist.get_rank() == 0:
            self.tower.save_pretrained(towers)
"""
ASKED = "if not towers.exists():"


@pytest.mark.parametrize("made", ["towers.mkdir(parents=True, exist_ok=True)", "towers.mkdir()"])
def test_who_asks_for_a_folder_only_to_make_it_reads_nothing(made: str) -> None:
    check_nothing(RULE, PARENT, files={"towers.py": CHILD.format(asked=ASKED, body=made).replace("base", "module")})
    source = (
        f"{DIST}def f(out, net):\n    if dist.get_rank() == 0:\n        net.save_pretrained(out)\n"
        "    if not os.path.isdir(out):\n        {0}\n"
    )
    check_nothing(RULE, source.format("os.makedirs(out, exist_ok=True)"))
    assert findings_of(RULE, source.format("raise FileNotFoundError(out)"))  # here the answer matters
    assert findings_of(RULE, source.format("os.makedirs(out)\n    else:\n        net.load(out)"))


MASTER = (
    f"{DIST}def save_on_master(*args, **kwargs):\n    if dist.get_rank() == 0:\n        torch.save(*args, **kwargs)\n\n\n"
    "def judge(model, path, folder):\n    {save}\n    {use}\n\n\nif __name__ == '__main__':\n"
    "    dist.init_process_group('nccl')\n"
    "    judge(make(), 'a.pt', 'out')\n"
)


def test_a_helper_that_hands_its_arguments_on() -> None:
    save, use = "save_on_master(model.state_dict(), path)", "model.load_state_dict(torch.load(path))"
    before = MASTER.format(save=save, use=use)
    after = before.replace(f"{save}\n", f"{save}\n    if dist.is_initialized():\n        dist.barrier()\n")
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("save", "use"),
    [
        ("save_on_master(model.state_dict(), path)", "torch.load(os.path.join(folder, 'b.pt'))"),
        ("save_on_master(model.state_dict(), path); dist.barrier()", "torch.load(path)"),
        ("save_on_master(model.state_dict(), f'{path}.{dist.get_rank()}')", "torch.load(path)"),
        ("save_on_master(*made(model))", "torch.load(path)"),
        ("save_on_master(model.state_dict(), path)", "torch.load(path) if dist.get_rank() == 0 else None"),
    ],
)
def test_helpers_whose_file_nobody_needs_at_once(save: str, use: str) -> None:
    check_nothing(RULE, MASTER.format(save=save, use=use))


NAP = (
    f"import time\n{DIST}def main(path, rank):\n    dist.init_process_group('gloo')\n    if rank == 0:\n"
    "        torch.save(made(), path)\n    {wait}\n    return torch.load(path)\n"
)


def test_a_pause_is_no_wait() -> None:
    (found,) = findings_of(RULE, NAP.replace("{wait}", "time.sleep(5)"))
    assert any("waits for no rank" in e.text for e in found.evidence)


@pytest.mark.parametrize(
    "wait",
    [
        "dist.barrier()",
        "while not os.path.exists(path):\n        time.sleep(5)",
        "for _ in range(60):\n        time.sleep(1)",
        "time.sleep(seconds_for(path))",
    ],
)
def test_what_waits_for_the_file(wait: str) -> None:
    check_nothing(RULE, NAP.replace("{wait}", wait))


WRAPPED = """
import functools
import os

import torch
import torch.distributed as dist


def on_first(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        if dist.get_rank() == 0:
            return fn(*args, **kwargs)
    return inner


def together(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
BODY
    return inner


@together
@on_first
def keep(state, path):
    torch.save(state, path)


@together
def keep_here(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)


def main(net):
    dist.init_process_group("gloo")
    WRITE(net.state_dict(), "half.pt")
    net.load_state_dict(torch.load("half.pt"))


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2))
"""
WAITS = "        given = fn(*args, **kwargs)\n        if dist.is_initialized():\n            dist.barrier()\n        return given"


@pytest.mark.parametrize("write", ["keep", "keep_here"])
@pytest.mark.parametrize("body", [WAITS, WAITS.replace("        if dist.is_initialized():\n            ", "        ")])
def test_a_decorator_that_waits_behind_what_it_decorates(write: str, body: str) -> None:
    check_nothing(RULE, WRAPPED.replace("WRITE", write).replace("BODY", body))


@pytest.mark.parametrize("write", ["keep", "keep_here"])
@pytest.mark.parametrize(
    "body",
    [
        "        return fn(*args, **kwargs)",
        "        dist.barrier()\n        return fn(*args, **kwargs)",
        "        given = fn(*args, **kwargs)\n        if dist.get_rank() == 0:\n            dist.barrier()\n        return given",
    ],
)
def test_a_decorator_that_does_not_wait_behind_it(write: str, body: str) -> None:
    assert findings_of(RULE, WRAPPED.replace("WRITE", write).replace("BODY", body))


LET_IN = DIST + """
import argparse
import numpy as np
from tools import is_missing


def main(args):
    if not args.debug:
        dist.init_process_group("nccl")
        rank = dist.get_rank()
    else:
        rank = 0
GUARD
    for i, codes in enumerate(args.rows):
        np.save(f"{args.out}/codes/{i}.npy", codes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--rows")
    main(parser.parse_args())
"""
MAKES = "        os.makedirs(args.out + '/codes', exist_ok=True)"


@pytest.mark.parametrize(
    "guard",
    [
        f"    if args.debug or rank == 0:\n{MAKES}",
        f"    if rank == 0 or args.mode == 'debug' or not args.shared:\n{MAKES}",
        f"    if not args.debug and rank != 0:\n        pass\n    else:\n{MAKES}",
    ],
)
def test_a_guard_that_lets_rank_zero_through_whatever_the_setting(guard: str) -> None:
    (found,) = findings_of(RULE, LET_IN.replace("GUARD", guard))
    assert "does not let the others in, rank 0 alone makes the folder `args.out + '/codes'` here" in found.message
    assert found.applicability is Applicability.UNSAFE


def test_an_exit_that_rank_zero_never_takes() -> None:
    helper = "def make(args, rank):\n    if not args.debug and rank != 0:\n        return\n    os.makedirs(args.out + '/codes')"
    source = LET_IN.replace("def main(", f"{helper}\n\n\ndef main(").replace("GUARD", "    make(args, rank)")
    (found,) = findings_of(RULE, source)
    assert "`args.debug` does not let the others in" not in found.message and "(in line " in found.message


@pytest.mark.parametrize(
    "guard",
    [
        f"    if args.debug or rank == 0:\n{MAKES}\n    if dist.is_initialized():\n        dist.barrier()",
        f"    if is_missing(args.out) or rank == 0:\n{MAKES}",  # whoever needs it makes it
        f"    absent = is_missing(args.out)\n    if absent or rank == 0:\n{MAKES}",
        f"    if args.debug or rank == 0 or rank == 1:\n{MAKES}",
        f"    if args.debug and rank != 0:\n{MAKES}",
    ],
)
def test_a_guard_that_lets_the_others_through_as_they_need(guard: str) -> None:
    check_nothing(RULE, LET_IN.replace("GUARD", guard))


def test_a_parameter_that_each_caller_gives() -> None:
    helper = "def folders(out, rank, everywhere=False):\n    if everywhere or rank == 0:\n        os.makedirs(out + '/codes')"
    source = LET_IN.replace("def main(", f"{helper}\n\n\ndef main(")
    check_nothing(RULE, source.replace("GUARD", "    folders(args.out, rank, True)"))


# What rank 0 removes

LOADED = "    model.load_state_dict(torch.load(path))\n"
GONE = "    if accelerator.is_main_process:\n        os.remove(path)\n"


def removing(middle: str, *, read: str = LOADED, gone: str = GONE) -> str:
    return f"{ACC}def begin(accelerator: Accelerator, model, path, epochs):\n{read}{middle}{gone}    return model\n"


@pytest.mark.parametrize(
    ("middle", "read", "gone"),
    [
        ("", LOADED, GONE),
        ("    model.eval()\n", LOADED, "    if accelerator.is_main_process:\n        print('gone')\n        os.unlink(path)\n"),
        ("", "    if epochs:\n        for line in open(path):\n            print(line)\n", GONE),
        ("", "    for name in os.listdir(path):\n        load(name)\n", GONE.replace("remove", "rmdir")),
        ("", "    names = os.listdir(path)\n", "    if accelerator.is_main_process and epochs:\n        os.rmdir(path)\n"),
    ],
)
def test_a_file_that_rank_0_removes_while_others_may_read_it(middle: str, read: str, gone: str) -> None:
    before = removing(middle, read=read, gone=gone)
    after = before.replace(gone, f"    accelerator.wait_for_everyone()\n{gone}")
    assert any("rank 0 removes `path` here" in f.message for f in findings_of(RULE, before))
    check_transformed(RULE, before, after)


@pytest.mark.parametrize(
    ("middle", "read", "gone"),
    [
        ("    accelerator.wait_for_everyone()\n", LOADED, GONE),
        ("    model = accelerator.prepare(model)\n", LOADED, GONE),
        ("", "    if accelerator.is_main_process:\n        print(open(path).read())\n", GONE),
        ("", LOADED, GONE.replace("os.remove(path)", "os.remove('other.pt')")),
        ("    path = path + '.old'\n", LOADED, GONE),
        ("", "    print(os.path.exists(path))\n", GONE),
        ("", "    for name in os.listdir(path):\n        os.remove(os.path.join(path, name))\n", GONE.replace("remove", "rmdir")),
    ],
)
def test_what_rank_0_may_remove(middle: str, read: str, gone: str) -> None:
    check_nothing(RULE, removing(middle, read=read, gone=gone))


UNCALLED = """\
import os
import torch.distributed as dist


def load(rows, evaluate=False):
    return rows[:9] if evaluate else rows


def evaluate(args, model, rows):
    if dist.get_rank() == 0:
        os.makedirs(args.out)
    with open(os.path.join(args.out, "scores.txt"), "w") as f:
        f.write(str(model(rows)))


def main(args, model):
    dist.init_process_group("nccl")
    rows = load(args.rows)
    {call}


if __name__ == "__main__":
    main(None, None)
"""


def test_a_function_that_nobody_calls_where_a_parameter_has_its_name() -> None:
    """No program is seen to come there, and the barrier is offered under that assumption alone, if at all."""
    files = {"run.sh": "torchrun --nproc_per_node=2 train.py\n"}
    assert findings_of(RULE, UNCALLED.format(call="evaluate(args, model, rows)"), files, path="train.py")
    project = Project.of({"train.py": UNCALLED.format(call="model(rows)").encode(), "run.sh": files["run.sh"].encode()})
    module = project.module("train.py")
    assert module is not None
    place = next(f for f in module.functions if f.name == "evaluate").body[0]
    assert start_at(project, module, module.span(place)) is None
    assert unseen_run(project, module, module.span(place)) is not None
