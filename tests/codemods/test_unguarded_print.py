from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability, WrapInGuard
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

ARGUMENTS = "self, trainer, pl_module"


def hook(*lines: str, base: str = "pl.Callback", arguments: str = ARGUMENTS, name: str = "on_train_start") -> str:
    body = "".join(f"        {line}\n" for line in ("self.size = trainer_size()", *lines))
    return f"import os\nimport lightning.pytorch as pl\n\nclass A({base}):\n    def {name}({arguments}):\n{body}"


DIST = "import torch.distributed as dist; WORLD = dist.group.WORLD\n"


def script(*lines: str, head: str = DIST, arguments: str = "args") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}\ndef main({arguments}):\n{body}"


def test_example_of_the_page() -> None:
    sections = UnguardedPrint.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(
    ("place", "test"),
    [
        ({}, "trainer.is_global_zero"),
        ({"arguments": "self, owner, pl_module"}, "owner.is_global_zero"),
        ({"name": "_note", "arguments": "self, trainer"}, "trainer.is_global_zero"),
        ({"base": "pl.LightningModule", "arguments": "self", "name": "configure_optimizers"}, "self.global_rank == 0"),
        ({"base": "pl.LightningModule", "arguments": "self, batch, i", "name": "training_step"}, "self.global_rank == 0"),
    ],
)
def test_the_test_fits_the_place(place: dict[str, str], test: str) -> None:
    before = hook("print('start')", **place)
    after = hook(f"if {test}:", "    print('start')", **place)
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize("flag", ["args.keeps", "keeps"])
def test_a_flag_that_holds_more_than_the_rank_is_no_test_of_it(flag: str) -> None:
    """Without the other part nobody would print the line."""
    lines = ("rank = dist.get_rank()", f"{flag} = {{}}", f"if {flag}:", "    args.store()", "args.net.half()", "print('half')")
    for told in ("args.out and rank == 0", "args.out is not None and (rank == 0)"):
        source = script(*(x.format(told) for x in lines))
        (found,) = findings_of(UnguardedPrint, source)
        assert flag not in str(found.edits), found
    plain = script(*(x.format("rank == 0") for x in lines))
    after = plain.replace("    print('half')", f"    if {flag}:\n        print('half')")
    check_transformed(UnguardedPrint, plain, after)


MODULE = {"base": "pl.LightningModule", "arguments": "self"}


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        (("print('start')",), ("self.print('start')",)),
        (("for n in self.names:", "    print(n)", "print()"), ("for n in self.names:", "    self.print(n)", "self.print()")),
        (("print(", "    self.lr,", ")"), ("self.print(", "    self.lr,", ")")),
    ],
)
def test_what_a_module_prints_goes_through_its_own_print(lines: tuple[str, ...], after: tuple[str, ...]) -> None:
    check_transformed(UnguardedPrint, hook(*lines, **MODULE), hook(*after, **MODULE))


@pytest.mark.parametrize("line", ["print('start', flush=True)", "print('start',\n              self.lr)"])
def test_a_print_that_the_module_cannot_make_goes_under_the_test(line: str) -> None:
    """Lightning hands it on to a progress bar, which takes no `flush`; a line below the first argument would stand askew."""
    moved = line.replace("              self", "                  self")
    after = hook("if self.global_rank == 0:", f"    {moved}", **MODULE)
    check_transformed(UnguardedPrint, hook(line, **MODULE), after)


def test_a_print_of_the_module_that_the_project_writes_itself_is_not_used() -> None:
    own = "\n    def print(self, *words):\n        log(words)\n"
    after = hook("if self.global_rank == 0:", "    print('start')", **MODULE)
    check_transformed(UnguardedPrint, hook("print('start')", **MODULE) + own, after + own)


@pytest.mark.parametrize(
    ("pin", "test"),
    [("1.1.8", "self.trainer.is_global_zero"), ("1.2.0", "self.global_rank == 0"), ("1.9.5", "self.global_rank == 0")],
)
@pytest.mark.parametrize("name", ["on_train_start", "configure_optimizers"])
def test_how_a_module_of_an_old_lightning_asks(pin: str, test: str, name: str) -> None:
    """pytorch-lightning 1.1.8 gives a module no rank, 1.2.10 does."""
    place = {**MODULE, "name": name}
    after = hook(f"if {test}:", "    print('start', flush=True)", **place)
    files = {"requirements.txt": f"pytorch-lightning=={pin}\n"}
    check_transformed(UnguardedPrint, hook("print('start', flush=True)", **place), after, files=files)


FABRIC = "from lightning.fabric import Fabric\n"


@pytest.mark.parametrize(
    ("head", "above", "quiet"),
    [
        ("from accelerate import Accelerator\n", "accelerator = Accelerator()", "accelerator.print"),
        (FABRIC, "fabric = Fabric(devices=2)", "fabric.print"),
        (FABRIC, "if fabric.global_rank == 0:\n        save()\n    step()", "fabric.print"),
        ("import os\nfrom accelerate import Accelerator\n",
         "accelerator = Accelerator()\n    rank = int(os.environ['RANK'])\n    if rank == 0:\n        save()\n    step()",
         "accelerator.print"),
        ("from accelerate import Accelerator\n", "if args.accelerator.is_main_process:\n        save()\n    step()",
         "args.accelerator.print"),
    ],
)  # fmt: skip
def test_lines_go_through_the_print_of_the_object_that_knows_the_rank(head: str, above: str, quiet: str) -> None:
    arguments = "fabric, args" if above.startswith("if fabric") else "args"
    before = script(above, "print('a', flush=True)", "if args.long:", "    print('b')", head=head, arguments=arguments)
    after = script(above, f"{quiet}('a', flush=True)", "if args.long:", f"    {quiet}('b')", head=head, arguments=arguments)
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(("pin", "quiet"), [("lightning>=2.1", True), ("lightning>=2.0", False), ("", False)])
def test_a_trainer_prints_itself_from_the_version_on_that_can(pin: str, quiet: bool) -> None:
    files = {"requirements.txt": f"{pin}\n"}
    lines = ("trainer.print('start')",) if quiet else ("if trainer.is_global_zero:", "    print('start')")
    check_transformed(UnguardedPrint, hook("print('start')"), hook(*lines), files=files)
    head = "import lightning as L\n"
    made = "trainer = L.Trainer(max_epochs=1)"
    check_transformed(UnguardedPrint, script(made, "print('start')", head=head), script(made, *lines, head=head), files=files)


def test_lines_beside_other_output_stay_under_one_test() -> None:
    above = ("accelerator = Accelerator()", "step()")
    head = "from accelerate import Accelerator\n\nlog = logging.getLogger(__name__)\n"
    lines = ("print('a')", "show(args)")
    shown = "\ndef show(args):\n    print(args)\n"
    after = script(*above, "if accelerator.is_main_process:", *("    " + x for x in lines), head=head)
    check_transformed(UnguardedPrint, script(*above, *lines, head=head) + shown, after + shown)


def test_a_function_that_only_prints_is_left_at_its_top() -> None:
    lines = ("# what is shown", "print('a')", "for k in args:", "    print(k)", "print('b')")
    after = script("if rank != 0:", "    return", *lines, arguments="args, rank")
    check_transformed(UnguardedPrint, script(*lines, arguments="args, rank"), after)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("step()", ""),  # more is done above
        ("", "step()"),  # and below
        ("", "return args"),
        ("if args is None:\n        return 1\n    ", ""),
    ],
)
def test_a_function_that_does_more_is_not_left(above: str, below: str) -> None:
    lines = ("print('a')", "for k in args:", "    print(k)", "print('b')")
    first, end = filter(None, (above,)), filter(None, (below,))
    before = script(*first, *lines, *end, arguments="args, rank")
    guarded = before.replace("    print('a')", "    if rank == 0:\n        print('a')")
    for line in lines[1:]:
        guarded = guarded.replace(f"\n    {line}", f"\n        {line}")
    check_transformed(UnguardedPrint, before, guarded)


def test_a_data_module_asks_for_the_rank_itself() -> None:
    place = {"base": "pl.LightningDataModule", "arguments": "self, stage", "name": "setup"}
    after = hook("if rank_zero_only.rank == 0:", "    print(stage)", **place)
    after = after.replace("as pl\n", "as pl\nfrom lightning.pytorch.utilities import rank_zero_only\n", 1)
    check_transformed(UnguardedPrint, hook("print(stage)", **place), after)


def test_transformers_classes() -> None:
    before = """\
        from transformers import Trainer, TrainerCallback

        class Note(TrainerCallback):
            def on_log(self, args, state, control, logs=None, **kwargs):
                control.should_save = True
                print(logs)

        class Own(Trainer):
            def describe(self):
                self.count = 1
                print("model", self.count)
        """
    after = before.replace("        print(logs)", "        if state.is_world_process_zero:\n                    print(logs)")
    after = after.replace(
        "        print(\"model\"", "        if self.is_world_process_zero():\n                    print(\"model\""
    )
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(
    ("head", "above", "test"),
    [
        ("import torch.distributed as dist\n", "rank = dist.get_rank()", "rank == 0"),
        ("import torch.distributed as dist\n", "rank = dist.get_rank() if dist.is_initialized() else 0", "rank == 0"),
        ("import torch.distributed as dist\n", "rank = 0 if not args.many else dist.get_rank()", "rank == 0"),
        ("import os\n", "rank = int(os.environ['RANK'])", "rank == 0"),
        ("import lightning as L\n", "trainer = L.Trainer(max_epochs=1)", "trainer.is_global_zero"),
        ("from transformers import Trainer\n", "trainer = Trainer(args)", "trainer.is_world_process_zero()"),
        ("from trl import SFTTrainer\n", "trainer = SFTTrainer(args)", "trainer.is_world_process_zero()"),
        ("from trl import PPOTrainer\n", "trainer = PPOTrainer(args)", "trainer.accelerator.is_main_process"),
    ],
)
def test_functions_that_know_the_rank(head: str, above: str, test: str) -> None:
    before = script(above, "print('start')", head=head)
    check_transformed(UnguardedPrint, before, script(above, f"if {test}:", "    print('start')", head=head))


def test_a_trainer_is_asked_as_the_file_asks_it() -> None:
    above = ("trainer = Trainer(args)", "print('start')")
    below = ("trainer.train()", "if trainer.accelerator.is_main_process:", "    trainer.save_model()")
    wanted = (above[0], "if trainer.accelerator.is_main_process:", "    print('start')")
    head = "from transformers import Trainer\n"
    check_transformed(UnguardedPrint, script(*above, *below, head=head), script(*wanted, *below, head=head))


def test_an_heir_of_a_trainer_without_the_method() -> None:
    before = "from trl import PPOTrainer\n\nclass Own(PPOTrainer):\n    def describe(self):\n        print('model')\n"
    wanted = before.replace("        print", "        if self.accelerator.is_main_process:\n            print")
    check_transformed(UnguardedPrint, before, wanted)


def test_the_test_that_the_function_uses_already() -> None:
    lines = ("if args.rank == 0:", "    save(args)", "print('start')")
    check_transformed(UnguardedPrint, script(*lines), script(*lines[:2], "    print('start')"))
    apart = script(*lines[:2], "step()", "if args.rank == 0:", "    print('start')")
    check_transformed(UnguardedPrint, script(*lines[:2], "step()", lines[2]), apart)


def test_a_script_without_functions() -> None:
    before = "from accelerate import Accelerator\naccelerator = Accelerator()\nprint('start')\n"
    check_transformed(UnguardedPrint, before, before.replace("print", "accelerator.print"))


def test_neighbours_loops_and_texts_in_between_share_one_test() -> None:
    lines = ("print('=' * 10)", "# the sizes", "for k in sorted(self.sizes):", "    print(k)", "text = str(self)", "print(text)")
    guarded = ("if trainer.is_global_zero:", *("    " + x for x in lines))
    check_transformed(UnguardedPrint, hook(*lines), hook(*guarded))


@pytest.mark.parametrize("line", ["self.loud and print('a')", "print('a') if self.loud else None", "[print(x) for x in self.a]"])
def test_a_print_in_an_expression_for_nothing(line: str) -> None:
    check_transformed(UnguardedPrint, hook(line), hook("if trainer.is_global_zero:", f"    {line}"))


def test_a_folder_beside_a_print_stays_outside() -> None:
    lines = ("rank = dist.get_rank()", "print('start')", "os.makedirs(args.out, exist_ok=True)", "print('made')")
    guarded = (lines[0], "if rank == 0:", "    print('start')", lines[2], "if rank == 0:", "    print('made')")
    head = "import os\nimport torch.distributed as dist\n"
    check_transformed(UnguardedPrint, script(*lines, head=head), script(*guarded, head=head))


def test_a_text_that_is_used_later_stays_outside() -> None:
    lines = ("print('a')", "text = str(self)", "print(text)", "self.text = text")
    guarded = (
        "if trainer.is_global_zero:", "    print('a')", "text = str(self)", "if trainer.is_global_zero:", "    print(text)",
        "self.text = text",
    )  # fmt: skip
    check_transformed(UnguardedPrint, hook(*lines), hook(*guarded))


def test_a_helper_is_guarded_inside_and_not_at_its_call() -> None:
    rest = "\n    def _note(self, trainer):\n        print('a')\n"
    after = hook("self._note(trainer)", "self.go(trainer)") + rest.replace(
        "        print", "        if trainer.is_global_zero:\n            print"
    )
    check_transformed(UnguardedPrint, hook("self._note(trainer)", "self.go(trainer)") + rest, after)


def test_a_loop_with_a_progress_bar_stays_outside() -> None:
    lines = ("for x in tqdm(self.rows):", "    print(x)")
    check_transformed(UnguardedPrint, hook(*lines), hook(lines[0], "    if trainer.is_global_zero:", "        print(x)"))


def test_a_print_inside_a_branch_is_guarded_there() -> None:
    lines = ("if trainer.current_epoch > 3:", "    self.late = True", "    print('late')", "else:", "    pass")
    guarded = (*lines[:2], "    if trainer.is_global_zero:", "        print('late')", *lines[3:])
    check_transformed(UnguardedPrint, hook(*lines), hook(*guarded))


@pytest.mark.parametrize(
    ("lines", "test"),
    [
        (("if self.verbose:", "    print('late')"), "if self.verbose and trainer.is_global_zero:"),
        (("if self.a or self.b:", "    print('late')"), "if (self.a or self.b) and trainer.is_global_zero:"),
        (("if (self.a or self.b):", "    print('late')"), "if ((self.a or self.b) and trainer.is_global_zero):"),
        (("if self.a:", "    for name in self.names:", "        print(name)"), "if self.a and trainer.is_global_zero:"),
        (("if self.a if self.b else self.c:", "    print('late')"),
         "if (self.a if self.b else self.c) and trainer.is_global_zero:"),
    ],
)  # fmt: skip
def test_a_test_that_stands_round_the_lines_takes_the_one_for_rank_zero(lines: tuple[str, ...], test: str) -> None:
    check_transformed(UnguardedPrint, hook(*lines), hook(test, *lines[1:]))


def test_the_last_arm_takes_it_too() -> None:
    lines = ("if self.a:", "    self.b = 1", "elif self.c:", "    print('late')")
    check_transformed(UnguardedPrint, hook(*lines), hook(*lines[:2], "elif self.c and trainer.is_global_zero:", lines[3]))


@pytest.mark.parametrize(
    "lines",
    [
        ("if self.a:", "    print('late')", "else:", "    self.b = 1"),  # the other arm is for those whom this test lets go
        ("if self.a:", "    self.b = 1", "    print('late')"),
        ("if self.a and (", "    self.b):", "    print('late')"),
        (f"if self.{'long_' * 20}name:", "    print('late')"),
    ],
)
def test_a_test_on_which_more_hangs_stays_as_it_is(lines: tuple[str, ...]) -> None:
    at = lines.index("    print('late')")
    guarded = (*lines[:at], "    if trainer.is_global_zero:", "        print('late')", *lines[at + 1 :])
    check_transformed(UnguardedPrint, hook(*lines), hook(*guarded))


def test_two_spaces_tabs_and_long_calls_keep_their_layout() -> None:
    before = """\
        import pytorch_lightning as pl

        class A(pl.Callback):
          def on_fit_end(self, trainer, pl_module):
            self.finish(trainer)
            print(
              "done",
              trainer.current_epoch,  # the last
            )  # to the console
        """
    moved = ("print(", '  "done",', "  trainer.current_epoch,  # the last", ")  # to the console")
    plain, deeper = ("\n".join(" " * (12 + n) + x for x in moved) for n in (0, 2))
    after = before.replace(plain, "            if trainer.is_global_zero:\n" + deeper)
    check_transformed(UnguardedPrint, before, after)
    tabs = "import pytorch_lightning as pl\n\nclass A(pl.Callback):\n\tdef on_fit_end(self, t, m):\n\t\tself.a()\n\t\tprint(1)\n"
    check_transformed(UnguardedPrint, tabs, tabs.replace("\t\tprint", "\t\tif t.is_global_zero:\n\t\t\tprint"))


@pytest.mark.parametrize(
    "line",
    [
        "print(f'rank {trainer.global_rank}')",
        "print(os.getpid())",
        "print(pl_module.device)",
        "print(torch.cuda.memory_allocated())",
        "print('WARNING: no data')",
        "print('Error', self.size)",
        "print('done on this worker')",
        "print('memory per GPU')",
        "print(self.describe())",
        "pl_module.print('a')",
    ],
)
def test_prints_that_stay(line: str) -> None:
    check_nothing(UnguardedPrint, hook(line))


def test_a_value_measured_on_the_process_stays() -> None:
    check_nothing(UnguardedPrint, hook("used = psutil.Process().memory_info().rss", "print(f'{used} bytes')"))


def test_prints_in_except_stay() -> None:
    check_nothing(UnguardedPrint, hook("try:", "    self.load()", "except OSError as e:", "    print('lost', e)"))


def test_a_branch_beside_trouble_stays() -> None:
    check_nothing(UnguardedPrint, hook("if self.ok():", "    print('fine')", "else:", "    print('mismatch')"))


def test_an_argument_that_the_ranks_work_out_together_is_told() -> None:
    check_told(UnguardedPrint, hook("print(pl_module.acc.compute())"), reason="keep that above the guard")
    check_told(UnguardedPrint, hook("print(trainer.callback_metrics)", name="on_train_epoch_end"), reason="callback_metrics")


def test_guarded_prints_stay() -> None:
    check_nothing(UnguardedPrint, hook("if trainer.is_global_zero:", "    print('a')"))
    check_nothing(UnguardedPrint, hook("if not trainer.is_global_zero:", "    return", "print('a')"))
    source = hook("if trainer.is_global_zero:", "    self._note(trainer)")
    source += "\n    def _note(self, trainer):\n        print('a')\n"
    check_nothing(UnguardedPrint, source)
    source = hook("print('a')").replace("    def on", "    @rank_zero_only\n    def on")
    check_nothing(UnguardedPrint, source)


def test_constructors_and_hooks_that_only_print_stay() -> None:
    check_nothing(UnguardedPrint, hook("print('a')", name="__init__"))
    check_nothing(UnguardedPrint, hook("print('a')").replace("        self.size = trainer_size()\n", ""))


def test_places_without_a_sure_test_stay() -> None:
    check_nothing(UnguardedPrint, script("print('a')"))
    check_nothing(UnguardedPrint, hook("print('a')", name="_note", arguments="self"))
    initialised = ("if dist.is_initialized():", "    if dist.get_rank() == 0:", "        print('a')", "else:", "    print('b')")
    check_nothing(UnguardedPrint, script(*initialised))
    nested = ("if args.many:", "    rank = dist.get_rank()", "print('a')")
    check_nothing(UnguardedPrint, script(*nested))
    check_nothing(UnguardedPrint, script("rank = dist.get_rank() if args.many else -1", "print('a')"))
    check_nothing(UnguardedPrint, script("rank = 0 if args.many else 0", "print('a')"))


def test_a_rank_of_minus_one_stays() -> None:
    check_nothing(UnguardedPrint, script("ddp = rank != -1", "print('a')", arguments="rank"))
    above = "rank = int(os.environ.get('RANK', -1))"
    after = script(above, "if rank in (-1, 0):", "    print('a')", head="import os\n")
    check_transformed(UnguardedPrint, script(above, "print('a')", head="import os\n"), after)


def test_a_rank_that_is_named_with_others_gives_the_functions_own_test() -> None:
    named, below = "folder, rank = args.folder, args.global_rank", ("if rank in [-1, 0]:", "    keep(folder)")
    before = script(named, "print('a')", "model.train()", *below)
    after = script(named, "if rank in [-1, 0]:", "    print('a')", "model.train()", *below)
    check_transformed(UnguardedPrint, before, after)


LAUNCHED = "import os\n\nworld_size = int(os.environ.get('WORLD_SIZE', 1))\nmodel.train()\n"


COMMAND = {"run.sh": "torchrun --nproc_per_node=8 module.py\n"}


def test_the_environment_is_the_last_resort() -> None:
    after = script('if int(os.environ.get("RANK", 0)) == 0:', "    print(args)", head=LAUNCHED)
    check_transformed(UnguardedPrint, script("print(args)", head=LAUNCHED), after, unsafe=True, files=COMMAND)
    (finding,) = findings_of(UnguardedPrint, script("print(args)", head=LAUNCHED), files=COMMAND)
    assert finding.reason == "assumes that a launcher sets RANK for each process, as torchrun does"


@pytest.mark.parametrize("text", ["", "torchrun --nproc_per_node=8 other.py\n", "python module.py\n"])
def test_no_environment_where_no_command_launches_the_program(text: str) -> None:
    check_nothing(UnguardedPrint, script("print(args)", head=LAUNCHED), files={"run.sh": text})


def test_a_method_that_no_hook_reaches_may_serve_one_process() -> None:
    place = {"base": "pl.LightningModule", "arguments": "self", "name": "_note"}
    above = "    def draw(self):\n        self._note()\n"
    before = hook("print('start')", **place)
    after = hook("if rank_zero_only.rank == 0:", "    print('start')", **place)  # no Trainer may be there: `self` has the rank 0
    lightning = "import lightning.pytorch as pl\n"
    after = after.replace(lightning, f"{lightning}from lightning.pytorch.utilities import rank_zero_only\n")
    check_transformed(UnguardedPrint, before + above, after + above, unsafe=True)
    (finding,) = findings_of(UnguardedPrint, before + above)
    assert finding.reason == "assumes that training calls _note: no hook of the class is seen to reach it"
    (finding,) = findings_of(UnguardedPrint, before + "    def on_fit_start(self):\n        self._note()\n")
    assert finding.applicability is Applicability.SAFE


def test_without_a_trainer_the_rank_of_a_module_is_zero_everywhere() -> None:
    place = {"base": "pl.LightningModule", "arguments": "self", "name": "_note"}
    before = hook("print('start')", **place)
    check_nothing(UnguardedPrint, before)  # nobody calls it
    check_nothing(UnguardedPrint, before + "    def __init__(self):\n        self._note()\n")
    deeper = "    def __init__(self):\n        self._read()\n    def _read(self):\n        self._note()\n"
    check_nothing(UnguardedPrint, before + deeper)
    reached = before + "    def on_fit_start(self):\n        self._note()\n"
    run = "import lightning as L\n\nfabric = L.Fabric(devices=2)\nfabric.launch()\n"
    check_nothing(UnguardedPrint, reached, files={"run.py": run})
    both = run + "L.Trainer().fit(model)\n"
    assert len(findings_of(UnguardedPrint, reached, files={"run.py": both})) == 1


def test_above_its_trainer_a_module_has_the_rank_zero() -> None:
    module = hook("print('start')", base="pl.LightningModule", arguments="self", name="_note")
    run = "import lightning as L\nfrom module import {name}\n\nmodel = {name}()\n{above}L.Trainer(devices=2)\n{below}"
    name = next(w.removeprefix("class ").partition("(")[0] for w in module.splitlines() if w.startswith("class "))
    above = run.format(name=name, above="model._note()\ntrainer = ", below="trainer.fit(model)\n")
    check_nothing(UnguardedPrint, module, files={"run.py": above})
    below = run.format(name=name, above="trainer = ", below="trainer.fit(model)\nmodel._note()\n")
    assert len(findings_of(UnguardedPrint, module, files={"run.py": below})) == 1


PRINTING = """\
    import functools
    import torch.distributed as dist
    from accelerate import Accelerator

    accelerator = Accelerator()
    {bound}
    step()
    print("here")
    """


@pytest.mark.parametrize(
    "bound",
    [
        "print = accelerator.print",
        "print = log.info if accelerator.is_main_process else (lambda *a: None)",
        "from tools import print",
        "def print(*words): say(*words)",
        "if not accelerator.is_main_process: print = lambda *a: None",
        "for print in printers: break",
    ],
)
def test_a_print_that_the_file_binds_itself(bound: str) -> None:
    check_nothing(UnguardedPrint, PRINTING.format(bound=bound))


@pytest.mark.parametrize("bound", ["print = functools.partial(print, flush=True)", "from rich import print"])
def test_a_print_of_another_kind_is_still_one(bound: str) -> None:
    before = PRINTING.format(bound=bound)
    after = before.replace('    print("here")', '    if accelerator.is_main_process:\n        print("here")')
    check_transformed(UnguardedPrint, before, after)


def test_a_print_that_one_function_binds_is_its_own() -> None:
    other = "def note(accelerator):\n        print = accelerator.print\n        step()\n        print('a')"
    before = PRINTING.format(bound=other)
    check_transformed(UnguardedPrint, before, before.replace('print("here")', 'accelerator.print("here")'))


def test_settings_that_are_changed_between_the_prints_stay_on_every_rank() -> None:
    head = "from omegaconf import OmegaConf, open_dict\n"
    lines = ("with open_dict(self.cfg):", "    for key in self.cfg:", "        print(key)",
             "        OmegaConf.update(self.cfg, key, 1)")  # fmt: skip
    place = {"base": "pl.LightningModule", "arguments": "self", "name": "on_fit_start"}
    after = hook(*lines[:2], "        if self.global_rank == 0:", "            print(key)", lines[3], **place)
    check_transformed(UnguardedPrint, head + hook(*lines, **place), head + after)


@pytest.mark.parametrize("given", ["devices=1", "devices=[0]", "devices=1, num_nodes=1, strategy='ddp'", "gpus=1"])
def test_a_trainer_of_one_device_is_one_process(given: str) -> None:
    head = "import lightning.pytorch as pl\nimport torch.distributed as dist\n"
    above = f"trainer = pl.Trainer({given})"
    check_nothing(UnguardedPrint, script(above, "print('converting')", head=head))


@pytest.mark.parametrize("given", ["devices=2", "devices=1, num_nodes=2", "devices=args.devices", "devices=1, **more", ""])
def test_a_trainer_that_may_have_more_is_not(given: str) -> None:
    head = "import lightning.pytorch as pl\nimport torch.distributed as dist\n"
    above = f"trainer = pl.Trainer({given})"
    after = script(above, "if trainer.is_global_zero:", "    print('converting')", head=head)
    check_transformed(UnguardedPrint, script(above, "print('converting')", head=head), after)


def test_what_a_trainer_predicts_is_each_rank_s_own() -> None:
    above = ("trainer = pl.Trainer(devices=2)", "answers = trainer.predict(model)")
    check_nothing(UnguardedPrint, script(*above, "print(answers)", head="import lightning.pytorch as pl\n"))


def test_a_dialogue_has_one_process() -> None:
    lines = ("trainer = pl.Trainer(devices=2)", "print('type STOP to end')", "text = input()")
    check_nothing(UnguardedPrint, script(*lines, head="import lightning.pytorch as pl\n"))


def test_a_line_under_a_test_of_each_rank_s_batch() -> None:
    place = {"base": "pl.LightningModule", "arguments": "self, batch, i", "name": "training_step"}
    lines = ("end = batch.argmax().item()", "if end == 3:", "    print('end reached')")
    after = hook(lines[0], "if end == 3 and self.global_rank == 0:", lines[2], **place)
    check_transformed(UnguardedPrint, hook(*lines, **place), after, unsafe=True)
    (finding,) = findings_of(UnguardedPrint, hook(*lines, **place))
    assert finding.reason == "assumes that rank 0 speaks for all: `end == 3` goes by each rank's own batch"


@pytest.mark.parametrize("test", ["score is None", "score is not None", "not score", "len(score) == 0", "score"])
def test_a_line_on_what_a_rank_s_own_batch_lacks(test: str) -> None:
    lines = (
        "model = DistributedDataParallel(model)",
        "loader = DataLoader(data, sampler=DistributedSampler(data))",
        "for batch in loader:",
        "    if rank == 0:",
        "        note()",
        "    score = rate(batch)",
        f"    if {test}:",
        "        print('no score')",
        "    model(batch).backward()",
    )
    head = (
        "import torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
    )
    check_nothing(UnguardedPrint, script(*lines, head=head, arguments="model, data, rank"))


def test_a_heading_of_a_loop_that_prints_numbers_of_each_rank() -> None:
    def module(over: str) -> str:
        return (
            "import lightning.pytorch as pl\n\n\nclass Model(pl.LightningModule):\n    def test_step(self, batch, batch_idx):\n"
            "        self.seen.append(self(batch))\n\n    def on_test_epoch_end(self):\n        values = score(self.seen)\n"
            f"        print(f'epoch {{self.current_epoch}}')\n        for value in {over}:\n            print(f'{{value:.4f}}')\n"
            "        self.log('a', 1.0)\n"
        )

    check_nothing(UnguardedPrint, module("values"))
    (found,) = findings_of(UnguardedPrint, module("[1.0, 2.0]"))
    assert found.applicability is Applicability.SAFE


def test_a_line_beside_one_that_every_rank_is_to_print_belongs_to_it() -> None:
    head = "import torch.distributed as dist\n"
    above = ("rank = dist.get_rank()",)
    check_nothing(UnguardedPrint, script(*above, "print('Error', args)", "print('Accuracy', args)", head=head))


PLAIN = "import torch\nimport torch.distributed as dist\n"
MESSAGE = (
    "print('=' * 40)",
    "print('settings')",
    "print(f'epochs {args.epochs}')",
    "print(f'rate {args.rate}')",
)


@pytest.mark.parametrize(
    "line",
    [
        "print(f'device {device}')",
        "print(f'rank {rank} of {args.world}')",
        "print('warning: no cache')",
        "print(torch.cuda.memory_allocated())",
        "print(args.look_at(args.model))",  # who knows what it does: it stays on every rank
        "print(dist.all_reduce(args.total))",
        "for name in args.names:\n        print(name, rank)",
        "for name in args.names:\n        print('name')\n        print(args.look_at(name))",
        "print(total := 3)",
    ],
)
@pytest.mark.parametrize("below", [True, False])
def test_the_lines_of_a_message_of_which_one_stays(line: str, below: bool) -> None:
    lines = (*MESSAGE, line) if below else (line, *MESSAGE)
    source = script("rank = dist.get_rank()", "args.step()", *lines, "args.step()", head=PLAIN, arguments="args, device")
    check_nothing(UnguardedPrint, source)


def test_the_heading_of_a_loop_that_prints_for_each_rank() -> None:
    loop = ("for name in args.names:", "    print('-' * 40)", "    print(name)", "    print(args.unit)")
    for heading, found in (("print(f'from rank {rank}')", 0), ("print('names')", 1)):
        source = script("rank = dist.get_rank()", "args.step()", heading, *MESSAGE, *loop, "args.step()", head=PLAIN)
        assert len(findings_of(UnguardedPrint, source)) == found


@pytest.mark.parametrize(
    "line",
    [
        "if rank == 0:\n        print('device', device)",  # kept to rank 0 already
        "args.step()\n    args.step()\n    args.step()\n    print('device', device)",  # something else is done in between
        "for step in range(3):\n        args.step(step)\n        print('device', device)",  # no loop of prints
        "print(f'{args.epochs:3}', flush=True)",
        "print()",
    ],
)
def test_a_message_of_which_no_line_stays(line: str) -> None:
    source = script("rank = dist.get_rank()", "args.step()", *MESSAGE, line, "args.step()", head=PLAIN, arguments="args, device")
    (found,) = findings_of(UnguardedPrint, source)
    assert found.message.startswith("every rank prints in main")


@pytest.mark.parametrize(
    "head",
    [
        LAUNCHED + "os.environ['RANK'] = '0'\n",  # it starts the processes
        LAUNCHED + "os.environ.setdefault('RANK', os.environ['SLURM_PROCID'])\n",
        LAUNCHED.replace("import os\n", "from os import environ, getenv as get\n").replace("os.environ.get", "get"),
        "import os\nprint(os.environ['HOME'])\n",
    ],
)
def test_an_environment_that_does_not_tell(head: str) -> None:
    check_nothing(UnguardedPrint, script("print(args)", head=head))


WORKER = """\
    import os
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def start(opts):
        nodes = int(os.environ['WORLD_SIZE'])
        mp.spawn(work, nprocs=4, args=(opts,))

    def work(index, opts):
        if opts.shared:
            {rank}
            dist.init_process_group('nccl', rank=opts.rank, world_size=opts.size)
        model.train()
        {line}
    """
WORKED_OUT = "opts.rank = opts.rank * 4 + index"


def worker(line: str, rank: str = WORKED_OUT) -> str:
    return textwrap.dedent(WORKER.format(line=line, rank=rank))


def test_workers_of_spawn_have_the_rank_that_they_work_out() -> None:
    before, after = worker("print(len(opts.names))"), worker("if opts.rank in (-1, 0):\n            print(len(opts.names))")
    check_transformed(UnguardedPrint, before, after, unsafe=True)
    (finding,) = findings_of(UnguardedPrint, before)
    assert finding.reason == "assumes that opts.rank is -1 or 0 without a process group"


@pytest.mark.parametrize("rank", ["number = index", "opts.place = opts.rank * 4 + index", "opts.rank = opts.rank + index"])
def test_spawn_sets_no_rank_in_the_environment(rank: str) -> None:
    check_nothing(UnguardedPrint, worker("print(len(opts.names))", rank))


def test_workers_that_another_file_spawns() -> None:
    head = LAUNCHED + "import torch.distributed as dist\n"
    starts = "import torch.multiprocessing as mp\nfrom train import main\n\nif __name__ == '__main__':\n    {}\n"
    files = {"start.py": starts.format("mp.spawn(main, nprocs=2)")}
    check_nothing(UnguardedPrint, script("print(args)", head=head), files=files, path="train.py")
    alone = {"start.py": starts.format("main(0)"), "run.sh": "torchrun --nproc_per_node=8 start.py\n"}
    assert findings_of(UnguardedPrint, script("print(args)", head=head), alone, path="train.py")


def test_an_accelerator_that_a_helper_makes() -> None:
    head = "from torch.nn.parallel import DistributedDataParallel as DDP; Wrap = DDP\nimport tools\n"
    helper = "from accelerate import Accelerator\n\ndef prepare(args):\n    a = Accelerator()\n    return a, a.unwrap_model\n"
    lines = ("accelerator, unwrap = tools.prepare(args)", "print(args)")
    after = script(lines[0], "accelerator.print(args)", head=head)
    check_transformed(UnguardedPrint, script(*lines, head=head), after, files={"tools.py": helper})
    check_nothing(UnguardedPrint, script(*lines, head=head), files={"tools.py": helper.replace("Accelerator", "Other")})


def test_parsed_training_arguments() -> None:
    head = "from transformers import HfArgumentParser, TrainingArguments\n"
    lines = ("model_args, training_args = parser.parse_args_into_dataclasses()", "print(model_args)")
    after = script(lines[0], "if training_args.process_index == 0:", "    print(model_args)", head=head)
    check_transformed(UnguardedPrint, script(*lines, head=head), after)


def test_a_script_reuses_its_own_test() -> None:
    head = "import torch.distributed as dist; WORLD = dist.group.WORLD\n"
    lines = "args = parse()\nif args.rank == 0:\n    save()\n"
    check_transformed(UnguardedPrint, f"{head}{lines}print(args)\n", f"{head}{lines}    print(args)\n")
    check_nothing(UnguardedPrint, f"{head}args = parse()\nif args.many:\n    if args.rank == 0:\n        save()\nprint(args)\n")
    below = f"{head}args = parse()\nprint(args)\nif args.rank == 0:\n    save()\n"
    check_nothing(UnguardedPrint, below)


def test_the_local_rank_will_do_for_lines() -> None:
    lines = ("if args.local_rank == 0:", "    note()", "train()", "print(args)")
    after = script(*lines[:3], "if args.local_rank == 0:", "    print(args)")
    check_transformed(UnguardedPrint, script(*lines), after)


@pytest.mark.parametrize(
    "head",
    [
        "parser.add_argument('--local_rank', type=int, default=-1)\n",
        "parser.add_argument(\n    '--local_rank', default=-1)\n",
        "local_rank = -1\n",
        "many = args.local_rank != -1\n",
        "local = int(os.environ.get('LOCAL_RANK', -1))\n",
        "from transformers import Trainer\n",
    ],
)
def test_a_test_that_one_process_does_not_pass_is_not_used_again(head: str) -> None:
    lines = ("if args.local_rank == 0:", "    note()", "train()", "print(args)")
    check_nothing(UnguardedPrint, script(*lines, head="import torch.distributed as dist\n" + head))


LOGGED = """    import logging
    import torch.distributed as dist

    logging.basicConfig(level=logging.INFO)
    logger = logging.getLogger(__name__)


    def train(self):
        if self.local_rank == 0:
            logger.info("begins")
        dist.barrier()
        logger.info("all are here")
    """


def test_a_line_beside_lines_that_are_kept_to_rank_zero() -> None:
    after = LOGGED.replace('    logger.info("all', '    if self.local_rank == 0:\n            logger.info("all')
    check_transformed(UnguardedPrint, LOGGED, after, unsafe=True)
    check_nothing(UnguardedPrint, LOGGED.replace("logging.basicConfig(level=logging.INFO)", "logging.basicConfig(level=level)\n"
                                                 "    logging.getLogger().setLevel(level)"))
    check_nothing(UnguardedPrint, LOGGED.replace("if self.local_rank == 0:", "if self.verbose:"))
    on_one = "if dist.get_rank() == 0:\n        logging.basicConfig(level=logging.INFO)"  # the others drop what is below WARNING
    check_nothing(UnguardedPrint, LOGGED.replace("logging.basicConfig(level=logging.INFO)", on_one))


@pytest.mark.parametrize(
    "set_up", ["basicConfig(level=logging.INFO)", "getLogger().addHandler(HANDLER)\n        logging.basicConfig()"]
)
def test_a_logger_that_a_function_sets_up(set_up: str) -> None:
    functions = f"def create(folder):\n        logging.{set_up}\n\n\n    def start(rank, folder):\n        CALL\n"
    before = LOGGED.replace("logging.basicConfig(level=logging.INFO)\n", functions)
    assert findings_of(UnguardedPrint, before.replace("CALL", "create(folder)"))
    # the others have no handler
    on_zero = "if rank == 0:\n            create(folder)"
    check_nothing(UnguardedPrint, before.replace("CALL", on_zero))
    quiet = "\n        else:\n            logging.getLogger().addHandler(logging.NullHandler())"
    check_nothing(UnguardedPrint, before.replace("CALL", on_zero + quiet))


@pytest.mark.parametrize(
    "level", ["logging.INFO if args.local_rank in (-1, 0) else logging.WARNING", "args.level if is_main_process() else 40"]
)
def test_a_level_that_is_set_by_the_rank(level: str) -> None:
    check_nothing(UnguardedPrint, LOGGED.replace("level=logging.INFO", f"level={level}"))
    start = {"start.py": f"import logging\n\ndef start(args):\n    logging.basicConfig(level={level})\n"}
    check_nothing(UnguardedPrint, LOGGED, files=start)
    under = "import logging\n\ndef start(rank):\n    if TEST:\n        logging.getLogger().setLevel(40)\n"
    check_nothing(UnguardedPrint, LOGGED, files={"start.py": under.replace("TEST", "int(os.environ['RANK']) != 0")})
    assert findings_of(UnguardedPrint, LOGGED, files={"start.py": under.replace("TEST", "args.quiet")})


def test_a_heading_stays_above_its_own_test() -> None:
    lines = ("print('a')", "", "# the optimizer", "print('b')", "# print('c')", "print('d')")
    before = hook(*lines).replace("        \n", "\n")
    guard = "if trainer.is_global_zero:"
    after = hook(guard, "    print('a')", "", "# the optimizer", guard, "    print('b')", "    # print('c')", "    print('d')")
    check_transformed(UnguardedPrint, before, after.replace("        \n", "\n"))


def test_a_helper_of_a_callback_asks_the_module() -> None:
    place = {"name": "_note", "arguments": "self, pl_module"}
    after = hook("if pl_module.global_rank == 0:", "    print('start')", **place)
    check_transformed(UnguardedPrint, hook("print('start')", **place), after)


def test_a_function_whose_calls_get_a_test_needs_none() -> None:
    before = """\
        import lightning.pytorch as pl

        class A(pl.Callback):
            def on_train_start(self, trainer, pl_module):
                pl_module.size = 1
                self._note(trainer)

            def _note(self, trainer):
                print("sizes", trainer.max_epochs)
                show(trainer.max_epochs)

        def show(n):
            print(n)
        """
    call = "        self._note(trainer)"
    after = before.replace(call, f"        if trainer.is_global_zero:\n            {call}")
    check_transformed(UnguardedPrint, before, after)


def test_prepare_data_tests_and_split_prompts_stay() -> None:
    place = {"base": "pl.LightningDataModule", "arguments": "self", "name": "prepare_data"}
    check_nothing(UnguardedPrint, hook("print('a')", **place))
    check_nothing(UnguardedPrint, hook("print('a')"), path="tests/test_a.py")
    lines = ("accelerator = Accelerator()", "with accelerator.split_between_processes(args) as p:", "    print(p)")
    check_nothing(UnguardedPrint, script(*lines, head="from accelerate import Accelerator\n"))


def test_a_class_of_nobody_stays() -> None:
    source = "Trainer = None\nclass A(Base):\n    def on_fit_end(self, trainer):\n        self.a()\n        print('a')\n"
    check_nothing(UnguardedPrint, textwrap.dedent(source))


@pytest.mark.parametrize(
    "above",
    [
        ("rank = os.environ['RANK']", "if rank == 0:", "    os.remove('x')"),
        ("rank = os.environ.get('RANK', 0)",),
        ("rank = os.getenv('RANK')", "main_rank = rank", "if main_rank == 0:", "    os.remove('x')"),
        ("if os.environ['RANK'] == 0:", "    os.remove('x')"),
    ],
)
def test_a_rank_that_is_still_text_is_never_zero(above: tuple[str, ...]) -> None:
    head = "import os\nimport torch.distributed as dist\nmodel.train()\n"
    after = script(*above, 'if int(os.environ.get("RANK", 0)) == 0:', "    print(args)", head=head)
    check_transformed(UnguardedPrint, script(*above, "print(args)", head=head), after, unsafe=True, files=COMMAND)


def test_a_rank_that_is_compared_as_text() -> None:
    above = ("rank = os.environ['RANK']", "if rank == '0':", "    os.remove('x')")
    head = "import os\nimport torch.distributed as dist\n"
    after = script(*above, "    print(args)", head=head)
    check_transformed(UnguardedPrint, script(*above, "print(args)", head=head), after)


TREE = """\
    import lightning.pytorch as pl
    from rich import print


    def print_config(config: dict, trainer: pl.Trainer = None) -> None:
        for name in config:
            print(name, config[name])
    """
CALLER = {"run.py": "from module import print_config\n\nprint_config({})\n"}


def test_a_function_that_only_prints_is_decorated() -> None:
    after = TREE.replace("    def", "    @rank_zero_only\n    def").replace(
        "as pl\n", "as pl\n    from lightning.pytorch.utilities import rank_zero_only\n"
    )
    check_transformed(UnguardedPrint, TREE, after, files=CALLER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("config[name])", "config[name])\n        return config"),
        ("config[name])", "config[name])\n            trainer.count += 1"),
        ("config[name])", "os.environ['LOCAL_RANK'])"),
        ("    def", "    @once\n    def"),
        ("import lightning.pytorch as pl\n", "import torch.distributed as pl\n"),
    ],
)
def test_a_function_that_does_more_than_print_stays(old: str, new: str) -> None:
    check_nothing(UnguardedPrint, TREE.replace(old, new, 1), files=CALLER)


def test_a_printing_function_that_nobody_calls_or_whose_value_is_used_stays() -> None:
    check_nothing(UnguardedPrint, TREE)
    check_nothing(UnguardedPrint, TREE, files={"run.py": "from module import print_config\n\nshown = print_config({})\n"})
    guarded = "from module import print_config\n\ndef main(trainer):\n    if trainer.is_global_zero:\n        print_config({})\n"
    check_nothing(UnguardedPrint, TREE, files={"run.py": guarded})


def test_a_logger_logs_and_a_print_prints() -> None:
    own = "import lightning.pytorch as pl\nimport logging\n\nclass A(pl.Callback):\n    def __init__(self):\n"
    own += "        self.logger = logging.getLogger('a')\n\n    def on_fit_start(self, trainer, pl_module):\n"
    own += "        self.size = trainer_size()\n        self.logger.info('start')\n"
    (found,) = findings_of(UnguardedPrint, own)
    assert found.message.startswith("every rank logs in A.on_fit_start")
    (found,) = findings_of(UnguardedPrint, hook("print('start')"))
    assert found.message.startswith("every rank prints in A.on_train_start")


def test_what_a_container_is_filled_with_stays_outside() -> None:
    head = "import os\nimport torch.distributed as dist\n"
    above = ("rank = dist.get_rank()", "options = {}", "if args.one:", "    options['map'] = 'auto'")
    lines = (*above, "    print('one')", "load(**options)")
    after = (*above, "    if rank == 0:", "        print('one')", "load(**options)")
    check_transformed(UnguardedPrint, script(*lines, head=head), script(*after, head=head))


@pytest.mark.parametrize("arguments", ["accelerator=None", "*, accelerator=None", "accelerator: Optional[Accelerator]"])
def test_an_argument_that_may_be_none_is_no_test(arguments: str) -> None:
    head = "from typing import Optional\nfrom accelerate import Accelerator\n"
    check_nothing(UnguardedPrint, script("print('a')", head=head, arguments=arguments))


def test_a_flag_that_both_branches_have_bound() -> None:
    above = "import os\nmany = 'RANK' in os.environ\nif many:\n    main = int(os.environ['RANK']) == 0\nelse:\n    main = True\n"
    below = "if main:\n    os.remove('x')\ntrain()\n"
    check_transformed(UnguardedPrint, f"{above}print('a')\n{below}", above + below.replace("    os", "    print('a')\n    os"))
    one = above.replace("else:\n    main = True\n", "")
    check_nothing(UnguardedPrint, f"{one}print('a')\n{below}")


def test_a_tool_that_cuts_its_input_by_rank_prints_of_its_own_share() -> None:
    head = "import os\n\nrank = int(os.environ['LOCAL_RANK'])\n"
    check_nothing(UnguardedPrint, f"{head}\ndef main(rows):\n    saved = save(rows[rank::8])\n    print(saved)\n")


def test_a_batch_size_per_device_is_a_setting() -> None:
    above = "rank = dist.get_rank()"
    line = "print(f'batch size per device: {args.batch_size}')"
    check_transformed(UnguardedPrint, script(above, line), script(above, "if rank == 0:", f"    {line}"))
    check_nothing(UnguardedPrint, script(above, "print(f'memory on this device: {args.memory}')"))


def test_what_the_ranks_do_one_after_the_other_is_not_said_by_all_at_once() -> None:
    section = """
        import torch.distributed as dist

        def load(path):
            rank = dist.get_rank()
            if rank > 0:
                dist.barrier()
            if path.exists():
                print("reading the cache")
            else:
                print("building the cache")
            if rank == 0:
                dist.barrier()
            {0}
        """
    check_nothing(UnguardedPrint, section.format("return path"))
    check_transformed(
        UnguardedPrint, section.format('print("ready")'), section.format('if rank == 0:\n                print("ready")')
    )


def test_a_print_of_an_object_that_only_rank_zero_has() -> None:
    source = """
        import torch.distributed as dist; WORLD = dist.group.WORLD

        class Board:
            def show(self, rank):
                print("shown")

        def main(rank):
            board = Board(){0}
            train(board)
        """
    assert findings_of(UnguardedPrint, source.format(""))
    check_nothing(UnguardedPrint, source.format(" if dist.get_rank() == 0 else None"))


@pytest.mark.parametrize(
    ("between", "moved"),
    [
        ("        # of b\n", "            # of b\n"),
        ("    # of b\n", "        # of b\n"),
        ("          # of b\n", "              # of b\n"),
        ("# print('old')\n", "# print('old')\n"),
    ],
)
def test_a_comment_between_two_lines_goes_with_them(between: str, moved: str) -> None:
    head = "import lightning.pytorch as pl\n\n\nclass M(pl.Callback):\n    def on_fit_end(self, trainer, model):\n"
    head += "        self.go()\n"
    before = f"{head}        print('a')\n{between}        print('b')\n        self.stop()\n"
    guarded = f"        if trainer.is_global_zero:\n            print('a')\n{moved}            print('b')\n"
    check_transformed(UnguardedPrint, before, f"{head}{guarded}        self.stop()\n")


@pytest.mark.parametrize(
    "lines",
    [
        ("for path in args.files[rank::world]:", "    print(path)"),
        ("if not math.isfinite(args.loss):", "    print('that is all')"),
        ("if torch.isnan(args.loss).any():", "    print('that is all')"),
        ("print(f'loss is {args.loss}, stopping training')",),
        ("print('non-finite loss')",),
    ],
)
def test_what_one_rank_alone_can_say(lines: tuple[str, ...]) -> None:
    head = "import math\nimport torch\nimport torch.distributed as dist\n\ndef main(args):\n"
    ranks = "    rank, world = dist.get_rank(), dist.get_world_size()\n    if rank == 0:\n        print('start')\n"
    body = "".join(f"    {line}\n" for line in lines)
    check_nothing(UnguardedPrint, head + ranks + body)
    assert findings_of(UnguardedPrint, f"{head}{ranks}    for path in args.files:\n        print(path)\n")


HELPER = {"who.py": "import torch.distributed as dist\n\ndef speaks():\n    return dist.get_rank() == 0\n"}


def test_a_test_of_the_rank_that_another_file_makes() -> None:
    source = """
        import torch.distributed as dist
        from who import speaks

        def main(rank):
            if speaks():
                print("started")
            if rank == 0:
                dist.log("a")
        """
    check_nothing(UnguardedPrint, source, files=HELPER)
    other = HELPER["who.py"].replace("dist.get_rank() == 0", "dist.is_available()")
    assert findings_of(UnguardedPrint, source, {"who.py": other})


def test_a_branch_of_one_process_stays() -> None:
    for test in ("args.dist == 'OFF'", "args.launcher == 'none'", "not args.distributed", "args.world_size == 1"):
        lines = ("rank = dist.get_rank()", f"if {test}:", "    args.wrap()", "    print('one process')", "    args.wrap()")
        check_nothing(UnguardedPrint, script(*lines))
    (found,) = findings_of(UnguardedPrint, script("rank = dist.get_rank()", "if args.dist == 'ON':", "    print('a')"))
    assert found.applicability is Applicability.SAFE


def test_what_is_left_of_a_test_of_several_processes_stays() -> None:
    above = ("rank = dist.get_rank()", "if args.sync and args.gpus > 1 and args.distributed:", "    args.convert()")
    check_nothing(UnguardedPrint, script(*above, "elif args.sync:", "    args.wrap()", "    print('not with one process')"))
    (found,) = findings_of(UnguardedPrint, script(*above, "elif args.other:", "    args.wrap()", "    print('a')"))
    assert found.applicability is Applicability.SAFE


def test_what_is_worked_out_of_the_rank_s_own_batches_stays() -> None:
    lines = ("for n, batch in enumerate(batches):", "    score = self.judge.of(self.net(batch))", "    self.a()", "    print({})")
    place = {"base": "pl.LightningModule", "arguments": "self, batches", "name": "draw"}
    above = "    def on_validation_epoch_end(self):\n        self.draw(self.batches)\n"
    own, counted, joined = (hook(*lines, **place).replace("{}", shown) + above for shown in ("score", "n", "all_gather(score)"))
    check_nothing(UnguardedPrint, own)
    assert [f.applicability for f in findings_of(UnguardedPrint, counted)] == [Applicability.SAFE]
    check_nothing(UnguardedPrint, joined)  # a collective, which must stay on every rank


def test_a_module_in_a_list_has_no_trainer() -> None:
    part = hook("print('a')", base="pl.LightningModule", arguments="self, batch, i", name="training_step")
    held = "import lightning.pytorch as pl\nimport torch\nfrom module import A\n\nclass Whole(pl.LightningModule):\n"
    held += "    def __init__(self):\n        super().__init__()\n        {}\n"
    for line in ("self.parts = torch.nn.ModuleList([A()])", "self.parts.append(A())"):
        check_nothing(UnguardedPrint, part, files={"whole.py": held.replace("{}", line)})
    network = held.replace("{}", "self.part = A()").replace("pl.LightningModule", "torch.nn.Module")
    check_nothing(UnguardedPrint, part, files={"whole.py": network})
    for line in ("self.part = A()", "self.parts = make(A)"):
        assert findings_of(UnguardedPrint, part, files={"whole.py": held.replace("{}", line)}), line


def test_above_the_trainer_the_group_has_no_rank_yet() -> None:
    source = """\
        import lightning.pytorch as pl
        import os
        import torch.distributed as dist

        def get_rank():
            return dist.get_rank() if dist.is_initialized() else 0

        def main(net):
            rank = get_rank()
            is_main = rank == 0
            if is_main:
                net.log_start()
            print("building")
            net.build()
            pl.Trainer(devices=4).fit(net)
        """
    check_nothing(UnguardedPrint, source)
    by_variable = source.replace("dist.get_rank() if dist.is_initialized() else 0", 'int(os.environ["RANK"])')
    assert findings_of(UnguardedPrint, by_variable)


def test_what_no_program_of_the_project_comes_to_stays() -> None:
    place = {"base": "pl.LightningModule", "arguments": "self, batch, i", "name": "training_step"}
    run = "import torch.distributed as dist\nfrom module import B\n\nif __name__ == '__main__':\n"
    run += "    dist.init_process_group('nccl')\n"
    check_nothing(UnguardedPrint, hook("print('a')", **place), files={"run.py": run})
    made = run + "    A()\n"
    assert findings_of(UnguardedPrint, hook("print('a')", **place), files={"run.py": made.replace("import B", "import A")})


def test_a_start_and_its_end() -> None:
    """The line of each rank above stays: one end for several starts would be odd."""
    source = """\
        import torch.distributed as dist

        def setup(rank, size):
            print(f"rank {rank} begins")
            dist.init_process_group("gloo", rank=rank, world_size=size)
            print("the group is there")
            dist.barrier()
            dist.barrier()
            print("all are there")
        """
    (found,) = findings_of(UnguardedPrint, textwrap.dedent(source))
    assert found.span.line == 9


# Tests that never come out true


_SWITCHED = (
    "import torch.distributed as dist\n\nDEBUG = False\n\n\n"
    "def main(args):\n    dist.init_process_group('gloo')\n    show(args)\n\n\n"
    "def show(args, note=None, loud=False):\n    rank = dist.get_rank()\n    if {}:\n        print('begin')\n    dist.barrier()\n"
)


@pytest.mark.parametrize("test", ["DEBUG", "DEBUG and args.x", "note is not None", "loud", "loud and args.x"])
def test_a_line_that_nothing_turns_on(test: str) -> None:
    check_nothing(UnguardedPrint, _SWITCHED.format(test))
    switched = _SWITCHED.replace("DEBUG = False", "DEBUG = True").replace("show(args)\n", "show(args, 'a', loud=True)\n", 1)
    assert findings_of(UnguardedPrint, switched.format(test))


@pytest.mark.parametrize("test", ["not DEBUG", "DEBUG or args.x", "note is None", "not loud"])
def test_a_line_that_may_be_shown(test: str) -> None:
    assert findings_of(UnguardedPrint, _SWITCHED.format(test))


def test_a_switch_that_a_function_sets() -> None:
    set_in = _SWITCHED.replace("    dist.init", "    global DEBUG\n    DEBUG = args.debug\n    dist.init")
    assert findings_of(UnguardedPrint, set_in.format("DEBUG").replace("DEBUG", "LOUD").replace("debug", "loud"))
    check_nothing(UnguardedPrint, set_in.format("DEBUG"))  # a switch for debugging


# Views of what others hold


_LOADS = (
    "import torch.distributed as dist\n\n\ndef load(model, state):\n    {}\n    print('loaded')\n\n\n"
    "def main(args):\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n{}    print('begin')\n"
)
_CALL = "    load(args.model, args.state)\n"


@pytest.mark.parametrize(
    "change",
    ["own = model.state_dict()\n    for k, v in state.items():\n        own[k].copy_(v)", "model.weight.view(-1).copy_(state)",
     "for k, v in model.named_parameters():\n        v.data.fill_(0)", "w = model.weight.detach()\n    w.zero_()",
     "flat = model.weight.reshape(-1)\n    flat[0] = 1"],
)  # fmt: skip
def test_what_changes_the_model_through_a_view_stays_with_every_rank(change: str) -> None:
    after = _LOADS.format(change, f"{_CALL}    if rank == 0:\n    ")
    check_transformed(UnguardedPrint, _LOADS.format(change, _CALL), after)


def test_a_copy_is_nobody_elses() -> None:
    copied = "own = model.weight.clone()\n    own.zero_()\n    print(own.sum())"
    after = _LOADS.format(copied, f"    if rank == 0:\n    {_CALL}    ")
    check_transformed(UnguardedPrint, _LOADS.format(copied, _CALL), after)


@pytest.mark.parametrize("name", ["on_exception", "on_keyboard_interrupt", "prepare_data"])
def test_a_hook_that_one_process_runs(name: str) -> None:
    check_nothing(UnguardedPrint, hook("print('failed')", name=name))


def test_a_line_that_binds_a_name() -> None:
    body = ("rank = dist.get_rank()", "for epoch in range(3):", "    dist.barrier()")
    check_nothing(UnguardedPrint, script(*body, "    print(f'epoch {(epoch := epoch + 1)}')"))
    assert findings_of(UnguardedPrint, script(*body, "    print(f'epoch {epoch + 1}')"))


@pytest.mark.parametrize("state", ["torch.initial_seed()", "random.getstate()[1][0]", "np.random.get_state()[1][:2]"])
def test_the_state_of_a_generator(state: str) -> None:
    head = "import random\nimport numpy as np\nimport torch\nimport torch.distributed as dist\n"
    lines = ("rank = dist.get_rank()", "torch.manual_seed(100 + rank)", f"print('seed', {state})")
    check_nothing(UnguardedPrint, script(*lines, head=head))


def test_lines_that_go_to_a_file_of_the_rank() -> None:
    source = (
        "import contextlib\nimport torch.distributed as dist\n\n\ndef fit(rank):\n    dist.barrier()\n    print('begin')\n\n\n"
        "def main():\n    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n"
        "    with open({}, 'w') as log, contextlib.redirect_stdout(log):\n        fit(rank)\n\n\nmain()\n"
    )
    check_nothing(UnguardedPrint, source.format("f'fit-{rank}.log'"))
    assert findings_of(UnguardedPrint, source.format("'/dev/null'"))


@pytest.mark.parametrize("test", ["log is None", "not log"])
def test_a_root_logger_that_is_silenced_where_rank_zero_gave_nothing(test: str) -> None:
    head = "from lightning.pytorch.utilities import rank_zero_only\n\n"
    tools = head + "@rank_zero_only\ndef open_log(folder):\n    return Log(folder)\n"
    start = (
        "import logging\nfrom tools import open_log\n\ndef start(folder):\n    log = open_log(folder)\n"
        f"    if {test}:\n        logging.getLogger().setLevel(logging.CRITICAL)\n"
    )
    check_nothing(UnguardedPrint, LOGGED, files={"tools.py": tools, "start.py": start})
    on_all = {"tools.py": tools.replace("@rank_zero_only\n", ""), "start.py": start}
    assert findings_of(UnguardedPrint, LOGGED, files=on_all)
    turned = start.replace(f"if {test}:", f"if not ({test}):")  # that is rank 0's own level: they differ as well
    check_nothing(UnguardedPrint, LOGGED, files={"tools.py": tools, "start.py": turned})


@pytest.mark.parametrize(
    ("call", "test"),
    [
        ("train(build())", ""),
        ("notebook_launcher(train, num_processes=2)", ""),
        ("train(build(), dist.get_rank())", "rank == 0"),
        ("mp.spawn(train, nprocs=2)", "rank == 0"),
        ("train(*given())", "rank == 0"),
    ],
)
def test_a_rank_that_nobody_hands_over_guards_nothing(call: str, test: str) -> None:
    head = "import torch.distributed as dist\nimport torch.multiprocessing as mp\nfrom accelerate import notebook_launcher\n\n\n"
    first = "rank=0, net=None" if "spawn" in call else "net=None, rank=0"
    source = f"{head}def train({first}):\n    dist.init_process_group('gloo')\n    print('begins')\n    net.fit()\n\n\n{call}\n"
    tests = [e.test for f in findings_of(UnguardedPrint, source) for e in f.edits if isinstance(e, WrapInGuard)]
    assert ("rank == 0" in tests) is bool(test)


LOG = """class Log:
    def __init__(self, name, on=True):
        self.on = on
        self.name = name

    def print(self, text):
        {0}
"""
_UNDER = "if self.on:\n            print(text)"
_BELOW = "if not self.on:\n            return\n        print(text)"


@pytest.mark.parametrize("body", [_UNDER, _BELOW, _UNDER.replace("self.on", "self.on and self.name")])
def test_a_logger_that_is_told_at_its_making_to_be_quiet(body: str) -> None:
    lines = ("first = dist.get_rank() == 0", "log = Log('a', on=first)", "log.print('begin')")
    files = {"log.py": LOG.format(body), "one.py": "from log import Log\nLog('b').print('x')\n"}
    check_nothing(UnguardedPrint, script(*lines, head=f"from log import Log\n{DIST}"), files=files)


@pytest.mark.parametrize("given", ["'a'", "'a', on=args.loud", "dist.get_rank() == 0"])
def test_a_logger_that_is_not_told_of_the_rank_speaks_on_all(given: str) -> None:
    lines = ("rank = dist.get_rank()", f"log = Log({given})", "log.print('begin')")
    source = script(*lines, head=f"from log import Log\n{DIST}")
    assert findings_of(UnguardedPrint, source, {"log.py": LOG.format(_UNDER)})


@pytest.mark.parametrize("end", ["sys.exit(0)", "exit()", "raise SystemExit(1)", "assert ()", "assert args.fallback"])
def test_a_line_that_says_why_the_program_ends(end: str) -> None:
    head = "import sys\nimport torch\nimport torch.distributed as dist\n\ndef main(args):\n    rank = dist.get_rank()\n"
    ends = f"    if not args.known:\n        print('there is no such model')\n        {end}\n"
    source = f"{head}{ends}    if rank == 0:\n        args.save()\n"
    check_nothing(UnguardedPrint, source)
    for goes_on in ("args.known = True", "assert True", "assert (args.known, 'known')"):
        assert findings_of(UnguardedPrint, source.replace(end, goes_on))


SCRIPT_OF_A_TRAINER = """
    from transformers import Trainer, TrainingArguments

    {}
    args = TrainingArguments("out")
    trainer = Trainer(model, args, train_dataset=data)
    trainer.train()
    print("done")
    """


def test_a_line_beside_many_that_would_go_on_being_repeated() -> None:
    few, many = (SCRIPT_OF_A_TRAINER.format("; ".join(['print("one of them")'] * n)) for n in (1, 2))
    check_nothing(UnguardedPrint, many)
    assert findings_of(UnguardedPrint, few)


@pytest.mark.parametrize("line", ["no checkpoint found at '{}'", "No pretrained weights found", "=> no old run found"])
def test_what_a_rank_does_not_find_on_its_node(line: str) -> None:
    head = "import torch.distributed as dist\n"
    check_nothing(UnguardedPrint, script("rank = dist.get_rank()", f'print("{line}", args)', head=head))


OWN = """\
import torch.distributed as dist


def get_rank():
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_main_process():
    return get_rank() == 0
"""
STARTS = "import torch.distributed as dist\nfrom loop import Loop\n\ndist.init_process_group('gloo')\nLoop().run(2)\n"
LOOP = """\
from comm import {asked}


class Loop:
    def run(self, epochs):
        for epoch in range(epochs):
            print(f"epoch {{epoch}}")
            self.step(epoch)

    def step(self, epoch):
        if {test}:
            self.last = epoch
"""


@pytest.mark.parametrize(("asked", "test"), [("is_main_process", "is_main_process()"), ("get_rank", "get_rank() == 0")])
def test_a_file_that_asks_for_the_rank_by_a_function_of_the_project(asked: str, test: str) -> None:
    source = LOOP.format(asked=asked, test=test)
    line = '            print(f"epoch {epoch}")\n'
    after = source.replace(line, f"            if {test}:\n    {line}")
    check_transformed(UnguardedPrint, source, after, path="loop.py", files={"comm.py": OWN, "train.py": STARTS})


@pytest.mark.parametrize(
    "files",
    [{"comm.py": OWN},
     {"comm.py": "def get_rank():\n    return 0\n\n\ndef is_main_process():\n    return True\n", "train.py": STARTS}],
)  # fmt: skip
def test_a_function_of_the_project_that_shows_no_group(files: dict[str, str]) -> None:
    source = LOOP.format(asked="is_main_process", test="is_main_process()")
    assert not findings_of(UnguardedPrint, source, files, path="loop.py")


STRATEGY = """\
import torch.distributed as dist
from comm import is_main_process


class Strategy:
    def __init__(self, cfg):
        self.cfg = cfg
        self.name = self._choose()

    def _choose(self):
        print("looking for processes", self.cfg)
        return "ddp"

    def setup(self):
        if self.name == "ddp":
            dist.init_process_group("nccl")

    def done(self):
        if is_main_process():
            self.name = ""
"""


@pytest.mark.parametrize(
    ("run", "told"),
    [("strategy = Strategy('')\nstrategy.setup()\n", 0),  # the constructor runs above the start of the group
     ("Strategy('').setup()\nother = Strategy('')\n", 1),
     ("strategy = make()\nstrategy.setup()\nother = Strategy('')\n", 1)],
)  # fmt: skip
def test_a_constructor_above_the_method_that_starts_the_group(run: str, told: int) -> None:
    files = {"comm.py": OWN, "train.py": f"from strategy import Strategy\n\n{run}"}
    assert len(findings_of(UnguardedPrint, STRATEGY, files, path="strategy.py")) == told


OF_OLD_LIGHTNING = """\
import pytorch_lightning as pl
from net import Net

if __name__ == "__main__":
    trainer = pl.Trainer({arguments})
    trainer.fit(Net())
    results = trainer.test()
    print(results)
"""


@pytest.mark.parametrize("arguments", ["gpus=4", "gpus=2, progress_bar_refresh_rate=10", "devices=2, strategy='ddp_spawn'"])
def test_a_script_whose_ranks_live_in_fit_alone(arguments: str) -> None:
    check_nothing(UnguardedPrint, OF_OLD_LIGHTNING.format(arguments=arguments))


@pytest.mark.parametrize("arguments", ["gpus=4, accelerator='ddp'", "devices=4, strategy='ddp'", "devices=4"])
def test_a_script_that_each_rank_runs(arguments: str) -> None:
    assert findings_of(UnguardedPrint, OF_OLD_LIGHTNING.format(arguments=arguments))


OF_A_STRATEGY = """\
import lightning.pytorch as pl
from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy
from net import Net


class Patient(DDPStrategy):
    def __init__(self, start_method={default!r}, timeout=60):
        super().__init__({handed}timeout=timeout)


def told(config):
    print("trains", config.name)


def main(config):
    told(config)
    if config.zero:
        strategy = DeepSpeedStrategy(stage=2)
    else:
        strategy = {made}
    options = {{"devices": 4, "strategy": strategy}}
    trainer = pl.Trainer(**options)
    print("starting", config.name)
    trainer.fit(Net())
    print("trained")


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    ("default", "handed", "made"),
    [
        ("spawn", "start_method=start_method, ", "Patient()"),
        ("popen", "start_method=start_method, ", "Patient(start_method='spawn')"),
        ("popen", "start_method='fork', ", "Patient()"),
        ("popen", "", "DDPStrategy(start_method='spawn')"),
        ("popen", "", "'ddp_spawn' if config.small else 'ddp'"),
    ],
)
def test_a_strategy_that_may_spawn_the_ranks_in_fit(default: str, handed: str, made: str) -> None:
    check_nothing(UnguardedPrint, OF_A_STRATEGY.format(default=default, handed=handed, made=made))


@pytest.mark.parametrize(
    ("default", "handed", "made"),
    [
        ("popen", "start_method=start_method, ", "Patient()"),
        ("spawn", "start_method=start_method, ", "Patient(start_method='popen')"),
        ("spawn", "", "Patient()"),  # the default goes nowhere
        ("popen", "", "'ddp'"),
    ],
)
def test_a_strategy_that_runs_the_script_anew_for_each_rank(default: str, handed: str, made: str) -> None:
    assert findings_of(UnguardedPrint, OF_A_STRATEGY.format(default=default, handed=handed, made=made))


def test_a_strategy_that_spawns_beside_a_launcher() -> None:
    source = OF_A_STRATEGY.format(default="spawn", handed="start_method=start_method, ", made="Patient()")
    assert findings_of(UnguardedPrint, source, {"run.sh": "torchrun --nproc_per_node 4 train.py\n"}, path="train.py")


@pytest.mark.parametrize("end", ["on_test_epoch_end", "on_validation_epoch_end", "on_test_end"])
def test_what_an_evaluation_comes_to_on_the_own_share_stays(end: str) -> None:
    source = f"""\
import lightning.pytorch as pl
import numpy as np


class Net(pl.LightningModule):
    def test_step(self, batch, batch_idx):
        self.scores.append(self.score(batch))

    def validation_step(self, batch, batch_idx):
        self.scores.append(self.score(batch))

    def {end}(self):
        mean = np.mean(self.scores)
        print(f"score: {{mean}}")
        self.last = self.make(mean)
"""
    check_nothing(UnguardedPrint, source)


STORED = (
    "import os\nimport torch.distributed as dist\n\n\ndef main(config):\n    params = {{'size': int(os.environ['WORLD_SIZE'])}}\n"
    "    dist.init_process_group('nccl')\n    {above}print('starting', params['size'])\n    {below}\n    if params['first']:\n"
    "        print('rank 0 alone')\n    train(params)\n\n\nmain(None)\n"
)
STORE = "params['first'] = dist.get_rank() == 0"


def test_a_key_that_the_dict_does_not_have_yet_is_no_test() -> None:
    """The dict is there, and the key is stored below: the test would end every rank with KeyError."""
    found = findings_of(UnguardedPrint, STORED.format(above="", below=STORE))
    assert all("params['first']" not in str(edit) for f in found for edit in f.edits)
    some = f"if config:\n        {STORE}\n    "
    found = findings_of(UnguardedPrint, STORED.format(above=some, below="pass"))
    assert all("params['first']" not in str(edit) for f in found for edit in f.edits)


def test_a_key_that_is_stored_above_is_one() -> None:
    (found,) = findings_of(UnguardedPrint, STORED.format(above=f"{STORE}\n    ", below="pass"))
    assert any("params['first']" in str(edit) for edit in found.edits)


RESUMED = """import lightning as L


class Net(L.LightningModule):
    def training_step(self, batch, index):
        return self.net(batch).mean()

    def on_load_checkpoint(self, checkpoint):
        for name in list(checkpoint["state_dict"]):
            if name.startswith("old."):
                print("dropping", name)
                del checkpoint["state_dict"][name]
"""


def test_a_module_that_is_loaded_without_a_trainer() -> None:
    """`self.global_rank` is 0 on every process until a Trainer has the module."""
    line = '                print("dropping", name)\n'
    main = "import lightning as L\nfrom net import Net\n\nL.Trainer(devices=2).fit({})\n"
    both = "import lightning as L\nfrom lightning.pytorch.utilities import rank_zero_only\n"
    imported = RESUMED.replace("import lightning as L\n", both)
    for loaded, before, asked in (
        ("Net.load_from_checkpoint('a.ckpt')", imported, "rank_zero_only.rank == 0"),
        ("Net(), ckpt_path='a.ckpt'", imported, "self.global_rank == 0"),
    ):
        guarded = f"                if {asked}:\n    {line}"
        files = {"main.py": main.format(loaded)}
        check_transformed(UnguardedPrint, before, before.replace(line, guarded), files=files, path="net.py")


PLACED = """import os

from accelerate import Accelerator
from transformers import AutoModel


class Work:
    def run(self):
        accelerator = Accelerator()
        self.place = {}
        sizes = {}
        model = AutoModel.from_pretrained("a", device_map=self.place)
        {}


Work().run()
"""


@pytest.mark.parametrize(
    ("place", "sizes", "line"),
    [
        ('{"": int(os.environ["LOCAL_RANK"])}', "{}", "print('on', self.place)"),
        ('{"": int(os.environ.get("LOCAL_RANK", 0))}', "{}", "print(model.hf_device_map)"),
        ("None", '[accelerator.process_index, "of", accelerator.num_processes]', "print(sizes)"),
    ],
)
def test_what_is_made_of_the_rank(place: str, sizes: str, line: str) -> None:
    check_nothing(UnguardedPrint, PLACED.format(place, sizes, line))


@pytest.mark.parametrize(
    ("place", "sizes", "line"),
    [
        ('"auto"', "{}", "print('on', self.place)"),
        ("None", "{'lora_rank': 8}", "print(sizes)"),
    ],
)
def test_what_names_the_rank_for_the_work_alone(place: str, sizes: str, line: str) -> None:
    before = PLACED.format(place, sizes, line)
    check_transformed(UnguardedPrint, before, before.replace(line, line.replace("print", "accelerator.print")))


PREPARED = """\
import os

import lightning.pytorch as pl


class Rows(pl.LightningDataModule):
    def setup(self, stage=None):
        if {asked}:
            print("nothing there yet")
            self.build()
        self.rows = read(self.path)

    def build(self):
        print("building", self.path)
        write(self.path)
"""
SCRIPT = """\
import lightning.pytorch as pl
from net import Net
from rows import Rows


def main():
    rows = Rows()
    {first}
    trainer = pl.Trainer(devices=4, strategy="ddp")
    trainer.fit(Net(), rows)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("asked", ["not os.path.exists(self.path)", "not os.path.isfile(self.path) or self.force"])
def test_what_the_first_process_makes_before_the_others_start(asked: str) -> None:
    files = {"main.py": SCRIPT.format(first="rows.setup('fit')")}
    check_nothing(UnguardedPrint, PREPARED.format(asked=asked), files=files, path="rows.py")


@pytest.mark.parametrize(
    ("asked", "first", "command"),
    [
        ("not os.path.exists(self.path)", "rows.check()", ""),  # each rank comes to the Trainer's own call
        ("os.path.exists(self.path)", "rows.setup('fit')", ""),
        ("self.many", "rows.setup('fit')", ""),
        ("not os.path.exists(self.path)", "rows.setup('fit')", "torchrun --nproc_per_node 4 main.py\n"),
    ],
)
def test_what_each_rank_comes_to_in_setup(asked: str, first: str, command: str) -> None:
    files = {"main.py": SCRIPT.format(first=first), **({"run.sh": command} if command else {})}
    assert findings_of(UnguardedPrint, PREPARED.format(asked=asked), files, path="rows.py")


FILLED = """\
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.scores = {{}}

    def training_step(self, batch, index):
        {step}
        return self.net(batch).mean()

    def on_validation_epoch_end(self):
        {leaves}
        for name, score in self.score().items():
            self.scores[name] = score

    def on_train_epoch_end(self):
        if not self.scores:
            return
        print("the epoch is over")
        self.scores = {{}}
"""
LEAVES = "if self.global_rank != 0:\n            return"


def test_what_rank_zero_alone_has_filled() -> None:
    """The others leave above: nothing of theirs is in it."""
    check_nothing(UnguardedPrint, FILLED.format(leaves=LEAVES, step="self.scores.clear()"))


@pytest.mark.parametrize(
    ("leaves", "step"),
    [("self.score()", "self.count()"), (LEAVES, "self.fill(self.scores)"), (LEAVES, "self.scores = {'all': 0}"),
     (LEAVES, "self.scores.update(all=0)")],
)  # fmt: skip
def test_what_each_rank_may_have_filled(leaves: str, step: str) -> None:
    assert findings_of(UnguardedPrint, FILLED.format(leaves=leaves, step=step))


HEADED = """\
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def on_before_optimizer_step(self, optimizer):
        self.rows = {{k: p.data.sum().item() for k, p in self.named_parameters()}}
        if self.rows:
            if self.verbose:
                print("[{word}] step")
            for name, row in self.rows.items():
                if self.verbose:
                    print(name, row)
            self.rows.clear()
"""


@pytest.mark.parametrize(("word", "guarded"), [("DEBUG", 0), ("weights at this", 1)])
def test_lines_below_a_heading_that_each_rank_is_to_print(word: str, guarded: int) -> None:
    found = findings_of(UnguardedPrint, HEADED.format(word=word))
    assert len(found) == guarded
    assert all(f.span.line == 8 for f in found)


STATE = "from accelerate import {0}\n"
ASKED = ("step()", "if state.is_main_process:", "    save()", "step()")


@pytest.mark.parametrize("made", ["PartialState", "AcceleratorState"])
def test_the_state_of_accelerate_has_its_fields_from_the_beginning(made: str) -> None:
    head = STATE.format(made)
    before = script(f"state = {made}()", "step()", "print('start')", *ASKED, head=head)
    after = script(f"state = {made}()", "step()", "if state.is_main_process:", "    print('start')", *ASKED, head=head)
    check_transformed(UnguardedPrint, before, after)


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("from accelerate import PartialState\n", ("step()", "print('start')", "state = PartialState()")),  # not bound yet
        ("from accelerate import PartialState\n", ("if args.many:", "    state = PartialState()", "step()", "print('start')")),
        ("from accelerate import PartialState\nfrom own import Run\n", ("state = Run()", "step()", "print('start')")),
    ],
)
def test_a_state_that_may_not_be_there_is_not_asked(head: str, lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedPrint, script(*lines, *ASKED, head=head))


BY_ACCELERATE = """\
import torch
from accelerate import Accelerator, PartialState

accelerator = Accelerator()


{decorator}
def sign_off():
    print("done")


def main():
    model, loader = accelerator.prepare(torch.nn.Linear(1, 1), torch.utils.data.DataLoader(torch.ones(4, 1)))
    for batch in loader:
        accelerator.backward(model(batch).sum())
    {call}


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("decorator", "call"),
    [
        ("@accelerator.on_last_process", "sign_off()"),
        ("@accelerator.on_process(process_index=1)", "sign_off()"),
        ("@PartialState().on_last_process", "sign_off()"),
        ("@accelerator.on_local_process(local_process_index=1)", "sign_off()"),
        ("", "if accelerator.is_last_process:\n        sign_off()"),
        ("", "if model and accelerator.is_last_process: sign_off()"),
        ("", "if accelerator.is_last_process:\n        print('last')"),
    ],
)
def test_a_process_that_need_not_be_rank_zero_goes_on_printing(decorator: str, call: str) -> None:
    """Under a guard for rank 0 nobody would print it: seen on two processes."""
    files = {"run.sh": "torchrun --nproc_per_node=2 module.py\n"}
    source = BY_ACCELERATE.format(decorator=decorator, call=call)
    if "print('last')" in call:
        source = source.replace('print("done")', "pass")
    check_nothing(UnguardedPrint, source, files=files)
    assert findings_of(UnguardedPrint, BY_ACCELERATE.format(decorator="", call="sign_off()"), files)
