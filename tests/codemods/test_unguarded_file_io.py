from __future__ import annotations

import textwrap

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from codemods.ranks.unguarded_hook import UnguardedHook
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of


def hook(*lines: str, base: str = "pl.Callback", arguments: str = "self, trainer, pl_module", name: str = "on_fit_end") -> str:
    body = "".join(f"        {line}\n" for line in ("self.prune(trainer)", *lines))
    head = "import csv, json, os, shutil\nimport matplotlib.pyplot as plt\nimport torch\nimport lightning.pytorch as pl\n"
    return f"{head}\nclass A({base}):\n    def {name}({arguments}):\n{body}"


def script(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"import json, os, yaml\nimport lightning as L\nimport torch\n\ndef main(args):\n{body}"


TRAINER = "trainer = L.Trainer(devices=2)"
DUMP = ("with open('a.json', 'w') as f:", "    json.dump({'a': 1}, f)")


def test_example_of_the_page() -> None:
    sections = UnguardedFileIo.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnguardedFileIo, before, after)


def test_figures_that_each_rank_has_made_are_closed_on_each() -> None:
    loop = ("fig = self.draw(trainer)", "for x in range(2):", "    fig.savefig(f'{x}.png')", "    plt.close(fig)")
    after = (*loop[:2], "    if trainer.is_global_zero:", "        fig.savefig(f'{x}.png')", loop[3])
    check_transformed(UnguardedFileIo, hook(*loop), hook(*after))


@pytest.mark.parametrize(
    "lines",
    [
        DUMP,
        ("shutil.rmtree(self.folder)",),
        ("os.rename('a', 'b')",),
        ("self.path.write_text('a')",),
        ("self.table.to_csv('a.csv')",),
        ("self.net.config.to_json_file('a.json')",),
        ("print('saving')", *DUMP, "print('saved')"),
        ("with open('done', 'w'):", "    pass"),
        ("if os.path.exists(self.a):", "    os.remove(self.a)", "    print('gone')"),
    ],
)
def test_writing_goes_under_the_test(lines: tuple[str, ...]) -> None:
    if lines[0].startswith("if "):
        guarded = (lines[0].replace(":", " and trainer.is_global_zero:"), *lines[1:])
    else:
        guarded = ("if trainer.is_global_zero:", *("    " + x for x in lines))
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))


def test_a_folder_that_is_needed_again_below_is_not_taken_away_by_rank_zero_alone_unasked() -> None:
    lines = ("shutil.rmtree(self.folder)", "os.makedirs(self.folder, exist_ok=True)")
    after = hook("if trainer.is_global_zero:", "    " + lines[0], "trainer.strategy.barrier()", lines[1])
    check_transformed(UnguardedFileIo, hook(*lines), after, unsafe=True)
    (finding,) = findings_of(UnguardedFileIo, hook(*lines))
    assert finding.reason == "assumes that no other rank needs what shutil.rmtree(…) takes away before that is done"


def test_a_compiled_model_is_a_file_of_this_process() -> None:
    lines = (TRAINER, "model = torch.jit.script(args.model)", "model.save(os.path.join(args.folder, 'init.zip'))")
    after = script(*lines[:2], "if trainer.is_global_zero:", "    " + lines[2])
    check_transformed(UnguardedFileIo, script(*lines), after, unsafe=True)


def test_what_a_script_takes_away_may_be_needed_by_others() -> None:
    lines = (TRAINER, "os.remove('a.lock')")
    after = script(lines[0], "if trainer.is_global_zero:", "    " + lines[1])
    check_transformed(UnguardedFileIo, script(*lines), after, unsafe=True)


def test_a_plot_and_what_it_takes() -> None:
    lines = ("plt.plot([1])", "plt.savefig('a.png')", "plt.close()")
    guarded = (lines[0], "if trainer.is_global_zero:", "    " + lines[1], lines[2])
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))


WHO = "import torch.distributed as dist\n\ndef who():\n    return dist.get_rank()\n\n"
QUIET = "def quiet():\n    return who() != 0\n"


@pytest.mark.parametrize(
    ("head", "call", "files"),
    [
        ("import helper", "helper.quiet()", {"helper.py": WHO + QUIET}),
        ("from lib import helper as h", "h.quiet()", {"lib/__init__.py": "", "lib/helper.py": WHO + QUIET}),
        ("from helper import quiet", "quiet()", {"helper.py": WHO + QUIET}),
    ],
)
def test_a_guard_of_another_file_by_any_name(head: str, call: str, files: dict[str, str]) -> None:
    check_nothing(UnguardedFileIo, f"{head}\n" + hook(f"if not {call}:", *("    " + x for x in DUMP)), files=files)
    assert findings_of(UnguardedFileIo, f"{head}\n" + hook("if not quick():", *("    " + x for x in DUMP)), files)


def test_the_spelling_of_a_module_and_of_transformers() -> None:
    place = {"base": "pl.LightningModule", "arguments": "self"}
    check_transformed(
        UnguardedFileIo, hook(*DUMP, **place), hook("if self.global_rank == 0:", *("    " + x for x in DUMP), **place)
    )
    before = """\
        from transformers import TrainerCallback

        class Log(TrainerCallback):
          def on_log(self, args, state, control, logs=None, **kwargs):
            self.steps += 1
            with open("a", "a") as f:  # one line each
              f.write(str(logs))
        """
    moved = '            with open("a", "a") as f:  # one line each\n              f.write(str(logs))\n'
    deeper = '              with open("a", "a") as f:  # one line each\n                f.write(str(logs))\n'
    check_transformed(UnguardedFileIo, before, before.replace(moved, "            if state.is_world_process_zero:\n" + deeper))


def test_a_helper_that_writes_is_called_under_the_test() -> None:
    files = {"files.py": "def save_rows(path, rows):\n    with open(path, 'w') as f:\n        f.write(str(rows))\n"}
    head = "from files import save_rows\n"
    before, after = hook("save_rows('a', [])"), hook("if trainer.is_global_zero:", "    save_rows('a', [])")
    check_transformed(UnguardedFileIo, head + before, head + after, files=files)


def test_a_setting_that_is_read_below_stays_with_every_rank() -> None:
    source = """
        import argparse, json
        import torch.distributed as dist

        if __name__ == "__main__":
            parser = argparse.ArgumentParser()
            parser.add_argument("--plan")
            args = parser.parse_args()
            dist.init_process_group("nccl")
            if args.plan:
                with open(args.plan, "w+") as f:
                    args.plan = json.load(f)
            if dist.get_rank() == 0:
                print("begin")
            train(args.plan)
        """
    (found,) = findings_of(UnguardedFileIo, textwrap.dedent(source), path="main.py")
    assert found.fix is None
    (found,) = findings_of(UnguardedFileIo, textwrap.dedent(source).replace("train(args.plan)", "train()"), path="main.py")
    assert found.fix is not None


def test_a_script_writes_what_its_trainer_found() -> None:
    lines = (TRAINER, "results = trainer.test(args.model)", "with open(args.out, 'w') as f:", "    json.dump(results, f)")
    guarded = (*lines[:2], "if trainer.is_global_zero:", *("    " + x for x in lines[2:]))
    check_transformed(UnguardedFileIo, script(*lines), script(*guarded))


def test_a_folder_that_is_tested_is_not_the_file() -> None:
    write = ("with open(os.path.join(args.out, 'a'), 'w') as f:", "    f.write('a')")
    lines = (TRAINER, "if not os.path.isdir(args.out):", "    fill(args)", *write)
    guarded = (*lines[:3], "if trainer.is_global_zero:", *("    " + x for x in lines[3:]))
    check_transformed(UnguardedFileIo, script(*lines), script(*guarded))


def test_a_script_that_writes_something_else_takes_an_assumption() -> None:
    lines = (TRAINER, "scores = evaluate(args)", "with open(args.out, 'w') as f:", "    json.dump(scores, f)")
    guarded = (*lines[:2], "if trainer.is_global_zero:", *("    " + x for x in lines[2:]))
    found = check_transformed(UnguardedFileIo, script(*lines), script(*guarded), unsafe=True)
    assert "scores" in found[0].reason


def accelerated(*lines: str) -> str:
    return "from accelerate import Accelerator\n\naccelerator = Accelerator()\n" + "".join(f"{line}\n" for line in lines)


def test_what_an_accelerator_has_gathered_is_the_same_everywhere() -> None:
    lines = ("loss = accelerator.gather(step(batch)).mean().item()", "open('a.txt', 'a').write(f'{loss}\\n')")
    guarded = (lines[0], "if accelerator.is_main_process:", "    " + lines[1])
    check_transformed(UnguardedFileIo, accelerated(*lines), accelerated(*guarded))
    own = accelerated(lines[0].replace("accelerator.gather", "gathered.put"), lines[1])
    assert "loss" in check_transformed(UnguardedFileIo, own, own.replace(
        lines[1], f"if accelerator.is_main_process:\n    {lines[1]}"), unsafe=True)[0].reason  # fmt: skip


def test_a_handle_of_the_same_name_for_a_file_of_the_rank() -> None:
    shared = ("with open('a.txt', 'a') as f:", "    f.write('a')")
    own = ("with open(f'rank-{accelerator.process_index}.txt', 'w') as f:", "    f.write('b')")
    guarded = ("if accelerator.is_main_process:", *("    " + line for line in shared))
    check_transformed(UnguardedFileIo, accelerated(*shared, *own), accelerated(*guarded, *own))


@pytest.mark.parametrize(
    "line",
    [
        "open(f'rank{trainer.global_rank}.txt', 'w').write('a')",
        "open(self.path).read()",
        "os.makedirs(self.path, exist_ok=True)",
        "torch.save(pl_module.state_dict(), 'a.pt')",
        "trainer.logger.log_metrics({})",
    ],
)
def test_what_is_not_everybodys_file_stays(line: str) -> None:
    check_nothing(UnguardedFileIo, hook(line))


def test_a_path_made_of_the_rank_stays() -> None:
    check_nothing(UnguardedFileIo, hook("with open(f'a-{trainer.global_rank}', 'w') as f:", "    f.write('a')"))
    check_nothing(UnguardedFileIo, hook("f = open(f'a-{trainer.global_rank}', 'w')", "f.write('a')"))
    check_nothing(UnguardedFileIo, hook("path = f'a-{trainer.global_rank}'", "open(path, 'w').write('a')"))


def test_a_file_that_the_others_read_is_told() -> None:
    lines = ("with open(self.path, 'w') as f:", "    f.write('a')", "self.rows = open(self.path).read()")
    check_told(UnguardedFileIo, hook(*lines), reason="barrier")
    tested = (TRAINER, "with open(args.out, 'w') as f:", "    json.dump({}, f)", "if os.path.exists(args.out):", "    go(args)")
    check_told(UnguardedFileIo, script(*tested), reason="barrier")


READER = """
class B(pl.Callback):
    def on_fit_end(self, trainer, pl_module):
        self.rows = read_image(f"{self.folder}/a.png")
"""


def test_a_file_of_that_suffix_that_another_hook_reads_takes_an_assumption() -> None:
    line = "self.figure().savefig(self.folder + '/a.png')"
    before = hook("figure = self.figure()", line.replace("self.figure()", "figure")) + READER
    after = (
        hook("figure = self.figure()", "if trainer.is_global_zero:", "    " + line.replace("self.figure()", "figure")) + READER
    )
    found = check_transformed(UnguardedFileIo, before, after, unsafe=True)
    assert "read_image" in found[0].reason


def test_what_only_this_rank_has_seen_is_told() -> None:
    place = {"name": "on_test_batch_end", "arguments": "self, trainer, pl_module, outputs, batch, i"}
    check_told(UnguardedFileIo, hook("open('a', 'a').write(str(outputs))", **place), reason="gather")
    source = hook("open('a', 'w').write(str(self.rows))", base="pl.LightningModule", arguments="self", name="on_test_epoch_end")
    source += "\n    def test_step(self, batch, i):\n        self.rows.append(batch)\n"
    check_told(UnguardedFileIo, source, reason="gather")


def test_what_is_written_for_each_item_is_told() -> None:
    write = ("    with open(args.out, 'a') as f:", "        f.write(row.name)", "    row.close()")
    lines = (TRAINER, "for row in evaluate(args):", *write)
    check_told(UnguardedFileIo, script(*lines), reason="put the rank into the name")
    place = {"name": "validation_step", "arguments": "self, batch, i", "base": "pl.LightningModule"}
    check_told(UnguardedFileIo, hook("open('a', 'w').write(str(i))", **place), reason="put the rank into the name")


def test_folders_stay_outside() -> None:
    lines = ("os.makedirs(self.folder, exist_ok=True)", *DUMP)
    guarded = (lines[0], "if trainer.is_global_zero:", *("    " + x for x in DUMP))
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))


def test_a_constructor_is_told() -> None:
    check_told(UnguardedFileIo, hook(*DUMP, name="__init__", arguments="self"), reason="constructor")
    both = hook(*DUMP, *(line.replace("a.json", "b.json") for line in DUMP), name="__init__", arguments="self")
    (found,) = findings_of(UnguardedFileIo, both)
    assert [e.line for e in found.evidence] == [9, 11]  # the places of both files


def test_a_name_that_is_used_later_stays_outside() -> None:
    check_told(UnguardedFileIo, hook("handle = open('a', 'w')", "self.handle = handle"), reason="every rank may need")


def test_writing_between_what_every_rank_needs_is_told() -> None:
    check_told(UnguardedFileIo, hook("self.count = open('a', 'w').write('a')"), reason="every rank may need")


def test_hooks_that_only_write_and_guarded_ones_stay() -> None:
    check_nothing(UnguardedFileIo, hook(*DUMP).replace("        self.prune(trainer)\n", ""))
    check_nothing(UnguardedFileIo, hook("if trainer.is_global_zero:", *("    " + x for x in DUMP)))
    check_nothing(UnguardedFileIo, hook("if not trainer.is_global_zero:", "    return", *DUMP))
    check_nothing(UnguardedFileIo, hook(*DUMP).replace("    def on", "    @rank_zero_only\n    def on"))


def test_no_sure_test_and_tests_of_the_repository_stay() -> None:
    check_nothing(UnguardedFileIo, script(*DUMP))
    check_nothing(UnguardedFileIo, hook(*DUMP), path="tests/test_a.py")


def test_a_cache_may_lie_on_a_disk_of_the_node() -> None:
    lines = (TRAINER, "shutil.rmtree(args.cache_dir)")
    after = (TRAINER, "if trainer.is_global_zero:", "    shutil.rmtree(args.cache_dir)")
    before, wanted = (script(*code).replace("import json", "import shutil, json") for code in (lines, after))
    check_transformed(UnguardedFileIo, before, wanted, unsafe=True)


def test_a_file_that_every_rank_empties_is_not_written_under_a_test_inside() -> None:
    lines = ("with open('a.json', 'w') as f:", "    self.prune(trainer)", "    json.dump({'a': 1}, f)")
    (finding,) = findings_of(UnguardedFileIo, hook(*lines))
    assert not finding.edits
    assert finding.reason.startswith("every rank opens that file, and empties it, in line 9")
    handle = ("f = open('a.json', 'w')", "self.prune(f)", "f.write('a')")
    (finding,) = findings_of(UnguardedFileIo, hook(*handle))
    assert "line 9" in finding.reason


def test_a_file_that_is_added_to_is_written_under_a_test_inside() -> None:
    lines = ("with open('a.json', 'a') as f:", "    self.prune(trainer)", "    f.write('a')")
    guarded = (*lines[:2], "    if trainer.is_global_zero:", "        " + lines[2].strip())
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))


def test_the_name_of_the_handle_may_be_another_thing_further_down() -> None:
    lines = (*DUMP, "f = self.folder / 'a.jpg'", "self.draw(f)")
    guarded = ("if trainer.is_global_zero:", *("    " + x for x in DUMP), *lines[2:])
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))
    above = ("f = self.folder", *DUMP, "self.draw(f)")
    assert not any(f.edits for f in findings_of(UnguardedFileIo, hook(*above)))


def test_a_path_beside_the_rank_in_one_assignment_is_no_path_of_the_rank() -> None:
    lines = ("folder, rank = self.folder, trainer.global_rank", "self.prune(rank)", "open(folder / 'a', 'a').write('b')")
    guarded = (*lines[:2], "if trainer.is_global_zero:", "    " + lines[2])
    check_transformed(UnguardedFileIo, hook(*lines), hook(*guarded))


def test_lost_rows_are_told_once() -> None:
    from codemods.ranks.unguarded_hook import UnguardedHook

    source = """
        import csv
        import lightning.pytorch as pl

        class Rows(pl.LightningModule):
            def test_step(self, batch, batch_idx):
                self.rows.append(self(batch))

            def on_test_epoch_end(self):
                with open("rows.csv", "w") as f:
                    csv.writer(f).writerows(self.rows)
        """
    (told,) = findings_of(UnguardedHook, source)
    assert "rank 0 alone would lose the other ranks' part" in told.reason
    check_nothing(UnguardedFileIo, source)


SHARES = {
    "a slice": "for path in args.files[rank::world]:",
    "a range": "for i in range(rank, args.n, world):",
    "ends made of the rank": "start = args.n // world * rank\n    for c, i in enumerate(list(range(start, start + 10)), 1):",
    "a part of a list": "parts = split(args.files, world)\n    mine = parts[rank]\n    for path in tqdm(mine):",
    "items picked by the rank": "for path in [p for i, p in enumerate(args.files) if i % world == rank]:",
}


@pytest.mark.parametrize("loop", SHARES)
def test_what_is_written_for_the_share_of_a_rank_is_its_own(loop: str) -> None:
    head = "import torch.distributed as dist\n\ndef main(args):\n    rank, world = dist.get_rank(), dist.get_world_size()\n"
    body = "\n        with open(args.out, 'w') as f:\n            f.write('a')\n"
    check_nothing(UnguardedFileIo, f"{head}    {SHARES[loop]}{body}")
    assert findings_of(UnguardedFileIo, f"{head}    for path in args.files:{body}")
    assert findings_of(UnguardedFileIo, f"{head}    first = args.first\n    for i in range(first, 10):{body}")


@pytest.mark.parametrize(
    "lines",
    [
        ("with contextlib.suppress(OSError):", "    os.remove('a')"),
        ("try:", "    os.remove('a')", "except FileNotFoundError:", "    pass"),
        ("self.path.unlink(missing_ok=True)",),
        ("try:", "    shutil.rmtree(self.folder)", "except OSError:", "    pass"),
    ],
)
def test_a_file_that_may_be_gone_already(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedFileIo, "import contextlib\n" + hook(*lines))
    missed = "\n".join(lines).replace("OSError", "KeyError").replace("FileNotFoundError", "KeyError").replace("True", "False")
    assert findings_of(UnguardedFileIo, "import contextlib\n" + hook(*missed.split("\n")))


def test_a_folder_that_is_made_again_is_not_put_up_with() -> None:
    gone = ("try:", "    shutil.rmtree(self.folder)", "except OSError:", "    pass")
    assert findings_of(UnguardedFileIo, hook(*gone, "os.makedirs(self.folder, exist_ok=True)"))
    assert findings_of(UnguardedFileIo, hook(*gone[:3], "    self.report('not removed')"))


def test_a_file_that_is_given_the_rank_behind_its_name_is_the_ranks_own() -> None:
    named = ("path = self.path", "if trainer.world_size > 1:", "    path += f'_{trainer.global_rank}'", "f = open(path, 'w')")
    for written in ("f.write('a')", "print('a', file=f)", "json.dump({'a': 1}, f)"):
        check_nothing(UnguardedFileIo, hook(*named, "self.prune(f)", written))
        common = (*named[:2], "    path += '_many'", named[3])
        (finding,) = findings_of(UnguardedFileIo, hook(*common, "self.prune(f)", written))
        assert "every rank opens that file" in finding.reason


DRAWN = """
    import numpy as np
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler

    def main(args, data):
        rank = dist.get_rank()
        sampler = DistributedSampler(data) if args.many else None
        loader = DataLoader(data, sampler=sampler)
        drawn = list(sampler)
        {loop}:
            name = args.folder / data.name_of({item})
            np.savez(name.with_suffix(".npz"), a=args.a)
    """


@pytest.mark.parametrize(
    ("loop", "item"),
    [
        ("for i in range(len(drawn))", "drawn[i]"),
        ("for n in drawn", "n"),
        ("for i, n in enumerate(sampler)", "n"),
        ("for batch in tqdm(loader)", "batch['name']"),
        ("for i, batch in tqdm(enumerate(loader))", "batch['name']"),
        ("for batch, n in zip(loader, args.rows)", "batch['name']"),
    ],
)
def test_a_path_made_of_what_the_sampler_of_a_rank_draws_is_its_own(loop: str, item: str) -> None:
    source = DRAWN.format(loop=loop, item=item)
    check_nothing(UnguardedFileIo, source)
    assert findings_of(UnguardedFileIo, source.replace("DistributedSampler", "RandomSampler"))


@pytest.mark.parametrize(
    ("loop", "item"),
    [
        ("for i in range(len(drawn))", "i"),
        ("for i, batch in enumerate(loader)", "i"),
        ("for batch, n in zip(loader, args.rows)", "n"),
        ("for batch in loader", "args.name"),
        ("for n in all_gather(drawn)", "n"),
    ],
)
def test_a_path_that_only_counts_what_is_drawn_is_the_same_on_every_rank(loop: str, item: str) -> None:
    check_told(UnguardedFileIo, DRAWN.format(loop=loop, item=item), reason="gather")


@pytest.mark.parametrize("gone", ["shutil.rmtree(old)", "os.remove(old)", "old.unlink()"])
def test_what_is_only_taken_away_for_each_item_is_not_to_be_gathered(gone: str) -> None:
    lines = (TRAINER, "for old in args.folder.glob('*')[:-1]:", f"    {gone}")
    source = script(*lines, "    args.fit(old)").replace("import json", "import shutil, json")
    check_nothing(UnguardedFileIo, source)
    moved = source.replace(gone, "os.rename(old, old + '.bak')")
    check_told(UnguardedFileIo, moved, reason="all ranks go through the same files")
    check_told(UnguardedFileIo, source.replace(gone, f"open(old + '.log', 'w').write('a')\n        {gone}"),
               reason="all ranks go through the same files")  # fmt: skip


TRIALS = """
    import lightning as L
    import json
    from ray import tune

    def fit(config):
        trainer = L.Trainer(devices=2)
        with open("a.json", "w") as f:
            json.dump({"a": 1}, f)
        trainer.fit(config)
        print("done")

    START
    """


@pytest.mark.parametrize("start", ["tune.run(fit)", "tune.Tuner(fit).fit()"])
def test_trials_have_no_ranks(start: str) -> None:
    source = TRIALS.replace("START", start)
    for rule in (UnguardedFileIo, UnguardedPrint):
        check_nothing(rule, source)
        assert findings_of(rule, source.replace(start, "fit(tune.choice([1]))"))
        assert findings_of(rule, source.replace("ray import", "ray.train.torch import TorchTrainer\n    from ray import"))


# Functions that nobody comes to

SCRIPT = """
    import lightning as L
    import torch.distributed as dist

    def log(args):
        rank = dist.get_rank()
        {line}
        args.step(rank)

    def main(args):
        args.step(dist.get_rank())
        {call}

    if __name__ == "__main__":
        main(1)
    """
PUTS_OUT = {"DDP202": "open('a.json', 'w').write(str(args.rows))", "DDP203": "print(args.rows)"}


@pytest.mark.parametrize("rule", [UnguardedFileIo, UnguardedPrint])
def test_a_function_of_a_script_that_nobody_comes_to(rule: type[DdpCodemod]) -> None:
    def source(call: str) -> str:
        return SCRIPT.format(line=PUTS_OUT[rule.code], call=call)

    unused = source("pass")
    package = {"setup.py": "from setuptools import setup\nsetup(packages=['a'])\n"}
    check_nothing(rule, unused)
    check_nothing(rule, unused, files=package)
    check_nothing(rule, unused, files={"a.py": "import module\n"})
    check_nothing(rule, unused, files={"other.py": "def log(rows):\n    pass\n\nlog([])\n"})
    for call in ("log(args)", "args.on_end(log)"):
        assert findings_of(rule, source(call)), call
    assert not findings_of(rule, source("getattr(args.module, 'log')(args)"))
    seen: tuple[dict[str, str], ...] = (
        {"other.py": "import module\nmodule.log([])\n"},
        {"other.py": "from module import *\nlog([])\n"},
        {**package, "pyproject.toml": "[project.scripts]\nlog = 'module:log'\n"},
    )
    guessed: tuple[dict[str, str], ...] = (  # of a way that is only guessed at nothing is said
        {"other.py": "import args\ngetattr(args.module, 'log')([])\n"},
        {"conf/run.yaml": "_target_: module.log\n"},
        {**package, "a.py": "import module\n"},
    )
    for files in (*seen, *guessed):
        assert bool(findings_of(rule, unused, files=files)) is (files in seen), files
    assert not findings_of(rule, unused.replace("    def log", "    @app.command\n    def log"))
    if rule.severity == "noise":
        return
    assert findings_of(rule, unused.replace("    def log", "    def main").replace("main(1)", "start(1)"))
    assert findings_of(rule, unused.replace("__main__", "module"))
    assert findings_of(rule, "import fire\n" + textwrap.dedent(unused).replace("main(1)", "fire.Fire()"))


GROUP = "import csv, json, os, shutil, tempfile\nimport torch.distributed as dist\n\n"


def test_rows_of_every_epoch_under_the_rank_that_is_at_hand() -> None:
    source = (
        GROUP
        + """def main(args, total):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for epoch in range(args.epochs):
        mean = average(total)
        with open("log.jsonl", "a") as f:
            f.write(json.dumps({"epoch": epoch, "loss": mean}))
"""
    )
    after = source.replace(
        """        with open("log.jsonl", "a") as f:
            f.write(""",
        """        if rank == 0:
            with open("log.jsonl", "a") as f:
                f.write(""",
    )
    check_transformed(UnguardedFileIo, source, after, unsafe=True)


def test_a_folder_that_each_rank_clears_is_cleared_by_one_and_waited_for() -> None:
    source = (
        GROUP
        + """def prepare(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    os.makedirs(os.path.join(path, "weights"), exist_ok=True)


def main(args):
    dist.init_process_group("gloo")
    prepare(args.output)
"""
    )
    after = source.replace(
        """        shutil.rmtree(path)
""",
        """        if not dist.is_initialized() or dist.get_rank() == 0:
            shutil.rmtree(path)
    if dist.is_initialized():
        dist.barrier()
""",
    )
    check_transformed(UnguardedFileIo, source, after, unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("with tempfile.TemporaryDirectory() as folder:", "    write(os.path.join(folder, 'a.json'), total)"),
        ("write(name(dist.get_rank()), total)",),
        ("write('a.json' if dist.get_rank() == 0 else None, total)",),
        ("if args.output is None:", "    return", "if dist.get_rank() == 0:", "    write('a.json', total)"),
    ],
)
def test_paths_of_callers_that_are_each_ranks_own(lines: tuple[str, ...]) -> None:
    helper = (
        "def write(path, total):\n    if path is None:\n        return\n"
        "    with open(path, 'w') as f:\n        json.dump(total, f)\n\n"
    )
    named = "def name(number):\n    return f'part_of_rank{number}.json'\n\n"
    body = "".join(f"    {line}\n" for line in ("dist.init_process_group('gloo')", *lines))
    check_nothing(UnguardedFileIo, GROUP + helper + named + f"def main(args, total):\n{body}")


def test_a_log_object_that_only_rank_zero_opens() -> None:
    source = (
        GROUP
        + """class Lines:
    def __init__(self, path):
        self.handle = open(path, "w") if path is not None else None

    def write(self, **fields):
        if self.handle is None:
            return
        self.handle.write(json.dumps(fields))


def main(args):
    dist.init_process_group("gloo")
    log = Lines("log.jsonl" if dist.get_rank() == 0 else None)
    for epoch in range(args.epochs):
        log.write(epoch=epoch)
"""
    )
    check_nothing(UnguardedFileIo, source)
    everywhere = source.replace(" if dist.get_rank() == 0 else None", "")
    assert findings_of(UnguardedFileIo, everywhere)


def test_a_cache_that_is_filled_on_demand_is_told_elsewhere() -> None:
    source = (
        GROUP
        + """def words(path):
    if not os.path.exists(path):
        with open(path, "w") as f:
            json.dump([], f)
    with open(path) as f:
        return json.load(f)


def main(args):
    dist.init_process_group("gloo")
    return words("words.json")
"""
    )
    check_nothing(UnguardedFileIo, source)


REBOUND = """\
    import json
    import os

    import torch.distributed as dist

    def build(args):
        path = os.path.join(args.out, "settings.json")
        print(path)
        path = os.path.join(args.out, "names.json")
        with open(path) as file:
            return json.load(file)

    def main(args):
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        path = os.path.join(args.out, "settings.txt")
        note(path)
        path = os.path.join(args.out, "names.json")
        with open(path, "w") as file:
            json.dump(args.names, file)
        model = build(args)
        return model
    """


def test_a_reader_in_another_function_whose_path_has_the_same_name_again() -> None:
    found = findings_of(UnguardedFileIo, REBOUND)
    (edits,) = [f.edits for f in found]
    assert any("barrier()" in getattr(e, "code", "") for e in edits), [f.reason for f in found]
    elsewhere = REBOUND.replace('"names.json")\n        with open(path) as', '"x.csv")\n        with open(path) as')
    (other,) = findings_of(UnguardedFileIo, elsewhere)
    assert not any("barrier()" in getattr(e, "code", "") for e in other.edits)


NOTES = """
import json


def write_notes(what, where):
    with open(where, "w") as file:
        json.dump(what, file)
"""
MARKS = """
import json


def mark(truth, answers):
    with open(answers) as file:
        return len(json.load(file)) - len(truth)
"""
ASKED = """
    import torch.distributed as dist
    from marks import mark
    from notes import write_notes

    def main(args):
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        answers = {{"a": 1}}
        write_notes(answers, {written})
        {between}
        score = mark(args.truth, {read})
        return score
    """


@pytest.mark.parametrize(("written", "read"), [('"./answers.json"', '"answers.json"'), ("args.answers", "args.answers")])
def test_a_function_writes_what_another_one_reads(written: str, read: str) -> None:
    files = {"notes.py": NOTES, "marks.py": MARKS}
    (found,) = findings_of(UnguardedFileIo, ASKED.format(written=written, read=read, between="pass"), files)
    assert any("barrier()" in getattr(e, "code", "") for e in found.edits), found.reason
    for between, other in (("pass", '"truth.json"'), ("dist.barrier()", read)):
        (found,) = findings_of(UnguardedFileIo, ASKED.format(written=written, read=other, between=between), files)
        assert found.fix is not None and not any("barrier()" in getattr(e, "code", "") for e in found.edits)


LOG = "import logging\n\n\nclass Log:\n    def __init__(self, path):\n        {opened}\n"
LOGGED = (
    "import torch.distributed as dist\nfrom log import Log\n\n\ndef main(path):\n    dist.init_process_group('gloo')\n"
    "    return Log(path)\n"
)


@pytest.mark.parametrize(
    "opened",
    [
        "self.handler = logging.FileHandler(path, 'w')",
        "logging.basicConfig(filename=path, filemode='w')",
        "self.handler = logging.FileHandler(path, mode='w+')",
        "self.handler = logging.FileHandler(\n            path,\n            mode='w',\n        )",
    ],
)
def test_a_log_that_every_rank_empties_is_told(opened: str) -> None:
    files = {"train.py": LOGGED}
    found = findings_of(UnguardedFileIo, LOG.format(opened=opened), files, path="log.py")
    assert len(found) == 1 and found[0].path == "train.py" and "each rank empties the log" in found[0].message


OPENER = "import logging\n\n\ndef open_log(path, {given}):\n    {opened}\n"
OPENED_BY = "import torch.distributed as dist\nfrom log import open_log\n\n\ndef main(path, args):\n" \
    "    dist.init_process_group('gloo')\n    {call}\n"


@pytest.mark.parametrize(
    ("given", "opened", "call"),
    [
        ("mode='w'", "return logging.FileHandler(path, mode)", "open_log(path)"),
        ("how='w'", "logging.basicConfig(filename=path, filemode=how)", "open_log(path, how='w')"),
        ("*, mode='w'", "return logging.FileHandler(path, mode=mode)", "open_log(path, mode='a' if args.resume else 'w')"),
    ],
)
def test_a_log_whose_opener_empties_it_unless_it_is_told(given: str, opened: str, call: str) -> None:
    files = {"train.py": OPENED_BY.format(call=call)}
    found = findings_of(UnguardedFileIo, OPENER.format(given=given, opened=opened), files, path="log.py")
    assert len(found) == 1 and "each rank empties the log" in found[0].message


@pytest.mark.parametrize(
    ("given", "opened", "call"),
    [
        ("mode='w'", "return logging.FileHandler(path, mode)", "open_log(path, 'a')"),
        ("mode='a'", "return logging.FileHandler(path, mode)", "open_log(path)"),
        ("mode", "return logging.FileHandler(path, mode)", "open_log(path, args.mode)"),
        ("mode='w'", "return logging.FileHandler(path, mode)", "open_log(f'{path}.{dist.get_rank()}')"),
        ("mode='w'", "return logging.FileHandler(path, mode)", "dist.get_rank() == 0 and open_log(path)"),
    ],
)
def test_a_log_that_is_added_to_where_it_is_opened(given: str, opened: str, call: str) -> None:
    files = {"train.py": OPENED_BY.format(call=call)}
    check_nothing(UnguardedFileIo, OPENER.format(given=given, opened=opened), files=files, path="log.py")


@pytest.mark.parametrize(
    "opened",
    [
        "self.handler = logging.FileHandler(path)",
        "self.handler = logging.FileHandler(path, mode='a')",
        "self.handler = logging.FileHandler(\n            path,\n            mode='a+',\n        )",
        "self.handler = logging.FileHandler(f'{path}.{os.getpid()}', 'w')",
    ],
)
def test_lines_that_are_added_and_logs_of_each_process(opened: str) -> None:
    check_nothing(UnguardedFileIo, LOG.format(opened=opened), files={"train.py": LOGGED}, path="log.py")


@pytest.mark.parametrize(
    ("opened", "harm"),
    [
        ("self.handler = logging.handlers.TimedRotatingFileHandler(path, when='midnight')", "renames it under the others"),
        ("self.handler = logging.handlers.RotatingFileHandler(path, 'a', 10_000, 3)", "renames it under the others"),
        ("self.handler = RotatingFileHandler(path, maxBytes=LIMIT, backupCount=KEPT)", "renames it under the others"),
        ("logging.getLogger().addHandler(RotatingFileHandler(path, maxBytes=LIMIT))", "empties the full log by itself"),
    ],
)
def test_a_log_that_every_rank_rotates_is_told(opened: str, harm: str) -> None:
    source = "import logging.handlers\nfrom logging.handlers import RotatingFileHandler\n" + LOG.format(opened=opened)
    found = findings_of(UnguardedFileIo, source, {"train.py": LOGGED}, path="log.py")
    assert len(found) == 1 and found[0].path == "train.py" and harm in found[0].message


def test_a_rotating_log_whose_opener_is_told_to_add_to_it() -> None:
    source = "from logging.handlers import RotatingFileHandler as Rolling\n\n\ndef open_log(path, mode='a'):\n" \
        "    return Rolling(path, mode, maxBytes=1000)\n"
    files = {"train.py": OPENED_BY.format(call="open_log(path, 'a')")}
    found = findings_of(UnguardedFileIo, source, files, path="log.py")
    assert len(found) == 1 and "empties the full log by itself" in found[0].message


@pytest.mark.parametrize(
    ("opened", "call"),
    [
        ("RotatingFileHandler(path)", "open_log(path)"),
        ("RotatingFileHandler(path, maxBytes=0, backupCount=5)", "open_log(path)"),
        ("RotatingFileHandler(path, *options)", "open_log(path)"),
        ("WatchedFileHandler(path)", "open_log(path)"),
        ("TimedRotatingFileHandler(path)", "open_log(f'{path}.{dist.get_rank()}')"),
        ("TimedRotatingFileHandler(f'{path}.{os.getpid()}')", "open_log(path)"),
        ("TimedRotatingFileHandler(path)", "dist.get_rank() == 0 and open_log(path)"),
    ],
)
def test_a_log_that_no_rank_or_one_alone_rotates(opened: str, call: str) -> None:
    names = "RotatingFileHandler, TimedRotatingFileHandler, WatchedFileHandler"
    source = f"import os\nfrom logging.handlers import {names}\n\n\ndef open_log(path):\n    return {opened}\n"
    check_nothing(UnguardedFileIo, source, files={"train.py": OPENED_BY.format(call=call)}, path="log.py")


def test_a_log_of_scripts_that_one_process_runs() -> None:
    opened = "logging.basicConfig(filename=path, filemode='w')"
    alone = "from log import Log\n\nif __name__ == '__main__':\n    Log('export.txt')\n"
    source = f"import lightning\n{LOG.format(opened=opened)}        self.rank = 0\n"
    check_nothing(UnguardedFileIo, source, files={"export.py": alone}, path="log.py")


OF_CLASS = "import logging\n\nimport torch.distributed as dist\n\n\nclass Log:\n    {mark}\n    def begin({given}path):\n" \
    "        dist.barrier()\n        logging.basicConfig(filename=path, filemode='w')\n"
ONE_PROCESS = "from log import Log\n\nif __name__ == '__main__':\n    Log.begin('export.txt')\n"
OTHERS = "def follow(timers):\n    for timer in timers:\n        timer.begin('a')\n"


@pytest.mark.parametrize(("mark", "given"), [("@classmethod", "cls, "), ("@staticmethod", "")])
def test_a_log_that_a_method_of_the_class_empties(mark: str, given: str) -> None:
    train = OPENED_BY.replace("open_log", "Log").format(call="Log.begin(path)")
    files = {"train.py": train, "export.py": ONE_PROCESS, "timers.py": OTHERS}
    found = findings_of(UnguardedFileIo, OF_CLASS.format(mark=mark, given=given), files, path="log.py")
    assert len(found) == 1 and "each rank empties the log" in found[0].message
    kept = train.replace("Log.begin", "dist.get_rank() == 0 and Log.begin")
    check_nothing(UnguardedFileIo, OF_CLASS.format(mark=mark, given=given), files={**files, "train.py": kept}, path="log.py")


TABLE = "def score(rows, path):\n    if path is not None:\n        rows.to_csv(path)\n\n\n" \
    "def judge(rows, path):\n    score(rows, path)\n"
JUDGED = "import torch.distributed as dist\nfrom tables import judge\n\n\ndef main(rows):\n" \
    "    dist.init_process_group('gloo')\n    print(dist.get_world_size())\n    judge(rows, {path})\n"


def test_a_path_that_no_call_gives() -> None:
    given = findings_of(UnguardedFileIo, TABLE, {"train.py": JUDGED.format(path="'a.csv'")}, path="tables.py")
    assert len(given) == 1 and "`'a.csv'`" in given[0].message
    check_nothing(UnguardedFileIo, TABLE, files={"train.py": JUDGED.format(path="None")}, path="tables.py")


SETTINGS = "class Settings:\n    @classmethod\n    def read(cls, path):\n        return cls(path)\n\n" \
    "    def dump_to(self, path):\n        with open(path, 'w') as f:\n            f.write(self.text)\n"
STARTED = "import time\nimport lightning as L\nfrom settings import Settings\n\n\ndef main(model, data):\n" \
    "    settings = Settings.read('a.yaml')\n    settings.dump_to({path})\n" \
    "    trainer = L.Trainer(devices=2)\n    trainer.fit(model, data)\n"


def test_a_file_that_a_caller_names_after_the_clock_above_fit() -> None:
    (told,) = findings_of(UnguardedFileIo, SETTINGS, {"train.py": STARTED.format(path="'run.yaml'")}, path="settings.py")
    assert told.path == "train.py" and "`'run.yaml'`" in told.message
    named = STARTED.format(path="time.strftime('%H-%M') + '.yaml'")  # the other processes come there later
    check_nothing(UnguardedFileIo, SETTINGS, files={"train.py": named}, path="settings.py")


def test_a_buffer_is_no_file() -> None:
    lines = ("buffer = io.BytesIO()", "torch.save(state, buffer)", "return torch.load(buffer)")
    body = "".join(f"    {line}\n" for line in lines)
    head = "import io\nimport torch\nimport torch.distributed as dist\n\n\n"
    source = f"{head}def main(state):\n    dist.init_process_group()\n{body}"
    check_nothing(UnguardedFileIo, source)


# What is each rank's own without a word of it at the place


_MAIN = "def main(args):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n"
_WRITES = "    dist.barrier()\n    with open({}, 'w') as f:\n        f.write('done')\n"


def test_a_row_of_a_table_that_is_open_already() -> None:
    head = "import csv\nimport torch.distributed as dist\n\n\n"
    rows = "    table = csv.writer(open(args.out, 'a'))\n    dist.barrier()\n    table.writerow(['step', 'loss'])\n"
    assert not [f for f in findings_of(UnguardedFileIo, head + _MAIN + rows) if f.fix is not None]
    held = "class Table:\n    def __init__(self, path):\n        self.f = open(path, 'w')\n\n    def head(self):\n"
    line = "        if dist.get_rank() == 0:\n            print('a')\n        dist.barrier()\n        self.f.write('step,loss')\n"
    assert not [f for f in findings_of(UnguardedFileIo, head + held + line) if f.fix is not None]


def test_a_file_in_a_folder_that_each_rank_works_in() -> None:
    head = "import os\nimport torch.distributed as dist\n\n\n"
    moved = _MAIN + "    os.chdir({})\n" + _WRITES.format("'finished'")
    check_nothing(UnguardedFileIo, head + moved.format("f'home{rank}'"))
    assert findings_of(UnguardedFileIo, head + moved.format("args.home"))


def test_a_path_that_the_settings_put_the_rank_into() -> None:
    head = "import torch.distributed as dist\nfrom settings import conf\n\n\n"
    own = "import os\n\n\nclass Conf:\n    def __init__(self):\n        self.dump = {}\n\n\nconf = Conf()\n"
    written = head + _MAIN + _WRITES.format("conf.dump")
    check_nothing(UnguardedFileIo, written, files={"settings.py": own.format("'dump.%r'.replace('%r', os.environ['RANK'])")})
    assert findings_of(UnguardedFileIo, written, files={"settings.py": own.format("'dump.txt'")})


def by_device(test: str, line: str, path: str = "'a.json'") -> str:
    """A trainer whose `device` is handed in by a keyword that nothing follows: hydra makes the object."""
    return (
        "import json\nimport torch.distributed as dist\n\nclass Runner:\n    def __init__(self, device, folder):\n"
        "        dist.init_process_group('nccl')\n        self.device, self.folder = device, folder\n"
        f"        self.rank = dist.get_rank()\n\n    def train(self):\n        for epoch in range(3):\n            if {test}:\n"
        f"                {line}\n\n    def keep(self):\n        with open({path}, 'w') as f:\n"
        "            json.dump({'a': 1}, f)\n"
    )


@pytest.mark.parametrize("test", ["self.device == 0", "self.device in (-1, 0)", "0 < epoch and self.device == 0"])
def test_a_helper_called_on_the_first_gpu_alone(test: str) -> None:
    assert findings_of(UnguardedFileIo, by_device("epoch > 1", "self.keep()"))
    check_nothing(UnguardedFileIo, by_device(test, "self.keep()"))


@pytest.mark.parametrize("path", ["f'{self.folder}/part_{self.device}.json'", "self.folder + '/%d.json' % self.device"])
def test_a_file_named_after_the_gpu_is_the_ranks_own(path: str) -> None:
    assert findings_of(UnguardedFileIo, by_device("epoch > 1", "self.keep()", "f'{self.folder}/part.json'"))
    check_nothing(UnguardedFileIo, by_device("epoch > 1", "self.keep()", path))


def test_a_device_of_one_name_on_all_ranks_is_no_name_of_a_rank() -> None:
    source = by_device("epoch > 1", "self.keep()", "f'{self.folder}/{self.device}.json'")
    plain = source.replace("self.device, self.folder = device, folder", "self.device = 'cuda'\n        self.folder = folder")
    assert findings_of(UnguardedFileIo, plain)
    assert findings_of(UnguardedFileIo, by_device("self.device >= 0", "self.keep()"))


# A folder that every rank takes away and somebody makes again


def fresh(*lines: str, head: str = "") -> str:
    top = f"import os, shutil, subprocess, datetime\nimport torch.distributed as dist\n{head}\n\n"
    body = "".join(f"    {line}\n" for line in ("dist.init_process_group('gloo')", *lines))
    return f"{top}def main(folder, again, name):\n{body}"


MADE = ("if dist.get_rank() == 0:", "    os.makedirs(f'{folder}/weights', exist_ok=True)")


@pytest.mark.parametrize(
    "gone",
    [
        ("if again and os.path.isdir(folder):", "    os.system(f'rm -rf {folder}')"),
        ("os.system('rm -r -f ' + folder)",),
        ("if again:", "    subprocess.run(['rm', '-rf', folder])"),
    ],
)
def test_a_folder_that_a_late_rank_takes_away_again(gone: tuple[str, ...]) -> None:
    found = check_told(UnguardedFileIo, fresh(*gone, *MADE), reason="a rank that is late removes what another has made anew")
    assert found.span.line == (7 if "exists" in gone[0] or "isdir" in gone[0] else 6 + len(gone))


def test_the_clock_of_the_other_arm_is_no_name_of_the_folder() -> None:
    named = "folder = os.path.join(folder, 'try' if again else name + str(datetime.datetime.now()))"
    check_told(UnguardedFileIo, fresh(named, "if again:", "    os.system(f'rm -rf {folder}')", *MADE), reason="made anew")
    check_nothing(UnguardedFileIo, fresh(named, "if name:", "    os.system(f'rm -rf {folder}')", *MADE))


@pytest.mark.parametrize(
    "lines",
    [
        ("os.system(f'rm -rf {folder}')", "dist.barrier()", *MADE),  # nobody makes it before all have taken it away
        ("os.system(f'rm -rf {folder}')",),  # what is gone for the second rank does no harm
        ("os.system(f'rm -rf {folder}/{dist.get_rank()}')", *MADE),
        ("if dist.get_rank() == 0:", "    os.system(f'rm -rf {folder}')", *MADE),
        ("os.system(f'rm -rf {name}')", *MADE),  # another folder
        ("os.system(f'rm {folder}')", *MADE),
        ("os.system(f'ls -l {folder}')", *MADE),
    ],
)
def test_folders_that_may_be_taken_away(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedFileIo, fresh(*lines))


KEPT = (
    "if dist.get_rank() == 0:", "    if os.path.exists(name):", "        {}",
    "if again:", "    copied(folder)",
)  # fmt: skip
COPY = "def copied(folder):\n    shutil.copytree('src', folder + '/code')\n"


def test_what_comes_behind_a_rank_that_gives_up() -> None:
    lines = "\n".join(KEPT)
    check_told(UnguardedFileIo, fresh(*lines.format("return -1").split("\n"), head=COPY), reason="a torn copy")
    check_nothing(UnguardedFileIo, fresh(*lines.format("return").split("\n"), head=COPY))


# Files that are named after a step


PICTURES = "from torchvision.utils import save_image\n\n\ndef pictures(net, folder, step):\n"
PICTURES += "    save_image(net.sample(), f'{folder}/{step}.png')\n"


def steps(loop: str, given: str = "step", *, trains: str = "net(x).backward()", bar: str = "") -> str:
    return (
        "import torch.distributed as dist\nfrom tqdm import tqdm, trange\nfrom show import pictures\n\n\n"
        f"def main(net, loader, args):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n{bar}    {loop}\n"
        f"        {trains}\n        if args.often:\n            pictures(net, 'out', {given})\n"
    )


@pytest.mark.parametrize(
    ("loop", "given"),
    [
        ("for i, x in enumerate(loader):", "i"),
        ("for step, x in enumerate(tqdm(loader, disable=rank != 0)):", "step"),
        ("for i, x in tqdm(enumerate(loader), disable=rank != 0):", "f'{i:06d}'"),
        ("for step in bar:", "step"),
        ("for epoch in tqdm(range(9)):", "epoch"),
    ],
)
def test_a_file_named_after_the_step_of_the_training(loop: str, given: str) -> None:
    bar = "    bar = trange(9, disable=rank != 0)\n" if "bar:" in loop else ""
    found = findings_of(UnguardedFileIo, PICTURES, {"train.py": steps(loop, given, bar=bar)}, path="show.py")
    assert [f.applicability.value for f in found] == ["display"], found


@pytest.mark.parametrize(
    ("loop", "given", "trains"),
    [
        ("for i, x in enumerate(loader):", "x['name']", "net(x).backward()"),  # each rank has batches of its own
        ("for x in loader:", "x.name", "net(x).backward()"),
        ("for i, x in enumerate(args.scenes):", "i", "net(x)"),  # scenes may be shared out: no step of a training
        ("for i, x in enumerate(loader):", "f'{i}-{rank}'", "net(x).backward()"),
        ("for i, x in enumerate(loader):", "i * dist.get_world_size() + rank", "net(x)"),
        ("for k in range(rank, 9, 2):", "k", "net(x)"),
    ],
)
def test_a_file_named_after_what_only_one_rank_has(loop: str, given: str, trains: str) -> None:
    files = {"train.py": steps(loop, given, trains=trains)}
    check_nothing(UnguardedFileIo, PICTURES, files=files, path="show.py")


@pytest.mark.parametrize(
    "made", ["args.engine = os.path.join(args.out, 'engine.json')", "path = os.path.join(args.out, 'engine.json')"]
)
def test_a_path_that_goes_out_with_an_argument(made: str) -> None:
    path = made.partition(" = ")[0]
    keeps = () if path == "args.engine" else ("args.engine = path",)
    source = script("L.Trainer(devices=2).fit(args.net)", made, *keeps, f"with open({path}, 'w') as f:", "    f.write('{}')")
    check_told(UnguardedFileIo, source, reason="whoever gets `args.engine` may read the file")


ROWS = """
class Rows:
    def __init__(self, path):
        self.path = path

    def log(self, *row):
        with open(self.path, "+a") as f:
            print(*row, file=f)
"""


@pytest.mark.parametrize(("name", "told"), [("rows_{torch.distributed.get_rank()}.csv", False), ("rows_{args.run}.csv", True)])
def test_an_object_that_is_made_with_the_path_of_its_rank(name: str, told: bool) -> None:
    source = f"""
import torch
from rows import Rows
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, model):
    torch.distributed.init_process_group("nccl")
    model = DDP(model)
    rows = Rows(f"{name}")
    for epoch in range(9):
        model(epoch).backward()
        rows.log(epoch)
    if torch.distributed.get_rank() == 0:
        torch.save(model.module.state_dict(), "net.pt")
"""
    found = findings_of(UnguardedFileIo, source, {"rows.py": ROWS})
    assert bool(found) is told, found


METERS = """import torch
import torch.distributed as dist
from collections import defaultdict
from functools import partial
from meters import Meter


class Meters:
    def __init__(self, folder):
        self.folder, self.meters = folder, defaultdict(partial(Meter, 3))

    def summarize(self, args):
        for name, meter in self.meters.items():
            meter.refresh()
            if args.save:
                meter.table.to_csv(f"{args.out}/{name}.csv")
        return [m.table for m in self.meters.values()]


def main(args, model, loader):
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(model)
    meters = Meters(args.out)
    for batch in loader:
        model(batch).sum().backward()
    meters.summarize(args)
"""


def test_what_a_container_holds_may_change_by_its_methods() -> None:
    for finding in findings_of(UnguardedFileIo, METERS):
        assert not any("meter.refresh" in str(e) or getattr(e, "span", finding.span).line == 13 for e in finding.edits)


def test_a_save_under_another_name_of_torch_is_left_to_the_rule_of_saves() -> None:
    source = (
        "import torch as th\nimport torch.distributed as dist\n\n\ndef main(model, args):\n    dist.init_process_group('gloo')\n"
        "    model = th.nn.parallel.DistributedDataParallel(model)\n    th.save(model.module.state_dict(), args.out)\n"
    )
    check_nothing(UnguardedFileIo, source)
    saved = "th.save(model.module.state_dict(), args.out)"
    assert findings_of(UnguardedFileIo, source.replace(saved, "args.out.write_text('a')"))


FOLDER = """\
import glob
import os

import cv2
import lightning.pytorch as pl


def pictures(where):
    return sorted(GLOB)


class Shots(pl.Callback):
    def __init__(self, folder):
        self.folder = folder

    def on_validation_epoch_start(self, trainer, pl_module):
        for i in range(4):
            cv2.imwrite(f"{self.folder}/{i}.png", self.pictures[i])
        pl_module.log("shots", float(len(READER)))
"""


@pytest.mark.parametrize(
    ("listing", "reader"),
    [
        ("glob.glob(where + '/*.png')", "pictures(self.folder)"),
        ("glob.iglob(where + '**/**', recursive=True)", "pictures(where=self.folder)"),
        ("glob.glob(os.path.join(where, '*'))", "pictures(self.folder)"),
        ("os.listdir(where)", "pictures(self.folder)"),
        ("[]", "glob.glob(f'{self.folder}/*.png')"),
    ],
)
def test_others_list_the_folder_behind_it(listing: str, reader: str) -> None:
    source = FOLDER.replace("GLOB", listing).replace("READER", reader)
    (found,) = findings_of(UnguardedFileIo, source)
    assert found.fix is not None
    assert any("barrier()" in str(e) for e in found.fix.edits), found.fix.edits


def test_what_others_list_needs_a_barrier_in_any_way_it_is_guarded() -> None:
    source = FOLDER.replace("self.pictures[i])", "pl_module.picture(i))").replace("GLOB", "os.listdir(where)")
    check_told(UnguardedFileIo, source.replace("READER", "pictures(self.folder)"), reason="and a barrier behind it")


@pytest.mark.parametrize("listing", ["glob.glob(where + '/*.jpg')", "glob.glob('other/*.png')"])
def test_a_pattern_of_other_files_is_no_reader(listing: str) -> None:
    source = FOLDER.replace("GLOB", listing).replace("READER", "pictures(self.folder)")
    (found,) = findings_of(UnguardedFileIo, source)
    assert "barrier()" not in str(found.fix)


def test_nothing_is_taken_away_under_a_pattern_that_no_file_is_called() -> None:
    lines = ("pattern = os.path.join(self.folder, '*.png')", "if os.path.exists(pattern):", "    os.remove(pattern)")
    check_nothing(UnguardedFileIo, f"import os\n{hook(*lines)}")


SCRATCH = """\
import os

import pytorch_lightning as pl
import torch


def redraw(shape, lines):
    MAKE
    READ
    REMOVE
    return found


class Net(pl.LightningModule):
    def validation_step(self, batch, i):
        self.shapes = redraw(batch.shape, batch.lines)


if __name__ == "__main__":
    pl.Trainer(devices=2).fit(Net())
"""


def scratch(make: str, read: str, remove: str = "os.remove('part.txt')") -> str:
    return SCRATCH.replace("MAKE", make).replace("READ", read).replace("REMOVE", remove)


@pytest.mark.parametrize(
    ("make", "read"),
    [
        ("open('part.txt', 'w').write(lines)", "found = open('part.txt').read()"),
        ("path = 'part.txt'\n    with open(path, 'w') as f:\n        f.write(lines)", "found = shape.from_file('part.txt')"),
        ("open('part.txt', 'w').write(lines)", "found = torch.load('part.txt')"),
    ],
)
def test_a_scratch_file_is_no_file_for_rank_zero(make: str, read: str) -> None:
    found = findings_of(UnguardedFileIo, scratch(make, read))
    assert found
    assert all("scratch file" in f.reason and f.fix is None for f in found), [f.reason for f in found]


@pytest.mark.parametrize(
    ("make", "read", "remove"),
    [
        ("open('part.txt', 'w').write(lines)", "found = open('part.txt').read()", "pass"),
        ("open('part.txt', 'w').write(lines)", "found = open('other.txt').read()", "os.remove('part.txt')"),
        ("print('part.txt')", "found = print('part.txt')", "os.remove('part.txt')"),
        ("found = open('part.txt').read()", "open('part.txt', 'w').write(lines)", "os.remove('other.txt')"),
    ],
)
def test_what_is_kept_or_made_elsewhere_is_no_scratch_file(make: str, read: str, remove: str) -> None:
    assert not any("scratch file" in (f.reason or "") for f in findings_of(UnguardedFileIo, scratch(make, read, remove)))


SHARED_OUT = """\
import os

import numpy as np
import torch
import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        print("begins")
    for name in args.names:
        path = os.path.join(args.out, f"{name}.npy")
        SKIP
        np.save(path, args.features[name])


if __name__ == "__main__":
    main(parse())
"""


@pytest.mark.parametrize("skip", ["if os.path.exists(path):\n            continue", "if os.path.isfile(path): continue"])
def test_files_that_the_ranks_share_out_by_what_is_there(skip: str) -> None:
    check_nothing(UnguardedFileIo, SHARED_OUT.replace("SKIP", skip))


@pytest.mark.parametrize(
    "skip", ["pass", "if name.startswith('_'):\n            continue", "if os.path.exists(args.out): continue"]
)
def test_files_that_every_rank_writes_are_told(skip: str) -> None:
    assert findings_of(UnguardedFileIo, SHARED_OUT.replace("SKIP", skip))


RECORDER = """
class Recorder:
    def __init__(self, folder, rank):
        self.file = folder + "/loss_" + str(NAMED) + ".txt"

    def write_loss(self, loss):
        with open(self.file, "a") as out:
            out.write(str(loss))
"""
RECORDED = """
import torch.distributed as dist
import torch.multiprocessing as mp
from recorder import Recorder


def main(rank, folder):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    recorder = Recorder(folder, rank)
    recorder.write_loss(dist.get_world_size())
    if rank == 0:
        print("done")


if __name__ == "__main__":
    mp.spawn(main, args=("out",), nprocs=2)
"""


def test_the_handle_of_a_file_of_the_rank_that_another_file_opens() -> None:
    check_nothing(UnguardedFileIo, RECORDED, files={"recorder.py": RECORDER.replace("NAMED", "rank")})
    assert findings_of(UnguardedFileIo, RECORDED, {"recorder.py": RECORDER.replace("NAMED", "len(folder)")})


COPIES = """
import inspect
import os
import shutil
import sys

import torch.distributed as dist
import torch.multiprocessing as mp
from net import Net


def main(rank, folder):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    shutil.copy(SOURCE, folder)


if __name__ == "__main__":
    mp.spawn(main, args=("out",), nprocs=2)
"""


@pytest.mark.parametrize(
    "source",
    ["__file__", "os.path.abspath(__file__)", "inspect.getfile(Net)", "'./a.py'", "sys.argv[0]", "os.path.join('a', 'net.py')"],
)
def test_copies_of_the_source_beside_the_results(source: str) -> None:
    check_nothing(UnguardedFileIo, COPIES.replace("SOURCE", source))


@pytest.mark.parametrize("source", ["'rows.csv'", "os.path.join(folder, 'last.pt')", "sys.argv[1]"])
def test_copies_of_other_files_are_told(source: str) -> None:
    assert findings_of(UnguardedFileIo, COPIES.replace("SOURCE", source))


METER = """
class Meter:
    def __init__(self, names, file=None):
        self.names = names
        self.file = file

    def write_line(self, step):
        if self.file is not None:
            self.file.write(str(step))
"""


def test_a_handle_that_no_object_is_given() -> None:
    source = RECORDED.replace("from recorder import Recorder", "from meter import Meter")
    source = source.replace("Recorder(folder, rank)", "Meter([1]GIVEN)").replace("write_loss(", "write_line(")
    check_nothing(UnguardedFileIo, source.replace("GIVEN", ""), files={"meter.py": METER})
    for given in (", open(folder, 'a')", ", file=open(folder, 'a')"):
        assert findings_of(UnguardedFileIo, source.replace("GIVEN", given), {"meter.py": METER})
    other = {"meter.py": METER, "more.py": "def put(meter, path):\n    meter.file = open(path)\n"}
    assert findings_of(UnguardedFileIo, source.replace("GIVEN", ""), other)


TEMPORARY = """
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def put(target, record):
    OPENED
        json.dump(record, out)
    os.replace(name, target)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    put("state.json", {"rows": 1})
    print(rank)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    "opened",
    [
        "handle, name = tempfile.mkstemp(dir='.')\n    with os.fdopen(handle, 'w') as out:",
        "handle, name = tempfile.mkstemp(dir='.')\n    with open(name, 'w') as out:",
        "name = tempfile.mktemp(dir='.')\n    out = open(name, 'w')\n    if record:",
        "out = tempfile.NamedTemporaryFile('w', dir='.', delete=False)\n    name = out.name\n    with out:",
    ],
)
def test_a_temporary_file_is_each_process_s_own_and_so_is_its_renaming(opened: str) -> None:
    check_nothing(UnguardedFileIo, TEMPORARY.replace("OPENED", opened))


def test_a_part_of_one_name_is_that_of_all_ranks() -> None:
    opened = "name = target + '.part'\n    with open(name, 'w') as out:"
    assert findings_of(UnguardedFileIo, TEMPORARY.replace("OPENED", opened))


JOURNAL = """
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def my_rank():
    return dist.get_rank() if dist.is_initialized() else 0


def place():
    return Path(f"journal.{my_rank()}.txt")


@dataclass
class Journal:
    target: Path = DEFAULT

    def close(self, lines):
        with self.target.open("w") as out:
            out.write("".join(lines))


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    Journal().close(["x"])


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    "default",
    [
        "field(default_factory=place)",
        "field(default_factory=lambda: Path('logs') / f'journal.{my_rank()}.txt')",
        "Path(f'journal.{my_rank()}.txt')",
    ],
)
def test_the_default_of_a_field_puts_the_rank_into_the_path(default: str) -> None:
    check_nothing(UnguardedFileIo, JOURNAL.replace("DEFAULT", default))


@pytest.mark.parametrize("default", ["field(default_factory=lambda: Path('journal.txt'))", "Path('journal.txt')"])
def test_the_default_of_a_field_names_one_file(default: str) -> None:
    assert findings_of(UnguardedFileIo, JOURNAL.replace("DEFAULT", default))


MODES = """\
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def join():
    dist.init_process_group("nccl")


def main(args):
    {above}
    if args.test is None:
        {start}
        model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
    else:
        with open("a.json", "w") as f:
            json.dump({{"a": 1}}, f)


if __name__ == "__main__":
    local_rank = int(os.environ["LOCAL_RANK"])
    main(None)
"""


@pytest.mark.parametrize(
    ("above", "start"),
    [
        ("pass", "dist.init_process_group('nccl')"),
        ("pass", "join()"),
        ("args.a = 1", "with args.a:\n            join()"),
    ],
)
def test_the_group_is_started_in_the_other_branch(above: str, start: str) -> None:
    found = findings_of(UnguardedFileIo, MODES.format(above=above, start=start))
    assert not any("is_initialized" in str(f.fix) for f in found)


@pytest.mark.parametrize(
    ("above", "start"), [("dist.init_process_group('nccl')", "pass"), ("join()", "pass"), ("join()", "join()")]
)
def test_the_group_is_started_above_the_branches(above: str, start: str) -> None:
    (found,) = findings_of(UnguardedFileIo, MODES.format(above=above, start=start))
    assert "get_rank() == 0" in str(found.fix)


def test_a_table_of_what_the_steps_of_an_heir_have_kept_is_told() -> None:
    base = """\
import lightning.pytorch as pl
import pandas as pd


class Base(pl.LightningModule):
    def keep(self, rows):
        self.rows.extend(rows)

    def write(self):
        if self.trainer.training:
            return
        table = pd.DataFrame(self.rows)
        table.to_pickle(self.path)
        self.rows = self.fresh(table)
"""
    heir = """\
from base import Base


class Net(Base):
    def test_step(self, batch, batch_idx):
        self.keep(self(batch))

    def on_test_epoch_end(self):
        self.write()
"""
    check_told(UnguardedFileIo, base, reason="`self.rows` is filled in Base.keep", path="base.py", files={"net.py": heir})


def test_a_hook_that_writes_through_a_helper_is_told_once() -> None:
    hook = """\
import logging
from pathlib import Path

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback

from kept import keep

logger = logging.getLogger(__name__)


class History(Callback):
    def __init__(self):
        self.rows, self.folder = {}, Path("runs")

    def on_train_end(self, trainer, pl_module):
        if not pl_module.args.dry:
            path = self.folder / "history.json"
            keep(self.rows, str(path))
            logger.info(f"the history is in {path}")


if __name__ == "__main__":
    trainer = pl.Trainer(devices=2, strategy="ddp", callbacks=[History()])
    trainer.fit(None)
"""
    kept = "import json\n\n\ndef keep(rows, path):\n    with open(path, 'w') as file:\n        json.dump(rows, file)\n"
    assert findings_of(UnguardedHook, hook, {"kept.py": kept})
    assert not findings_of(UnguardedFileIo, kept, {"train.py": hook}, path="kept.py")


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (("blob.upload_from_filename('a.json')",), True),
        (("name = 'a.json'", "run.log_artifact(name)"), True),
        (("blob.upload_from_filename('b.json')",), False),  # another file
        (("if trainer.is_global_zero:", "    blob.upload_from_filename('a.json')"), False),
        (("names.remove('a.json')",), False),
    ],
)
def test_a_file_that_every_rank_sends_on(rest: tuple[str, ...], told: bool) -> None:
    (found,) = findings_of(UnguardedFileIo, script(TRAINER, "trainer.fit(args.net)", *DUMP, *rest))
    assert ("every rank sends that file on in line" in found.reason) is told
    assert bool(found.edits) is not told


def test_a_helper_that_one_of_many_callers_gives_a_file_of_the_rank() -> None:
    head = "import json, os\nimport torch.distributed as dist\n\n\ndef keep(rows, path):\n"
    head += "    if dist.is_initialized() and dist.get_rank() == 0:\n        print(path)\n"
    head += "    with open(path, 'w') as f:\n        json.dump(rows, f)\n\n\n"
    calls = "".join(f"def part{i}(rows):\n    keep(rows, 'part{i}.json')\n\n\n" for i in range(8))
    own = "def own(rows, rank):\n    dist.init_process_group('gloo', rank=rank)\n    keep(rows, f'rank_{rank}.json')\n"
    assert any(f.fix for f in findings_of(UnguardedFileIo, head + calls + own.replace("f'rank_{rank}.json'", "'all.json'")))
    assert not any(f.fix for f in findings_of(UnguardedFileIo, head + calls + own))


OWN_SCORES = """\
import json
import os

import numpy as np
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def scored(model, data):
    found = []
    for x, y in DataLoader(data, batch_size=8SAMPLED):
        found.append(float((model(x) == y).mean()))
    return np.mean(found)


def main(model, data):
    dist.init_process_group("nccl")
    if int(os.environ["RANK"]) == 0:
        print("go")
    accuracy = scored(model, data)
    WITH open("scores.txt", "a") as f:
        f.write(f"accuracy {accuracy}\\n")


main(None, None)
"""


@pytest.mark.parametrize(
    ("sampler", "rest", "told"),
    [
        (", sampler=DistributedSampler(data)", "", True),
        ("", "", False),  # every rank goes through all of it
        (", sampler=DistributedSampler(data)", "dist.all_reduce(accuracy)\n    ", False),
    ],
)
def test_lines_of_the_rank_s_own_share_are_not_kept_to_rank_0(sampler: str, rest: str, told: bool) -> None:
    source = OWN_SCORES.replace("SAMPLED", sampler).replace("WITH", f"{rest}with")
    (found,) = findings_of(UnguardedFileIo, source)
    assert ("gather the parts first" in found.reason) is told
    assert bool(found.edits) is not told


def test_what_another_file_makes_of_the_share() -> None:
    shares = OWN_SCORES.replace("SAMPLED", ", sampler=DistributedSampler(data)").replace("WITH", "with")
    above, main = shares.split("def main", 1)
    script_of_it = "import os\nimport torch.distributed as dist\nfrom scores import scored\n\n\ndef main" + main
    check_told(UnguardedFileIo, script_of_it, reason="`accuracy` is made of this rank's own share", files={"scores.py": above})


OF_A_NODE = """\
import os
import platform
from pathlib import Path

import torch.distributed as dist


class Driver:
    def __init__(self, args):
        self.args = args
        self.log_file = Path(args.log_file)
        self.lines = []

    def flush(self):
        if int(os.environ["RANK"]) == 0:
            print("flush")
        with self.log_file.open("a") as f:
            f.writelines(self.lines)


def main(args):
    dist.init_process_group("nccl")
    args.log_file = Path(args.folder) / NAME
    Driver(args).flush()


main(None)
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("(os.environ['SLURMD_NODENAME'] + '.log')", 0),
        ("f'{os.environ[\"SLURM_NODEID\"]}.log'", 0),
        ("(os.environ['SLURM_JOB_NAME'] + '.log')", 1),
        ("'lines.log'", 1),
    ],
)
def test_a_log_of_each_node(name: str, told: int) -> None:
    source = OF_A_NODE.replace("NAME", name, 1) if "NODENAME" not in name else OF_A_NODE.replace("/ NAME", f"/ {name}")
    assert len(findings_of(UnguardedFileIo, source)) == told
    driver, main = source.split("\n\ndef main", 1)
    start = "import os, platform\nfrom pathlib import Path\nimport torch.distributed as dist\nfrom driver import Driver\n\n\n"
    assert len(findings_of(UnguardedFileIo, driver, {"train.py": f"{start}def main{main}"}, path="driver.py")) == told


KEPT_SETTINGS = """\
import json
import os
import pickle
from omegaconf import OmegaConf


def keep(args, rows):
    KEEP
"""
KEEPS_SETTINGS = """\
import json
import torch.distributed as dist
from kept import keep


def main(args):
    dist.init_process_group("nccl")
    keep(args, load(args.rows))
    OTHER


main(None)
"""
INTO_JSON = "with open('run/args.json', 'w') as f:\n        json.dump(WHAT, f)"
INTO_OUT = "with open(os.path.join(args.out, 'args.json'), 'w') as f:\n        json.dump(vars(args), f)"


@pytest.mark.parametrize(
    ("keep", "other", "told"),
    [
        (INTO_JSON.replace("WHAT", "vars(args)"), "pass", 0),
        ("pickle.dump(args, open(os.path.join(args.out, 'args.pkl'), 'wb'))", "pass", 0),
        ("OmegaConf.save(args, os.path.join(args.out, 'args.yaml'))", "pass", 0),
        ("text = json.dumps(args.__dict__)\n    with open('args.txt', 'w') as f:\n        f.write(text)", "pass", 0),
        (INTO_JSON.replace("WHAT", "rows"), "pass", 1),
        (INTO_JSON.replace("WHAT", "{**vars(args), 'rows': rows}"), "pass", 1),
        (INTO_JSON.replace("WHAT", "load(args)"), "pass", 1),  # may be anything
        (INTO_JSON.replace("WHAT", "vars(args)"), "json.load(open('run/args.json'))", 1),
    ],
)
def test_settings_that_nobody_reads(keep: str, other: str, told: int) -> None:
    train = KEEPS_SETTINGS.replace("OTHER", other)
    found = findings_of(UnguardedFileIo, KEPT_SETTINGS.replace("KEEP", keep), {"train.py": train}, path="kept.py")
    assert len(found) == told


@pytest.mark.parametrize(("name", "told"), [("other.json", 0), ("args.json", 1), ("more_args.json", 0)])
def test_settings_that_another_file_reads(name: str, told: int) -> None:
    reads = f"import json, os\n\n\ndef again(folder):\n    return json.load(open(os.path.join(folder, {name!r})))\n"
    files = {"train.py": KEEPS_SETTINGS.replace("OTHER", "pass"), "again.py": reads}
    assert len(findings_of(UnguardedFileIo, KEPT_SETTINGS.replace("KEEP", INTO_OUT), files, path="kept.py")) == told


@pytest.mark.parametrize(
    ("opened", "told"),
    [
        ("io.open(path, 'w')", 1), ("codecs.open(path, mode='w')", 1), ("zipfile.ZipFile(path, 'w')", 1),
        ("gzip.GzipFile(path, 'w')", 1), ("lzma.open(path, 'wt')", 1), ("gzip.GzipFile(path)", 0), ("io.open(path)", 0),
    ],
)  # fmt: skip
def test_a_helper_whose_caller_says_no_word_of_files(opened: str, told: int) -> None:
    helper = f"import codecs, gzip, io, lzma, zipfile\n\n\ndef keep(path, rows):\n    with {opened} as f:\n"
    helper += "        f.write(rows)\n"
    train = "import torch.distributed as dist\nfrom kept import keep\n\n\ndef main(args):\n    dist.init_process_group('nccl')\n"
    train += "    if dist.get_rank() == 0:\n        print('go')\n    keep(args.out, load(args.rows))\n\n\nmain(None)\n"
    assert len(findings_of(UnguardedFileIo, helper, {"train.py": train}, path="kept.py")) == told


MARKED = (
    "with open('kind.txt', 'w') as f:\n    f.write('small')\n{imported}\nimport torch.distributed as dist\n\n\n"
    "def main(args):\n    dist.init_process_group('nccl')\n    train(args)\n\n\nif __name__ == '__main__':\n    main(None)\n"
)
READ = "with open({name}) as f:\n    KIND = f.read()\n"


@pytest.mark.parametrize(
    ("imported", "reader"),
    [("from net import train", "net.py"), ("import net.parts.deep", "net/__init__.py"), ("from net import deep", "net/kinds.py")],
)
def test_a_file_that_is_read_at_an_import_behind(imported: str, reader: str) -> None:
    files = {
        "net.py": "train = print\n", "net/__init__.py": "from net.kinds import KIND\n", "net/parts/__init__.py": "",
        "net/parts/deep.py": "train = print\n", "net/kinds.py": "KIND = 3\n", "net/deep.py": "",
    }
    if reader == "net.py":
        files = {"net.py": ""}
    else:
        del files["net.py"]
    source = MARKED.format(imported=imported)
    run = {"run.sh": "torchrun --nproc_per_node 2 module.py\n"}
    check_told(UnguardedFileIo, source, files={**files, reader: READ.format(name="'kind.txt'"), **run}, reason=f"{reader}:1")
    check_told(UnguardedFileIo, source, files={**files, reader: READ.format(name="'other.txt'"), **run}, reason="no group exists")


@pytest.mark.parametrize(("holder", "told"), [("self", False), ("Path('runs/started')", True)])
def test_a_method_of_the_own_class_that_a_path_has_too(holder: str, told: bool) -> None:
    source = (
        "import lightning.pytorch as pl\nfrom pathlib import Path\n\n\nclass Net(pl.LightningModule):\n"
        "    def __init__(self):\n        super().__init__()\n\n"
        "    def write_text(self, text):\n        self.print(text)\n\n"
        f"    def on_train_start(self):\n        self.trainer.count = 0\n        {holder}.write_text('a')\n"
        "        self.rows = []\n\n\n"
        "pl.Trainer(devices=2).fit(Net())\n"
    )
    assert bool(findings_of(UnguardedFileIo, source)) is told


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        (("shutil.copyfile('a.yaml', 'b.yaml')",), "noise"),
        (("with open('a.json', 'w') as f:", "    json.dump(vars(args), f)"), "noise"),
        (("with open('a.json', 'a') as f:", "    json.dump(vars(args), f)"), "data"),  # a line of each rank
        (("with open('a.json', 'w') as f:", "    json.dump(scores, f)"), "data"),
        (("shutil.copyfile('a.yaml', 'b.yaml')", "os.remove('a.yaml')"), "data"),
    ],
)
def test_what_all_ranks_write_alike_loses_nothing(lines: tuple[str, ...], severity: str) -> None:
    source = script("scores = measure(args)", TRAINER, "trainer.fit(args.model)", *lines)
    source = source.replace("import json", "import json, shutil")
    found = findings_of(UnguardedFileIo, source)
    assert found and {f.severity for f in found} == {severity}
