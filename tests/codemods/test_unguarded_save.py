from __future__ import annotations

import pytest

from codemods.api.findings import WrapInGuard
from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = (
    "import os\nimport torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
)
BARE = "import os\nimport torch\n\n"


def main(*lines: str, head: str = HEAD, above: str = "", given: str = "model, optimizer, args") -> str:
    """A training function in which every rank has made the group."""
    body = "".join(f"    {line}\n" for line in lines)
    start = "    dist.init_process_group('gloo')\n    model = DDP(model)\n" if head is HEAD else ""
    return f"{head}{above}def main({given}):\n{start}{body}"


SAVE = "torch.save(model.module.state_dict(), 'last.pt')"
WRITTEN_OUT = "if not dist.is_initialized() or dist.get_rank() == 0:"
HELPER = "def keep(state, folder):\n    torch.save(state, os.path.join(folder, 'last.pt'))\n\n"


def test_example_of_the_page() -> None:
    sections = UnguardedSave.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnguardedSave, before, after)


def test_under_the_rank_that_the_function_has() -> None:
    lines = ("rank = dist.get_rank()", "for epoch in range(args.epochs):", "    step(model)", f"    {SAVE}")
    check_transformed(UnguardedSave, main(*lines), main(*lines[:3], "    if rank == 0:", f"        {SAVE}"))


OWN = "def is_main_process():\n    return not dist.is_initialized() or dist.get_rank() == 0\n\n"


@pytest.mark.parametrize(
    ("asks", "test"),
    [
        ("        if is_main_process():\n            note()\n", "if is_main_process():"),
        ("        pass\n", WRITTEN_OUT),  # nobody asks it here: it may be meant for something else
    ],
)
def test_the_function_by_which_the_file_asks_already_is_taken(asks: str, test: str) -> None:
    above = OWN + "class Keeper:\n    def begin(self):\n" + asks
    above += "\n    def save(self, model):\n        torch.save(model.module.state_dict(), 'last.pt')\n\n"
    after = above.replace("        torch.save", f"        {test}\n            torch.save")
    lines = ("keeper = Keeper()", "keeper.save(model)")
    check_transformed(UnguardedSave, main(*lines, above=above), main(*lines, above=after))


def test_two_files_of_one_helper_go_under_one_test() -> None:
    above = (
        "def keep(state, best, folder):\n    path = os.path.join(folder, 'last.pt')\n    torch.save(state, path)\n    if best:\n"
        "        torch.save(state, os.path.join(folder, 'best.pt'))\n\n"
    )
    after = (
        "def keep(state, best, folder):\n    path = os.path.join(folder, 'last.pt')\n"
        f"    {WRITTEN_OUT}\n        torch.save(state, path)\n        if best:\n"
        "            torch.save(state, os.path.join(folder, 'best.pt'))\n\n"
    )
    call = "keep({'model': model.state_dict()}, args.best, 'runs')"
    check_transformed(UnguardedSave, main(call, above=above), main(call, above=after))


def test_a_method_of_an_object_in_another() -> None:
    above = "class Keeper:\n    def save(self, model):\n        torch.save(model.module.state_dict(), 'last.pt')\n\n"
    after = above.replace("        torch.save", f"        {WRITTEN_OUT}\n            torch.save")
    lines = ("keeper = Keeper()", "keeper.save(model)")
    check_transformed(UnguardedSave, main(*lines, above=above), main(*lines, above=after))


def test_a_helper_in_a_file_without_ranks_is_guarded_where_it_is_called() -> None:
    files = {"keeping.py": BARE + HELPER}
    head = "from accelerate import Accelerator\nfrom keeping import keep\n\n"
    source = head + "def main(model):\n    accelerator = Accelerator()\n    keep(model.state_dict(), 'runs')\n"
    (told,) = findings_of(UnguardedSave, BARE + HELPER, {"train.py": source}, path="keeping.py")
    assert told.path == "train.py" and told.edits and "keeping.py:5" in told.message
    assert not findings_of(UnguardedSave, source, files)  # the file of the write tells it


def test_the_barrier_comes_with_the_test_where_the_file_is_read() -> None:
    lines = (SAVE, "model.load_state_dict(torch.load('last.pt'))")
    wanted = (WRITTEN_OUT, f"    {SAVE}", "if dist.is_initialized():", "    dist.barrier()", lines[1])
    check_transformed(UnguardedSave, main(*lines), main(*wanted), unsafe=True)
    waited = (SAVE, "dist.barrier()", lines[1])
    check_transformed(UnguardedSave, main(*waited), main(WRITTEN_OUT, f"    {SAVE}", *waited[1:]))


OF_ALL = "open(os.path.join(args.out, 'notes.txt'), 'w').write('a')"
FOLDER_SAVED = "args.tokenizer.save_pretrained(args.out)"


def test_a_folder_that_the_save_makes_for_what_the_others_write_into_it() -> None:
    (found,) = findings_of(UnguardedSave, main(FOLDER_SAVED, OF_ALL))
    assert [type(e).__name__ for e in found.edits] == ["WrapInGuard", "InsertAfter"]


@pytest.mark.parametrize(
    "lines",
    [
        ("os.makedirs(args.out, exist_ok=True)", FOLDER_SAVED, OF_ALL),  # every rank has made it
        (FOLDER_SAVED, "dist.barrier()", OF_ALL),
        (FOLDER_SAVED, "os.makedirs(args.out, exist_ok=True)", OF_ALL),
        (FOLDER_SAVED, OF_ALL.replace("args.out", "args.logs")),
        (FOLDER_SAVED, "if dist.get_rank() == 0:", f"    {OF_ALL}"),
    ],
)
def test_a_folder_that_is_there_or_that_no_other_rank_writes_into(lines: tuple[str, ...]) -> None:
    (found,) = findings_of(UnguardedSave, main(*lines))
    assert [type(e).__name__ for e in found.edits] == ["WrapInGuard"]


def test_a_test_of_what_only_rank_zero_has_is_no_test_to_write_under() -> None:
    lines = ("rank, board = dist.get_rank(), None", "if rank == 0 and args.board:", "    board = open('b.txt', 'w')")
    asked = ("if board is not None:", "    board.write('a')")
    wanted = (*lines, "if rank == 0:", f"    {SAVE}", *asked)
    check_transformed(UnguardedSave, main(*lines, SAVE, *asked), main(*wanted))


def test_the_barrier_behind_the_call_of_a_helper() -> None:
    lines = ("keep(model.state_dict(), 'runs')", "return torch.load(os.path.join('runs', 'last.pt'))")
    (found,) = findings_of(UnguardedSave, main(*lines, above=HELPER))
    assert [type(e).__name__ for e in found.edits] == ["WrapInGuard", "InsertAfter"]


def test_the_word_of_peft_for_a_model() -> None:
    head = "from accelerate import Accelerator\nfrom peft import get_peft_model\n\n"
    made = ("accelerator = Accelerator()", "model = get_peft_model(model, args.lora)")
    lines = (*made, "model = accelerator.prepare(model)", "bare = accelerator.unwrap_model(model)")
    before = main(*lines, "bare.save_pretrained(args.out)", head=head)
    after = main(*lines, "bare.save_pretrained(args.out, is_main_process=accelerator.is_main_process)", head=head)
    check_transformed(UnguardedSave, before, after)


def test_a_tokenizer_goes_under_the_test() -> None:
    head = "from accelerate import Accelerator\n\n"
    lines = ("accelerator = Accelerator()", "tokenizer = args.tokenizer", "tokenizer.save_pretrained(args.out)")
    after = (*lines[:2], "if accelerator.is_main_process:", f"    {lines[2]}")
    check_transformed(UnguardedSave, main(*lines, head=head), main(*after, head=head))


def test_fabric_has_a_test_of_its_own() -> None:
    head = "import torch\nfrom lightning.fabric import Fabric\n\n"
    source = head + "def snapshot(fabric, model, step):\n    torch.save(model.state_dict(), f'{step}.pt')\n"
    wanted = source.replace("    torch.save", "    if fabric.is_global_zero:\n        torch.save")
    check_transformed(UnguardedSave, source, wanted, unsafe=True)


def test_a_file_that_is_opened_for_it() -> None:
    lines = ("with open('last.pt', 'wb') as f:", "    torch.save(model.state_dict(), f)")
    check_transformed(UnguardedSave, main(*lines), main(WRITTEN_OUT, *(f"    {line}" for line in lines)))


def test_behind_a_transformers_trainer() -> None:
    head = "from transformers import Trainer\n\n"
    lines = ("trainer = Trainer(model=model)", "trainer.train()", "model.save_pretrained('final')")
    after = (*lines[:2], "if trainer.is_world_process_zero():", f"    {lines[2]}")
    check_transformed(UnguardedSave, main(*lines, head=head), main(*after, head=head), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("if dist.get_rank() == 0:", f"    {SAVE}"),
        ("if dist.get_rank() > 0:", "    return", SAVE),
        ("if args.is_main:", f"    {SAVE}"),
        ("if not args.multiprocessing_distributed or args.rank % args.gpus == 0:", f"    {SAVE}"),
        ("main_here = dist.get_rank() == 0", "if main_here:", f"    {SAVE}"),
        ("torch.save(model.state_dict(), f'part_{dist.get_rank()}.pt')",),
        ("path = 'part_' + str(args.rank) + '.pt'", "torch.save(model.state_dict(), path)"),
        ("buffer = io.BytesIO()", "torch.save(model.state_dict(), buffer)"),
        ("with tempfile.TemporaryDirectory() as folder:", "    torch.save(model.state_dict(), os.path.join(folder, 'a.pt'))"),
        ("try:", "    go(model)", "except RuntimeError:", f"    {SAVE}"),
        ("path = 'a.pt' if dist.get_rank() == 0 else None", "if path is not None:", "    torch.save(model.state_dict(), path)"),
        ("if dist.get_world_size() == 1:", f"    {SAVE}"),
        ("bare.save_pretrained('out', is_main_process=args.first)",),
        ("args.accelerator.save(model.state_dict(), 'last.pt')",),
        ("args.fabric.save('last.pt', {'model': model})",),
        ("args.trainer.save_checkpoint('last.pt')",),
    ],
)
def test_what_one_process_writes_or_each_has_for_itself(lines: tuple[str, ...]) -> None:
    check_nothing(UnguardedSave, main(*lines, head=HEAD))


def test_a_path_that_a_function_or_a_caller_makes_of_the_rank() -> None:
    made = "def place(folder):\n    return os.path.join(folder, f'rank{dist.get_rank()}.pt')\n\n"
    check_nothing(UnguardedSave, main("torch.save(model.state_dict(), place('runs'))", above=made))
    check_nothing(UnguardedSave, main("keep(model.state_dict(), f'runs/{dist.get_rank()}')", above=HELPER))


def test_callers_that_only_one_process_comes_by() -> None:
    check_nothing(UnguardedSave, main("if dist.get_rank() == 0:", "    keep(model.state_dict(), 'runs')", above=HELPER))
    parent = "import torch.multiprocessing as mp\n"
    lines = "def run(model, args):\n    mp.spawn(main, args=(model, None, args))\n    torch.save(model.state_dict(), 'last.pt')\n"
    check_nothing(UnguardedSave, parent + main("go(model)") + "\n" + lines)


def test_functions_that_no_training_comes_to() -> None:
    check_nothing(UnguardedSave, BARE + HELPER)
    convert = "def convert(path):\n    torch.save(torch.load(path)['model'], 'bare.pt')\n\n"
    check_nothing(UnguardedSave, main("go(model)", above=convert))


def test_a_method_name_that_many_objects_have() -> None:
    above = "class Keeper:\n    def save(self, model):\n        torch.save(model.state_dict(), 'last.pt')\n\n"
    lines = ("keeper = Keeper()", "args.image.save('a.png')", "if dist.get_rank() == 0:", "    keeper.save(model)")
    check_nothing(UnguardedSave, main(*lines, above=above))


def test_one_device() -> None:
    head = "import torch\nimport lightning as L\n\n"
    lines = ("trainer = L.Trainer(devices=1)", "trainer.fit(model)", "torch.save(model.state_dict(), 'last.pt')")
    check_nothing(UnguardedSave, main(*lines, head=head))
    many = main(*lines, head=head).replace("devices=1", "devices=args.devices")
    assert findings_of(UnguardedSave, many)


def test_a_cache_that_is_asked_for_belongs_to_another() -> None:
    lines = ("if not os.path.exists('rows.pt'):", "    torch.save(args.rows, 'rows.pt')", "return torch.load('rows.pt')")
    check_nothing(UnguardedSave, main(*lines))


def test_the_trainer_of_transformers_calls_save_on_one_process() -> None:
    source = "import torch\nfrom transformers import Trainer\n\nclass T(Trainer):\n    def _save(self, output_dir):\n"
    check_nothing(UnguardedSave, source + "        torch.save(self.model.state_dict(), output_dir)\n")


def test_a_sharded_model_is_told() -> None:
    head = HEAD + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n\n"
    written = "    torch.save(model.state_dict(), 'a.pt')"
    source = head + f"def main(model):\n    dist.init_process_group('nccl')\n    model = FSDP(model)\n{written}\n"
    check_told(UnguardedSave, source, reason="sharded")
    gathered = source.replace(written, "    state = model.state_dict()\n    torch.save(state, 'a.pt')")
    assert findings_of(UnguardedSave, gathered)[0].edits


def test_a_collective_in_the_statement_is_told() -> None:
    head = "import torch\nfrom accelerate import Accelerator\n\n"
    lines = ("accelerator = Accelerator()", "torch.save(accelerator.get_state_dict(model), 'a.pt')")
    check_told(UnguardedSave, main(*lines, head=head), reason="waits for every rank")


def test_what_only_this_rank_has_seen_is_told() -> None:
    lines = (
        "from torch.utils.data import DataLoader, DistributedSampler",
        "loader = DataLoader(args.data, sampler=DistributedSampler(args.data))",
        "found = []",
        "for batch in loader:",
        "    found.append(predict(batch))",
        "torch.save(found, 'answers.pt')",
    )
    check_told(UnguardedSave, main(*lines), reason="gather")


def test_a_barrier_that_could_hang_is_told() -> None:
    lines = ("if float(args.probe()) < 1:", f"    {SAVE}", "    model.load_state_dict(torch.load('last.pt'))")
    check_told(UnguardedSave, main(*lines), reason="could hang")


ENDED = "def close():\n    dist.destroy_process_group()\n\n"


@pytest.mark.parametrize("end", ["dist.destroy_process_group()", "close()", "if dist.is_initialized():\n        close()"])
def test_behind_the_end_of_the_group_every_rank_would_pass_the_test(end: str) -> None:
    joined = "def join(folder):\n    torch.save(torch.zeros(1), os.path.join(folder, 'all.pt'))\n\n"
    source = main("train(model)", end, "join('runs')", above=ENDED + joined)
    (finding,) = findings_of(UnguardedSave, source)
    assert finding.fix is None and "keep the rank in a name before that" in finding.reason
    again = main("train(model)", end, "dist.init_process_group('gloo')", "join('runs')", above=ENDED + joined)
    (finding,) = findings_of(UnguardedSave, again)
    assert finding.fix is not None


STORE = "import store\n\n"


def test_the_opening_goes_under_the_test_with_the_write() -> None:
    lines = ("with store.open('last.pt', 'wb') as f:", "    torch.save(model.module.state_dict(), f)")
    after = main(WRITTEN_OUT, *(f"    {line}" for line in lines), above=STORE)
    check_transformed(UnguardedSave, main(*lines, above=STORE), after, unsafe=True)


def test_an_opening_beside_other_work_is_told() -> None:
    lines = ("with store.open('last.pt', 'wb') as f:", "    step(model)", "    torch.save(model.module.state_dict(), f)")
    check_told(UnguardedSave, main(*lines, above=STORE), reason="put a test for rank 0 round the opening too")


HOOKED = """import os
import torch
from accelerate import Accelerator


def main(args, model):
    accelerator = Accelerator()

    def keep(models, weights, folder):
        models[0].save_pretrained(os.path.join(folder, 'net'))

    accelerator.register_save_state_pre_hook(keep)
    model = accelerator.prepare(model)
    for epoch in range(args.epochs):
        step(model)
        accelerator.save_state(args.folder)
"""


def test_a_hook_of_accelerate_runs_where_the_state_is_saved() -> None:
    (found,) = findings_of(UnguardedSave, HOOKED)
    assert "os.path.join(folder, 'net')" in found.message


def test_a_hook_of_accelerate_that_the_main_process_alone_runs_stays() -> None:
    guarded = "        if accelerator.is_main_process:\n            accelerator.save_state(args.folder)\n"
    check_nothing(UnguardedSave, HOOKED.replace("        accelerator.save_state(args.folder)\n", guarded))
    check_nothing(UnguardedSave, HOOKED.replace("        accelerator.save_state(args.folder)\n", ""))


KEEPER = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Keeper:
    def __init__(self, net, folder=None):
        self.net = DDP(net)
        self.folder = folder

    def keep(self):
        if self.folder is None:
            return
        torch.save(self.net.module.state_dict(), self.folder + '/last.pt')


def main(net):
    dist.init_process_group('gloo')
    if dist.get_rank() == 0:
        keeper = Keeper(net, folder='runs').started()
    else:
        keeper = Keeper(net).started()
    keeper.keep()
"""


def test_an_object_that_is_given_its_folder_on_rank_0_alone_saves_there_alone() -> None:
    check_nothing(UnguardedSave, KEEPER)
    start = KEEPER.index("    if dist.get_rank()")
    given = KEEPER[:start] + "    keeper = Keeper(net, folder='runs')\n    keeper.keep()\n"
    assert findings_of(UnguardedSave, given)


def test_behind_a_value_that_a_function_gives_to_rank_0_alone() -> None:
    above = (
        "def gathered(parts):\n    out = [None] * dist.get_world_size()\n    dist.all_gather_object(out, parts)\n"
        "    if dist.get_rank() != 0:\n        return None\n    return out\n\n"
    )
    saved = "torch.save(scores, 'last.pt')"
    check_nothing(UnguardedSave, main("scores = gathered(args.parts)", "if scores is None:", "    return", saved, above=above))
    check_nothing(UnguardedSave, main("scores = gathered(args.parts)", "if scores:", f"    {saved}", above=above))
    line = "scores = gathered(args.parts) if dist.is_initialized() else args.parts"
    check_nothing(UnguardedSave, main(line, "if scores:", f"    {saved}", above=above))


def test_above_the_start_of_the_group_a_test_that_asks_it_is_no_test() -> None:
    source = f"{HEAD}def ready(state):\n    torch.save(state, 'first.pt')\n\n\ndef main(args):\n    ready(args.state)\n"
    source += "    dist.init_process_group('gloo')\n    model = DDP(args.net)\n"
    for found in findings_of(UnguardedSave, source):
        assert not found.edits
        assert "no process group yet" in found.reason


def test_a_folder_from_which_a_run_goes_on_is_no_cache() -> None:
    head = "import os\nfrom transformers import Trainer\nfrom transformers.trainer_utils import get_last_checkpoint\n\n"
    asked = ("last = None", "if os.path.isdir(args.output_dir):", "    last = get_last_checkpoint(args.output_dir)")
    lines = (*asked, "trainer = Trainer(model=model)", "trainer.train(resume_from_checkpoint=last)")
    source = main(*lines, "model.save_pretrained(args.output_dir)", head=head)
    assert findings_of(UnguardedSave, source)
    check_nothing(UnguardedSave, source.replace("    last = get_last", "    return get_last"))


def test_behind_a_trainer_of_any_name() -> None:
    head = "from trl import SFTTrainer\n\n"
    lines = ("trainer = SFTTrainer(model=model)", "trainer.train()", "args.tokenizer.save_pretrained('final')")
    assert findings_of(UnguardedSave, main(*lines, head=head))


def test_a_call_on_the_way_that_asserts_the_rank() -> None:
    """The others end at the `assert`: no one rank writes into the bytes of another."""
    asserting = "def folder_of_the_run(args):\n    assert dist.get_rank() == 0\n    return args.out\n\n"
    other = asserting.replace("dist.get_rank() == 0", "args.out")
    line = "keep(model.module.state_dict(), folder_of_the_run(args))"
    check_nothing(UnguardedSave, main(line, above=HELPER + asserting))
    assert findings_of(UnguardedSave, main(line, above=HELPER + other))
    check_nothing(UnguardedSave, main("folder = folder_of_the_run(args)", "keep(model, folder)", above=HELPER + asserting))


def test_a_save_behind_a_return() -> None:
    check_nothing(UnguardedSave, main("return model", SAVE))


# A Trainer that the settings make

SETTINGS = {"conf/trainer.yaml": "devices: 4\nstrategy: ddp\n"}
TASK = """
    import hydra
    import torch
    from lightning.pytorch import LightningModule, Trainer

    def train(cfg):
        model: LightningModule = hydra.utils.instantiate(cfg.model)
        trainer: Trainer = hydra.utils.instantiate(cfg.trainer{given})
        trainer.fit(model)
        torch.save(model.net.export(), cfg.folder + "/net.pt")

    @hydra.main(config_path="conf")
    def main(cfg):
        train(cfg)

    if __name__ == "__main__":
        main()
    """


def test_behind_fit_of_a_trainer_that_the_settings_make() -> None:
    found = findings_of(UnguardedSave, TASK.format(given=""), SETTINGS)
    assert len(found) == 1 and "rank_zero_only.rank == 0" in str(found[0].edits)
    assert found[0].evidence[-1].path == "conf/trainer.yaml" and found[0].evidence[-1].line == 2
    strategy = "from lightning.pytorch.strategies import DDPStrategy\n    import hydra"
    several = TASK.format(given=", strategy=DDPStrategy()").replace("import hydra", strategy)
    assert findings_of(UnguardedSave, several)
    class_of_it = {"conf/ddp.yaml": "strategy:\n  _target_: lightning.pytorch.strategies.DDPStrategy\n"}
    assert not findings_of(UnguardedSave, TASK.format(given=""), class_of_it)  # of how many devices is not said


@pytest.mark.parametrize(
    ("old", "new", "files"),
    [("", "", {}),  # no setting of several processes
     ("", "", {"conf/trainer.yaml": "devices: 4\n# strategy: ddp\n"}),
     ("", "", {"conf/trainer.yaml": "devices: 1\nstrategy: auto\n"}),
     ("cfg.trainer)", "cfg.trainer, devices=1)", SETTINGS),
     ("cfg.trainer)", "cfg.trainer, strategy='auto')", SETTINGS),
     ("trainer: Trainer", "trainer: Runner", SETTINGS),  # a class of the project, or of another package
     ("lightning.pytorch import LightningModule, Trainer", "mine import LightningModule, Trainer", SETTINGS),
     ("        trainer.fit(model)\n", "", SETTINGS),
     ("        trainer.fit(model)\n", "        if cfg.fit:\n            trainer.fit(model)\n            return\n", SETTINGS),
     ("torch.save(", "if trainer.is_global_zero:\n            torch.save(", SETTINGS)],
)  # fmt: skip
def test_settings_that_show_no_several_processes(old: str, new: str, files: dict[str, str]) -> None:
    source = TASK.format(given="")
    assert old in source
    check_nothing(UnguardedSave, source.replace(old, new) if old else source, files=files)


# A namespace that holds a rank beside the path

SPACE = """
    import torch
    import torch.distributed as dist

    def keep(args, model):
        dist.barrier()
        torch.save(model, args.folder + "/model.pt")

    def main(model):
        dist.init_process_group("gloo")
        args = parse(local_rank=0)
        keep(args, model)
    """
PUT = "        args.folder = {value}\n        keep(args, model)\n"


def test_a_rank_beside_the_path_makes_it_nobodys_own() -> None:
    assert findings_of(UnguardedSave, SPACE)
    assert findings_of(UnguardedSave, SPACE.replace("        keep(args, model)\n", PUT.format(value="'runs'")))


@pytest.mark.parametrize(
    ("source", "files"),
    [(SPACE.replace("        keep(args, model)\n", PUT.format(value="f'runs/{args.local_rank}'")), {}),
     (SPACE.replace("        keep(args, model)\n", PUT.format(value="f'runs/{dist.get_rank()}'")), {}),
     (SPACE.replace("parse(local_rank=0)", "Namespace(folder=os.path.join('runs', f'rank{dist.get_rank()}'))"), {}),
     (SPACE, {"more.py": "def own(args):\n    args.folder = f'{args.folder}_{args.rank}'\n"}),
     (SPACE, {"more.py": "def own(args):\n    args.folder = tempfile.mkdtemp()\n"})],
)  # fmt: skip
def test_a_path_that_the_rank_is_put_into(source: str, files: dict[str, str]) -> None:
    check_nothing(UnguardedSave, source, files=files)


def test_a_model_of_that_name_on_one_device_is_no_path() -> None:
    source = SPACE.replace("args.folder + ", "args.model + ").replace("parse(local_rank=0)", "parse()")
    wrapped = "            self.model = DistributedDataParallel(model, device_ids=[self.local_rank])\n"
    assert findings_of(UnguardedSave, source + f"class Loop:\n        def __init__(self, model):\n{wrapped}")


def test_a_helper_that_is_called_on_the_first_gpu_alone() -> None:
    source = (
        "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
        "class Runner:\n    def __init__(self, model, device):\n        dist.init_process_group('nccl')\n"
        "        self.device = device\n        self.model = DDP(model, device_ids=[device])\n\n    def train(self):\n"
        "        for epoch in range(3):\n            self.step()\n            if TEST:\n                self.keep(epoch)\n\n"
        "    def keep(self, epoch):\n        torch.save(self.model.module.state_dict(), 'last.pt')\n"
    )
    assert findings_of(UnguardedSave, source.replace("TEST", "epoch > 1"))
    assert findings_of(UnguardedSave, source.replace("TEST", "self.device >= 0"))
    check_nothing(UnguardedSave, source.replace("TEST", "self.device == 0"))
    check_nothing(UnguardedSave, source.replace("TEST", "epoch").replace("'last.pt'", "f'last_{self.device}.pt'"))


def test_an_import_that_was_left_behind_shows_no_ranks() -> None:
    """The twin of a distributed script, for one GPU: what joined the others is a comment now."""
    head = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
    twin = head + "# dist.init_process_group('nccl')\nnet = build()  # DDP(build())\ntorch.save(net.state_dict(), 'last.pt')\n"
    check_nothing(UnguardedSave, twin)
    assert findings_of(UnguardedSave, twin.replace("# dist.init", "dist.init"))
    other = "import torch\nimport deepspeed\n\nMADE\nnet = build()\ntorch.save(net.state_dict(), 'last.pt')\n"
    check_nothing(UnguardedSave, other.replace("MADE", ""))
    assert findings_of(UnguardedSave, other.replace("MADE", "deepspeed.init_distributed()"))


@pytest.mark.parametrize("line", ["n = torch.cuda.device_count()\n    assert n == 1", "assert torch.cuda.device_count() == 1"])
def test_a_program_that_asserts_one_gpu(line: str) -> None:
    head = "import torch\nfrom accelerate import Accelerator\n\n\ndef main(model, rows):\n    accelerator = Accelerator()\n"
    body = "    accelerator.prepare(model)\n    {}\n    for row in rows:\n        use(row)\n    torch.save(rows, 'rows.pt')\n"
    program = head + body + "\n\nmain(build(), load())\n"
    assert findings_of(UnguardedSave, program.format("use(1)"))
    check_nothing(UnguardedSave, program.format(line))


EPOCHS = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def store(model, epoch, folder):
    torch.save(model.state_dict(), os.path.join(folder, f'{epoch}.pt'))


def main(rank, model, loader, folder):
    dist.init_process_group('gloo')
    first = resumed(DDP(model, device_ids=[rank]))
    store(model, -1, folder)
    for epoch in range(first, 10):
        score = sum(model(batch).item() for batch in loader)
        if rank == 0:
            store(model, epoch, f'{folder}/{score:.2f}')
"""


def test_one_call_without_a_test_beside_others_that_have_one() -> None:
    """What the guarded call hands over, the epoch and a score of its own, is no matter of the other one."""
    after = EPOCHS.replace("    store(model, -1, folder)", "    if rank == 0:\n        store(model, -1, folder)")
    check_transformed(UnguardedSave, EPOCHS, after, unsafe=True)
    check_nothing(UnguardedSave, EPOCHS.replace("-1, folder)", "-1, f'{folder}/{rank}')"))


HOROVOD = "import torch\nimport horovod.torch as hvd\n\nhvd.init()\n\n"


def test_a_program_of_horovod_asks_horovod() -> None:
    block = "if __name__ == '__main__':\n    model = train(hvd.local_rank())\n"
    before = f"{HOROVOD}{block}    torch.save(model.state_dict(), 'last.pt')\n"
    after = f"{HOROVOD}{block}    if hvd.rank() == 0:\n        torch.save(model.state_dict(), 'last.pt')\n"
    check_transformed(UnguardedSave, before, after)


def test_the_accelerator_that_the_class_asks_elsewhere() -> None:
    head = """import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, model, accelerator):
        self.accelerator = accelerator
        self.model = accelerator.prepare(model)

    def note(self):
        if self.accelerator.is_main_process:
            print('here')

    def keep(self):
        dist.barrier()
"""
    tail = "\n\ndef main(model, accelerator):\n    dist.init_process_group('gloo')\n    Trainer(model, accelerator).keep()\n"
    save = "torch.save(self.model.state_dict(), 'last.pt')\n"
    after = f"{head}        if self.accelerator.is_main_process:\n            {save}{tail}"
    check_transformed(UnguardedSave, f"{head}        {save}{tail}", after, unsafe=True)


def test_the_others_wait_for_what_they_copy() -> None:
    above = (
        "def keep(state, best, folder):\n    torch.save(state, folder + '/last.pt')\n    if best:\n"
        "        os.system('date')\n        shutil.copyfile(folder + '/last.pt', folder + '/best.pt')\n\n"
    )
    source = f"import shutil\n{main('keep(model.state_dict(), True, args.out)', above=above)}"
    found = next(f for f in findings_of(UnguardedSave, source) if f.edits)
    assert any("barrier" in str(e) for e in found.edits)


RECIPE = (
    "class Recipe:\n    def __init__(self, args):\n        self.args = args\n\n"
    "    def save(self, model, trainer):\n        {save}\n"
)
MAIN = (
    "from transformers import Trainer, TrainingArguments\nfrom factory import recipe_of\n\n\ndef train(args, model, data):\n"
    "    recipe = recipe_of(args.kind)(args)\n    trainer = Trainer(model=model, args=args, train_dataset=data)\n"
    "    trainer.train()\n    {call}\n\n\nif __name__ == '__main__':\n    train(*parsed())\n"
)
KEPT = "model.tokenizer.save_pretrained(self.args.output_dir)"
JOB = {
    "run.sh": "torchrun --nproc_per_node=2 main.py\n",
    "factory.py": "from module import Recipe\n\nKINDS = {'full': Recipe}\n\n\ndef recipe_of(kind):\n    return KINDS[kind]\n",
}


def test_a_recipe_that_is_handed_the_trainer() -> None:
    files = {"main.py": MAIN.format(call="recipe.save(model, trainer)"), **JOB}
    (found,) = findings_of(UnguardedSave, RECIPE.format(save=KEPT), files)
    assert "every rank comes here" in found.message
    assert any("is handed the Trainer" in e.text for e in found.evidence)


@pytest.mark.parametrize(
    "call",
    [
        "recipe.load(model, trainer)",
        "recipe.save(model, trainer) if trainer.is_world_process_zero() else None",
        "if args.local_rank == 0:\n        recipe.save(model, trainer)",
    ],
)
def test_a_recipe_that_nobody_hands_the_trainer_on_every_rank(call: str) -> None:
    check_nothing(UnguardedSave, RECIPE.format(save=KEPT), files={"main.py": MAIN.format(call=call), **JOB})


def test_a_recipe_that_saves_on_rank_0() -> None:
    save = "if trainer.is_world_process_zero():\n            model.save_pretrained(self.args.output_dir)"
    files = {"main.py": MAIN.format(call="recipe.save(model, trainer)"), **JOB}
    check_nothing(UnguardedSave, RECIPE.format(save=save), files=files)


QUIET = """
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class World:
    def __init__(self):
        self.rank = int(os.environ.get("RANK", 0))

    @property
    def muted(self):
        return self.rank ASKED 0


class Runner:
    def __init__(self, world):
        self.world = world

    @property
    def _writes(self):
        return not self.world.muted

    def keep(self, state):
        if not self._writes:
            return
        torch.save(state, "last.pt")


def main(net):
    dist.init_process_group("gloo")
    model = DDP(net)
    Runner(World()).keep(net.state_dict())
"""


def test_a_property_that_turns_another_round() -> None:
    check_nothing(UnguardedSave, QUIET.replace("ASKED", "!="))


def test_a_property_that_asks_something_else() -> None:
    source = QUIET.replace("self.rank ASKED 0", "self.level < 1").replace("self.rank = int", "self.level = 1; self.rank = int")
    assert findings_of(UnguardedSave, source)


BASE = """
import os

import torch
import torch.distributed as dist


class Context:
    def __init__(self):
        self.rank = int(os.environ.get("RANK", 0))
        self.primary = self.rank == 0


class Loop:
    def __init__(self, ctx, net):
        self.ctx, self.net = ctx, net

    def ended(self, epoch):
        pass

    def run(self, epochs):
        dist.init_process_group("gloo")
        for epoch in range(epochs):
            dist.barrier()
            CALL
"""
HEIR = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from base import Context, Loop


class Middle(Loop):
    def build(self):
        self.model = DDP(self.net)


class Keeping(Middle):
    def ended(self, epoch):
        torch.save(self.net.state_dict(), "last.pt")


if __name__ == "__main__":
    Keeping(Context(), torch.nn.Linear(2, 2)).run(4)
"""
GUARDED = "if self.ctx.primary:\n                self.ended(epoch)"


def test_a_hook_that_the_base_class_calls_on_rank_zero() -> None:
    check_nothing(UnguardedSave, HEIR, files={"base.py": BASE.replace("CALL", GUARDED)})


def test_a_hook_that_the_base_class_calls_on_every_rank() -> None:
    assert findings_of(UnguardedSave, HEIR, {"base.py": BASE.replace("CALL", "self.ended(epoch)")})


# What others do with the file: its path is given to them, or each rank adds its part to what is stored

GIVES = "def keep(state, path):\n    torch.save(state, path)\n    return path\n\n"
BARRIER = "    if dist.is_initialized():\n        dist.barrier()\n"


@pytest.mark.parametrize(
    "behind",
    [
        ("path = keep(model.module.state_dict(), args.out)", "args.library.build(path)"),
        ("args.weights = keep(model.module.state_dict(), args.out)",),
        ("args.library.build(keep(model.module.state_dict(), args.out))",),
    ],
)
def test_a_path_that_the_caller_goes_on_with_gets_a_barrier(behind: tuple[str, ...]) -> None:
    guarded = GIVES.replace("    torch.save", f"    {WRITTEN_OUT}\n        torch.save")
    after = guarded.replace("    return", f"{BARRIER}    return")
    check_transformed(UnguardedSave, main(*behind, above=GIVES), main(*behind, above=after), unsafe=True)


@pytest.mark.parametrize(
    "behind",
    [
        ("keep(model.module.state_dict(), args.out)",),
        ("path = keep(model.module.state_dict(), args.out)", "print(path)"),
        ("path = keep(model.module.state_dict(), args.out)", "dist.barrier()", "args.library.build(path)"),
    ],
)
def test_a_path_that_is_only_shown_or_waited_for_gets_none(behind: tuple[str, ...]) -> None:
    (found,) = findings_of(UnguardedSave, main(*behind, above=GIVES))
    assert [type(e).__name__ for e in found.edits] == ["WrapInGuard"]


def test_a_path_left_with_what_was_handed_over_gets_a_barrier() -> None:
    lines = ("torch.save(model.module.state_dict(), 'last.pt')", "args.weights = 'last.pt'")
    (found,) = findings_of(UnguardedSave, main(*lines))
    assert [type(e).__name__ for e in found.edits] == ["WrapInGuard", "InsertAfter"]


ADDS = (
    "import h5py\n\ndef add(path, rows, mode='MODE'):\n    with h5py.File(path, mode) as f:\n"
    "        f['rows'] = rows\n    return path\n\n"
)
READS_BACK = ("path = add('rows.h5', args.rows)", "with h5py.File(path, 'r') as f:", "    rows = f['rows'][:]")
STORES = ("rows = torch.from_numpy(rows)", "torch.save({'state_dict': rows}, 'rows.pt')")


def test_what_all_ranks_add_to_is_waited_for_before_it_is_stored() -> None:
    check_told(UnguardedSave, main(*READS_BACK, *STORES, above=ADDS.replace("MODE", "a")), reason="adds its part in line 16")


@pytest.mark.parametrize(
    ("mode", "between"), [("r", ()), ("a", ("dist.barrier()",))], ids=["nobody adds to it", "the ranks wait for each other"]
)
def test_what_is_complete_when_it_is_read_is_stored_by_rank_zero(mode: str, between: tuple[str, ...]) -> None:
    source = main(READS_BACK[0], *between, *READS_BACK[1:], *STORES, above=ADDS.replace("MODE", mode))
    (found,) = findings_of(UnguardedSave, source)
    assert found.edits


def test_a_way_through_a_method_that_nobody_calls() -> None:
    shown = "from keeping import keep\n\n\nclass Shown:\n    def __init__(self, state):\n        keep(state, 'runs')\n"
    files = {"shown.py": shown}
    program = (
        f"{HEAD}from shown import Shown\n\n\nclass Runs:\n    def __init__(self, model):\n"
        "        dist.init_process_group('gloo')\n        self.model = DDP(model)\n\n"
        "    def fit(self):\n        self.model(1).backward()\n        END\n\n"
        "    def show(self):\n        Shown(self.model.state_dict())\n\n\nif __name__ == '__main__':\n"
        "    Runs(torch.nn.Linear(1, 1)).fit()\n"
    )
    alone = f"{BARE}{HELPER}\n\nif __name__ == '__main__':\n    keep({{}}, 'runs')\n"
    check_nothing(UnguardedSave, alone, files={**files, "train.py": program.replace("END", "pass")}, path="keeping.py")
    assert findings_of(UnguardedSave, alone, {**files, "train.py": program.replace("END", "self.show()")}, path="keeping.py")


LOOSE = ("rank = dist.get_rank()", "best = None", "for loss in args.losses:", "    if {}:", "        best = 1", f"        {SAVE}")


def loose(test: str) -> str:
    return main(*(line.format(test) if "{}" in line else line for line in LOOSE))


@pytest.mark.parametrize(
    ("test", "meant"),
    [
        ("not best or loss < best and rank == 0", "(not best or loss < best) and rank == 0"),
        ("best is None or rank <= 0 and loss < best", "(best is None or loss < best) and rank <= 0"),
        ("not best or loss < best and args.keep and not rank", "(not best or loss < best and args.keep) and not rank"),
        ("(rank == 0 and loss < best or best is None)", "(loss < best or best is None) and rank == 0"),
    ],
)
def test_an_or_lets_every_rank_past_the_test_of_the_rank(test: str, meant: str) -> None:
    found = check_told(UnguardedSave, loose(test), reason=f"write the test as `{meant}`")
    assert "every rank comes here and writes `'last.pt'`" in found.message


@pytest.mark.parametrize(
    "test",
    [
        "not best or (loss < best and rank == 0)",
        "(not best or loss < best) and rank == 0",
        "not dist.is_initialized() or loss < best and rank == 0",
        "rank is None or loss < best and rank == 0",
        "rank == 1 or loss < best and rank == 0",
        "args.main_process or loss < best and rank == 0",
    ],
)
def test_tests_with_an_or_that_are_meant_so(test: str) -> None:
    check_nothing(UnguardedSave, loose(test))


def test_an_or_above_a_path_of_each_rank_and_below_a_test_of_the_rank() -> None:
    text = loose("not best or loss < best and rank == 0")
    check_nothing(UnguardedSave, text.replace("'last.pt'", "f'last-{rank}.pt'"))
    check_nothing(UnguardedSave, text.replace("    for loss", "    if rank != 0:\n        return\n    for loss"))
    check_nothing(UnguardedSave, text.replace("        torch.save", "        if rank == 0:\n                torch.save"))


LOOP_IN_A_PROFILER = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(args, net, loader):
    dist.init_process_group("nccl")
    model = DDP(net)
    with torch.profiler.profile() as prof:
        for epoch in range(3):
            for x in loader:
                model(x).mean().backward()
            if epoch > 1:
                {save}
                epoch_of_best = epoch
            prof.step()
"""


def test_a_save_alone_in_a_loop_below_a_with_is_guarded_alone() -> None:
    before = LOOP_IN_A_PROFILER.format(save="torch.save(net.state_dict(), args.out)")
    (found,) = findings_of(UnguardedSave, before)
    (guard,) = (e for e in found.edits if isinstance(e, WrapInGuard))
    assert before.splitlines()[guard.span.line - 1].strip() == "torch.save(net.state_dict(), args.out)"
    assert guard.last == guard.span


# A Trainer of the project's own

OWN_TRAINER = "from transformers import Seq2SeqTrainer\n\nclass DraftTrainer(Seq2SeqTrainer):\n    pass\n"
MADE = "trainer = DraftTrainer(model=model, args=args)"


def saving(*lines: str, base: str = OWN_TRAINER, given: str = "model, args", head: str = "") -> dict[str, str]:
    body = "".join(f"    {line}\n" for line in lines)
    program = f"{head}from own import DraftTrainer\n\ndef main({given}):\n{body}"
    return {"own.py": base, "train.py": f"{program}\nif __name__ == '__main__':\n    main(make(), parse())\n"}


@pytest.mark.parametrize(
    "lines",
    [
        (MADE, "trainer.train()", "model.save_pretrained('final')"),
        (MADE, "freeze(model)", "trainer.train(resume_from_checkpoint=args.resume)", "args.tokenizer.save_pretrained('final')"),
        ("trainer = DraftTrainer(**collected(model, args))", "trainer.train()", "model.save_pretrained('final')"),
        ("trainer = DraftTrainer(model, args)", "trainer.train()", "torch.save(model.state_dict(), 'final.pt')"),
    ],
)
def test_behind_a_trainer_that_the_project_derives(lines: tuple[str, ...]) -> None:
    """The file of the program names no framework: the class it imports is derived from one in a file of its own."""
    after = (*lines[:-1], "if trainer.is_world_process_zero():", f"    {lines[-1]}")
    before, guarded = (saving(*x, head="import torch\n") for x in (lines, after))
    check_transformed(UnguardedSave, before.pop("train.py"), guarded["train.py"], path="train.py", files=before, unsafe=True)


@pytest.mark.parametrize(
    "files",
    [
        saving(MADE, "trainer.train()", "model.save_pretrained('final')", base="class DraftTrainer:\n    pass\n"),
        saving(MADE, "trainer.train()", "if trainer.is_world_process_zero():", "    model.save_pretrained('final')"),
        saving(MADE, "trainer.train()", "trainer.save_model('final')"),
        saving(MADE, "model.save_pretrained('final')"),  # it trains nothing: a tool that converts
        saving("trainer = DraftTrainer(model)", "trainer.train()", "model.save_pretrained('final')"),
    ],
)
def test_what_only_looks_like_such_a_trainer(files: dict[str, str]) -> None:
    others = {name: text for name, text in files.items() if name != "train.py"}
    check_nothing(UnguardedSave, files["train.py"], path="train.py", files=others)


# Files that are there before the other processes start

ROWS = """import os

import torch


class Rows:
    def __init__(self, path, raw):
        if TEST:
            self.rows = torch.load(path)
        else:
            self.rows = self.make(raw, path)

    def make(self, raw, path):
        rows = [r * 2 for r in raw]
        torch.save(rows, path)
        return rows
"""
FIT = """import lightning as L
from rows import Rows


def main(args, model):
    data = Rows(args.path, [1, 2])
    trainer = L.Trainer(devices=2, strategy="ddp")
    trainer.fit(model, data)


if __name__ == "__main__":
    main(options(), build())
"""


def fit_of(test: str, script: str = FIT) -> dict[str, str]:
    return {"train.py": script, "rows.py": ROWS.replace("TEST", test)}


def test_a_file_that_the_script_makes_above_fit_where_it_is_missing() -> None:
    files = fit_of("os.path.exists(path)")
    check_nothing(UnguardedSave, files.pop("rows.py"), files=files, path="rows.py")


@pytest.mark.parametrize(
    ("test", "script"),
    [
        ("raw is None", FIT),  # each process makes it anew
        ("os.path.exists(raw[0])", FIT),  # another file
        ("os.path.exists(path)", FIT.replace("import lightning", "import torch.distributed as dist\nimport lightning").replace(
            "    data =", "    dist.init_process_group()\n    data =")),  # a launcher started all of them
    ],
)  # fmt: skip
def test_files_that_several_processes_make(test: str, script: str) -> None:
    files = fit_of(test, script)
    assert findings_of(UnguardedSave, files.pop("rows.py"), files=files, path="rows.py")


# A data module whose setup ends on the ranks that have prepared nothing

PREPARED = """import torch
import lightning as L


class Data(L.LightningDataModule):
    def __init__(self, root):
        super().__init__()
        self.root, self.folder = root, None

    def prepare_data(self):
        self.folder = self.root / "rows"

    def setup(self, stage):
        ASKED
        self.rows = self.load("train")

    def load(self, part):
        rows = torch.load(self.root / part)
        torch.save(rows, "rows.pt")
        return rows


def main(model, root):
    L.Trainer(devices=2, strategy="ddp").fit(model, Data(root))


if __name__ == "__main__":
    main(build(), find())
"""
RAISES = "if self.folder is None:\n            raise RuntimeError('not prepared')"


@pytest.mark.parametrize("asked", [RAISES, RAISES.replace("self.folder is None", "not self.folder")])
def test_a_setup_that_ends_where_nothing_was_prepared(asked: str) -> None:
    check_nothing(UnguardedSave, PREPARED.replace("ASKED", asked))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ASKED", "print(self.folder)"),
        ("ASKED", RAISES.replace("self.folder is", "self.root is")),  # every rank has it
        ("ASKED", f"self.folder = self.root\n        {RAISES}"),
        ("ASKED", RAISES.replace("raise RuntimeError('not prepared')", "print('not prepared')")),
    ],
)
def test_a_setup_that_every_rank_gets_through(old: str, new: str) -> None:
    assert findings_of(UnguardedSave, PREPARED.replace(old, new).replace("ASKED", RAISES))


def test_a_module_that_every_rank_prepares() -> None:
    source = PREPARED.replace("ASKED", RAISES)
    check_nothing(UnguardedSave, source)
    prepared = "data = Data(root)\n    data.prepare_data()\n    L.Trainer"
    assert findings_of(UnguardedSave, source.replace("    L.Trainer", f"    {prepared}").replace("Data(root))", "data)"))


LONE = """import os

import torch
from torch import nn
from transformers import AutoModel


def train(model, rows):
    for row in rows:
        model(row).sum().backward()
    torch.save(model.state_dict(), "last.pt")


if __name__ == "__main__":
    {}
    train(AutoModel.from_pretrained("bert").to("cuda:" + os.environ["LOCAL_RANK"]), [])
"""


def test_a_program_that_starts_no_group_asks_the_launcher() -> None:
    """`not torch.distributed.is_initialized()` would be true on every rank for good."""
    call = '    torch.save(model.state_dict(), "last.pt")'
    guarded = f'    if int(os.environ.get("RANK", 0)) == 0:\n    {call}'
    before = LONE.format("pass")
    check_transformed(UnguardedSave, before, before.replace(call, guarded), unsafe=True)


def test_a_program_whose_group_starts_elsewhere_asks_the_group() -> None:
    before = LONE.format("helpers.init_distributed()").replace("import os\n", "import os\nimport helpers\n")
    edits = [e for f in findings_of(UnguardedSave, before) if f.fix for e in f.fix.edits if isinstance(e, WrapInGuard)]
    assert [e.test for e in edits] == ["not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0"]


def test_a_script_that_writes_its_local_rank_down() -> None:
    """Nothing of a launcher is asked: who sets the variable to a literal is one process."""
    check_nothing(
        UnguardedSave, LONE.format('os.environ["LOCAL_RANK"] = "2"').replace('"cuda:" + os.environ["LOCAL_RANK"]', '"cuda"')
    )


OF_TRANSFORMERS = """\
import os
import sys
from transformers import AutoTokenizer, Trainer, TrainingArguments


def main(name):
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.save_pretrained("words")
    settings = TrainingArguments(output_dir="out")
    Trainer(model=net(name), args=settings).train()


if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.mark.parametrize("command", ["torchrun --nproc_per_node 2", "deepspeed --num_gpus=2", "accelerate launch --multi_gpu"])
def test_above_the_training_arguments_by_the_variable_of_the_launcher(command: str) -> None:
    """They start the group, and a test that asks it would hold on every rank above them."""
    line = '    tokenizer.save_pretrained("words")\n'
    guarded = f'    if int(os.environ.get("RANK", 0)) == 0:\n    {line}'
    after = OF_TRANSFORMERS.replace(line, guarded)
    check_transformed(UnguardedSave, OF_TRANSFORMERS, after, files={"run.sh": f"{command} main.py gpt2\n"}, path="main.py")


@pytest.mark.parametrize("others", ["srun python main.py gpt2\n", "mpirun -np 2 python main.py gpt2\n"])
def test_no_variable_where_another_launcher_may_start_it(others: str) -> None:
    files = {"run.sh": "torchrun --nproc_per_node 2 main.py gpt2\n", "other.sh": others}
    source = OF_TRANSFORMERS.replace("import sys\n", "import sys\nimport torch\n")
    (found,) = findings_of(UnguardedSave, source, files, path="main.py")
    assert not found.edits
    assert "no process group yet" in found.reason


OF_A_HELPER = """\
import torch
import torch.distributed as dist


def keep():
    torch.save({"rounds": 3}, "last.pt")
    print(dist.is_available())
"""


START = "    dist.init_process_group('nccl')\n"
KEEPS = "    keep()\n"


@pytest.mark.parametrize(
    ("main", "other", "level"),
    [
        (START + KEEPS, "", "safe"),
        ("    net = DDP(net())\n" + KEEPS, "", "safe"),  # it raises without a group
        ("    if read().check:\n    " + START + "        return\n" + KEEPS, "", "unsafe"),
        ("    if read().check:\n    " + START + "    else:\n    " + KEEPS, "", "unsafe"),
        (START + KEEPS, "from engine import init_process\n", "unsafe"),
        (START + KEEPS, "import numpy\n", "safe"),  # a program that joins no other is one process, and writes as before
    ],
)
def test_a_group_on_every_way_to_the_place(main: str, other: str, level: str) -> None:
    head = "import torch.distributed as dist\nfrom keeping import keep\n"
    head += "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    end = "\n\nif __name__ == '__main__':\n    main()\n"
    files = {"main.py": f"{head}\n\ndef main():\n{main}{end}"}
    if other:
        files["other.py"] = f"from keeping import keep\n{other}\n\ndef main():\n{KEEPS}{end}"
    (found,) = findings_of(UnguardedSave, OF_A_HELPER, files, path="keeping.py")
    assert (found.applicability.value, bool(found.edits)) == (level, True), found.reason
    assert ("has been started by then" in found.reason) == (level == "unsafe")


@pytest.mark.parametrize(("text", "level"), [("torchrun --nproc_per_node=2 main.py\n", "safe"), ("", "unsafe")])
def test_a_group_of_a_program_that_runs_as_one_process_too(text: str, level: str) -> None:
    head = "import torch.distributed as dist\nfrom keeping import keep\n"
    main = f"{head}\n\ndef main():\n    if read().distributed:\n    {START}{KEEPS}\n\nif __name__ == '__main__':\n    main()\n"
    (found,) = findings_of(UnguardedSave, OF_A_HELPER, {"main.py": main, "run.sh": text}, path="keeping.py")
    assert (found.applicability.value, bool(found.edits)) == (level, True), found.reason
    assert ("no text names a launcher" in found.reason) is (not text)


DEALT = {"data.py": "from torch.utils.data import DistributedSampler\n\n\ndef deal(data):\n    return DistributedSampler(data)\n"}


@pytest.mark.parametrize(
    ("named", "kept"),
    [("sid", False), ("image_id", False), ("epoch", True), ("run_id", True)],
)
def test_a_file_named_after_one_sample(named: str, kept: bool) -> None:
    """A sampler deals the samples out: no other rank writes the file of this one."""
    above = f"def keep(state, folder, {named}):\n    path = os.path.join(folder, f'{{{named}}}.pt')\n"
    above += "    torch.save(state, path)\n\n"
    source = main(f"keep(model, args.folder, args.{named})", above=above)
    assert bool(findings_of(UnguardedSave, source, DEALT)) is kept
    assert findings_of(UnguardedSave, source)  # nobody deals them out


def test_a_folder_named_by_the_microsecond_is_each_process_s_own() -> None:
    above = "import datetime\n\n"
    lines = (
        "stamp = '{0:%Y-%m-%d-%H-%M-%S-%f}'.format(datetime.datetime.now())", "args.out = f'logs/{stamp}/'", "out = args.out",
        "torch.save(model.module.state_dict(), out + 'last.pt')",
    )  # fmt: skip
    check_nothing(UnguardedSave, main(*lines, above=above))
    assert findings_of(UnguardedSave, main(*(line.replace("-%S-%f", "") for line in lines), above=above))


AGENTS = (
    BARE + "class Agent:\n    def __init__(self, config, name):\n        self.folder = os.path.join('runs', name)\n\n"
    "    def save(self):\n        torch.save(self.net.state_dict(), os.path.join(self.folder, 'last.pt'))\n\n\n"
)
AGENT_HEIR = "from agents import Agent\n\n\nclass Writer(Agent):\n    def __init__(self, config, name):\n"
AGENT_HEIR += "        super().__init__(config, name)\n"
TABLE = "from heirs import Writer\n\nKINDS = {'write': Writer}\n"


@pytest.mark.parametrize("make", ["KINDS[args.kind](None, name)", "KINDS.get(args.kind)(None, name=name)"])
def test_a_name_of_the_process_that_comes_through_a_table_of_classes(make: str) -> None:
    files = {"heirs.py": AGENT_HEIR, "tables.py": TABLE}
    start = HEAD.replace("import os\n", "import os\nimport uuid\nfrom tables import KINDS\n")
    for name, silent in (("str(uuid.uuid4())[:4]", True), ("args.name", False)):
        lines = (f"name = {name}", f"agent = {make}", "agent.save()")
        source = start + "def main(args, net):\n    dist.init_process_group('gloo')\n    model = DDP(net)\n"
        source += "".join(f"    {line}\n" for line in lines)
        found = findings_of(UnguardedSave, AGENTS, {**files, "train.py": source}, path="agents.py")
        assert bool(found) is not silent, (name, found)


GIVEN = (
    "class Saver:\n    def __init__(self, folder, writes={default}):\n        self.folder = folder\n"
    "        self.writes = writes\n\n"
    "    def save(self, model):\n        if not self.writes():\n            return\n"
    "        torch.save(model.module.state_dict(), os.path.join(self.folder, 'last.pt'))\n\n"
)


@pytest.mark.parametrize(("default", "silent"), [
    ("lambda: int(os.environ['LOCAL_RANK']) == 0", True), ("at_first", True), ("lambda: True", False), ("always", False),
])  # fmt: skip
def test_a_function_that_the_object_is_given_may_ask_for_the_rank(default: str, silent: bool) -> None:
    above = "def at_first():\n    return dist.get_rank() == 0\n\ndef always():\n    return True\n\n"
    above += GIVEN.format(default=default)
    found = findings_of(UnguardedSave, main("saver = Saver('runs')", "saver.save(model)", above=above))
    assert bool(found) is not silent


BEST = """
import os

import torch
import torch.distributed as dist


def train(net, loader, folder):
    dist.init_process_group("nccl")
    best = 9.0
    for batch in loader:
        loss = net(batch).mean()
        loss.backward()
        if loss.item() < best:
            best = loss.item()
            NAME
            torch.save(net.state_dict(), os.path.join(folder, name))
    if dist.get_rank() == 0:
        print(best)


if __name__ == "__main__":
    train(make(), loader_of(), "out")
"""


def test_a_text_that_its_own_loss_lets_a_rank_name_is_the_same_text_on_all() -> None:
    assert findings_of(UnguardedSave, BEST.replace("NAME", 'name = "best.pt"'))
    check_nothing(UnguardedSave, BEST.replace("NAME", 'name = f"{loss.item()}.pt"'))
    two = BEST.replace("NAME", 'name = "good.pt"\n            if loss.item() < 1:\n                name = "best.pt"')
    check_nothing(UnguardedSave, two)


LOADERS = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def train(net, epochs, test_loader=None):
    for epoch in range(epochs):
        step(net)
        if test_loader is not None:
            evaluate(net, test_loader)
        else:
            torch.save(net.state_dict(), "last.pt")


def main(net, args):
    dist.init_process_group("nccl")
    {call}


if __name__ == "__main__":
    main(*read())
"""


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("train(net, 3, DataLoader(args.rows))", 0),
        ("test_loader = DataLoader(args.rows)\n    train(net, 3, test_loader=test_loader)", 0),
        ("train(net, 3)", 1),
        ("train(net, 3, args.loader)", 1),
        ("train(net, 3, DataLoader(args.rows))\n    train(net, 3)", 1),
    ],
)
def test_an_arm_for_a_parameter_that_each_call_gives(call: str, number: int) -> None:
    assert len(findings_of(UnguardedSave, LOADERS.format(call=call))) == number


@pytest.mark.parametrize("path", ['f"loss-{index}.pt"', '"loss-" + str(index)', "own"])
def test_a_file_named_by_the_number_that_spawn_hands_out(path: str) -> None:
    """Rank 0 alone wrote `loss-0.pt` under a guard, and the parent did not find the others: seen on two processes."""
    work = (
        "import torch\nimport torch.distributed as dist\n\n\ndef work(index, folder):\n"
        "    dist.init_process_group('gloo', rank=index, world_size=2)\n    own = f'loss-of-{index}.pt'\n"
        "    torch.save(torch.ones(1), WHERE)\n    dist.barrier()\n"
    )
    main = "import torch.multiprocessing as mp\nfrom module import work\n\nif __name__ == '__main__':\n"
    files = {"main.py": f"{main}    mp.spawn(work, args=('out',), nprocs=2)\n"}
    assert not findings_of(UnguardedSave, work.replace("WHERE", path), files)
    assert findings_of(UnguardedSave, work.replace("WHERE", "'loss.pt'"), files)
