from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
NETS = {"nets.py": "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n"}
PREDICT = {
    "predict.py": "import torch\nfrom nets import Net\n\n\ndef predict(path):\n    net = Net()\n"
    "    net.load_state_dict(torch.load(path)['model'])\n    return net\n"
}


def train(save: str, *, load: str = "net.load_state_dict(torch.load(path))", wrap: str = "model = DDP(net)") -> str:
    return f"{HEAD}def train(net, path, resume, args):\n    if resume:\n        {load}\n    {wrap}\n    {save}\n"


def known(save: str, *, wrap: str = "model = DDP(net)") -> str:
    head = HEAD.replace("\n\n", "\nfrom nets import Net\n\n")
    return f"{head}def train(path, args):\n    net = Net()\n    {wrap}\n    {save}\n"


def test_example_of_the_page() -> None:
    sections = WrappedStateDict.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(WrappedStateDict, before, after, unsafe=True)


def test_a_resume_under_the_same_key() -> None:
    source = train(
        "torch.save({'model': model.state_dict(), 'epoch': 1}, path)", load="net.load_state_dict(torch.load(path)['model'])"
    )
    check_transformed(WrappedStateDict, source, source.replace("model.state_dict()", "model.module.state_dict()"), unsafe=True)
    named = source.replace("torch.save({'model'", "state = {'model'").replace("1}, path)", "1}\n    torch.save(state, path)")
    check_transformed(WrappedStateDict, named, named.replace("model.state_dict()", "model.module.state_dict()"), unsafe=True)


def test_another_program_that_loads_it() -> None:
    source = known("torch.save({'model': model.state_dict()}, path)")
    after = source.replace("model.state_dict()", "model.module.state_dict()")
    check_transformed(WrappedStateDict, source, after, files=NETS | PREDICT, unsafe=True)
    (found,) = findings_of(WrappedStateDict, source, files=NETS | PREDICT)
    assert "predict.py:7 raises an error for every key" in found.message


def test_a_load_that_is_not_strict() -> None:
    files = {"predict.py": PREDICT["predict.py"].replace("['model'])", "['model'], strict=False)")}
    (found,) = findings_of(WrappedStateDict, known("torch.save({'model': model.state_dict()}, path)"), files=NETS | files)
    assert "takes none of them with strict=False" in found.message


def test_a_model_that_is_wrapped_on_some_ways_only() -> None:
    source = train("torch.save(net.state_dict(), path)", wrap="if args.many:\n        net = DDP(net)")
    after = source.replace("save(net.state_dict()", 'save(getattr(net, "module", net).state_dict()')
    check_transformed(WrappedStateDict, source, after, unsafe=True)


def test_a_function_that_saves_what_it_is_handed() -> None:
    save = "\n\ndef save(model, path):\n    torch.save({'model': model.state_dict()}, path)\n"
    source = known("save(model, path)") + save
    after = source.replace("model.state_dict()", "model.module.state_dict()")
    check_transformed(WrappedStateDict, source, after, files=NETS | PREDICT, unsafe=True)
    check_nothing(WrappedStateDict, source.replace("save(model, path)\n", "save(model.module, path)\n", 1), files=NETS | PREDICT)


def test_the_wrapper_itself() -> None:
    source = train("torch.save(model, path)")
    check_transformed(WrappedStateDict, source, source.replace("save(model,", "save(model.module,"), unsafe=True)
    kept = train("torch.save({'net': model}, path)")
    check_transformed(WrappedStateDict, kept, kept.replace("'net': model", "'net': model.module"), unsafe=True)


def test_accelerate() -> None:
    source = """
        import torch
        from accelerate import Accelerator
        from nets import Net

        def train(path, loader):
            accelerator = Accelerator()
            net = Net()
            net, loader = accelerator.prepare(net, loader)
            accelerator.save({"model": net.state_dict()}, path)
        """
    after = source.replace("net.state_dict()", "accelerator.unwrap_model(net).state_dict()")
    check_transformed(WrappedStateDict, source, after, files=NETS | PREDICT, unsafe=True)
    sharded = {"a.yaml": "distributed_type: FSDP\n"}
    check_nothing(WrappedStateDict, source, files=NETS | PREDICT | sharded)


def test_a_copy_of_the_wrapper_is_told() -> None:
    source = known("average = deepcopy(model)").replace("import torch\n", "import torch\nfrom copy import deepcopy\n", 1)
    check_told(WrappedStateDict, source, files=NETS, reason="write `deepcopy(model.module)`")
    check_nothing(WrappedStateDict, source.replace("deepcopy(model)", "deepcopy(net)"), files=NETS)
    reads = "def show(best):\n    print(best.state_dict()['module.layer.weight'])\n"
    check_nothing(WrappedStateDict, source, files={**NETS, "show.py": reads})


def test_an_accelerator_out_of_reach() -> None:
    home = "\n\ndef save(model, path):\n    torch.save(model, path)\n"
    source = """import torch
from accelerate import Accelerator
from nets import Net


def train(path):
    here = Accelerator()
    net = here_accelerator.prepare(Net())
    save(net, path)
"""
    check_told(WrappedStateDict, source + home, files=NETS, reason="has to be handed on to here")


@pytest.mark.parametrize(
    "save",
    [
        "torch.save(model.module.state_dict(), path)",
        "torch.save(net.state_dict(), path)",
        "torch.save({'other': model.state_dict()}, path)",
        "torch.save(args, path)",
        "if not hasattr(model, 'module'):\n        torch.save(model.state_dict(), path)",
        "model = model.module\n    torch.save(model.state_dict(), path)",
        "logger.save(model)",
    ],
)
def test_saves_that_are_fine(save: str) -> None:
    check_nothing(WrappedStateDict, train(save))


@pytest.mark.parametrize(
    "load",
    [
        "pass",
        "net.load_state_dict(strip(torch.load(path)))",
        "state = {k.replace('module.', ''): v for k, v in torch.load(path).items()}\n        net.load_state_dict(state)",
        "net.load_state_dict(torch.load(args.pretrained))",
        "net.load_state_dict(torch.load(path)['state'])",
        "other.load_state_dict(torch.load(path))",
    ],
)
def test_loads_that_fit_or_are_not_of_this_file(load: str) -> None:
    check_nothing(WrappedStateDict, train("torch.save(model.state_dict(), path)", load=load))


def test_a_load_into_the_wrapper() -> None:
    source = train("torch.save(model.state_dict(), path)", load="pass")
    check_nothing(WrappedStateDict, source + "    model.load_state_dict(torch.load(path))\n")


def test_the_tests_of_a_repository() -> None:
    check_nothing(WrappedStateDict, train("torch.save(model.state_dict(), path)"), path="tests/test_a.py")


@pytest.mark.parametrize("wrap", ["torch.nn.DataParallel(net).cuda()", "torch.nn.DataParallel(net.cuda()).eval()"])
def test_says_nothing_of_a_load_into_data_parallel(wrap: str) -> None:
    predict = PREDICT["predict.py"].replace("    net.load", f"    net = {wrap}\n    net.load")
    source = known("torch.save({'model': model.state_dict()}, path)")
    check_nothing(WrappedStateDict, source, files=NETS | {"predict.py": predict})


@pytest.mark.parametrize(
    "resume",
    [
        "state = torch.load(path)\n    model.load_state_dict(state['model'])",
        "old = torch.load(path)['model']\n    net.load_state_dict({k[7:]: v for k, v in old.items()})",
    ],
)
def test_tells_where_another_place_reads_the_keys_as_they_are(resume: str) -> None:
    files = {"resume.py": f"{HEAD}from nets import Net\n\n\ndef resume(path):\n    model = DDP(Net())\n    {resume}\n"}
    check_told(
        WrappedStateDict, known("torch.save({'model': model.state_dict()}, path)"), files=NETS | PREDICT | files,
        reason="change both at once",
    )  # fmt: skip


def test_a_reader_that_takes_the_prefix_off_if_it_is_there_stays_content() -> None:
    show = (
        "import torch\n\n\ndef show(path, net):\n    state = torch.load(path)['model']\n"
        "    net.load_state_dict({k.removeprefix('module.'): v for k, v in state.items()})\n"
    )
    source = known("torch.save({'model': model.state_dict()}, path)")
    after = source.replace("model.state_dict()", "model.module.state_dict()")
    check_transformed(WrappedStateDict, source, after, files=NETS | PREDICT | {"show.py": show}, unsafe=True)


# The other way round


INSIDE = "torch.save({'model': model.module.state_dict()}, path)"


def resumed(save: str = INSIDE, load: str = "model.load_state_dict(state['model'])") -> str:
    return (
        f"{HEAD}def train(net, path, resume):\n    model = DDP(net)\n    if resume:\n        state = torch.load(path)\n"
        f"        {load}\n"
        f"    model(net.rows).mean().backward()\n    {save}\n"
    )


def test_a_wrapper_that_is_given_the_state_of_the_model_inside() -> None:
    after = resumed(load="model.module.load_state_dict(state['model'])")
    (found,) = check_transformed(WrappedStateDict, resumed(), after, unsafe=True)
    assert "the load raises an error for every key" in found.message
    named = "inside = model.module.state_dict()\n    torch.save({'model': inside}, path)"
    check_transformed(WrappedStateDict, resumed(named), after.replace(resumed().splitlines()[-1], "    " + named), unsafe=True)


@pytest.mark.parametrize(
    "inside",
    [
        "model.module if hasattr(model, 'module') else model",
        "getattr(model, 'module', model)",
        "unwrap_model(model)",
        "model.module",
    ],
)
def test_the_model_inside_under_a_name(inside: str) -> None:
    save = f"bare = {inside}\n    torch.save({{'model': bare.state_dict()}}, path)"
    after = resumed(save, load="model.module.load_state_dict(state['model'])")
    check_transformed(WrappedStateDict, resumed(save), after, unsafe=True)


def test_a_wrap_under_a_test() -> None:
    save = "bare = model\n    if args.ddp:\n        bare = model.module\n    torch.save({'model': bare.state_dict()}, path)"
    (found,) = findings_of(WrappedStateDict, resumed(save))
    assert found.applicability.value == "unsafe"
    kept = (
        f"{HEAD}class Loop:\n    def __init__(self, net, args):\n        self.model = net\n        if args.distributed:\n"
        "            self.model = DDP(net)\n\n    def save(self, path):\n"
        "        inside = self.model.module if hasattr(self.model, 'module') else self.model\n"
        "        torch.save({{'model': inside.state_dict()}}, path)\n\n    def resume(self, path):\n"
        "        state = torch.load(path)\n        {}.load_state_dict(state['model'])\n"
    )
    after = kept.format('getattr(self.model, "module", self.model)')
    (found,) = check_transformed(WrappedStateDict, kept.format("self.model"), after, unsafe=True)
    assert "where several processes run" in found.message


def test_what_accelerate_takes_out() -> None:
    source = (
        "import torch\nfrom accelerate import Accelerator\n\n\ndef train(rows, path, resume):\n    accelerator = Accelerator()\n"
        "    model = accelerator.prepare(torch.nn.Linear(4, 4))\n    if resume:\n        {}.load_state_dict(torch.load(path))\n"
        "    model(rows).mean().backward()\n    torch.save(accelerator.get_state_dict(model), path)\n"
    )
    after = source.format("accelerator.unwrap_model(model)")
    check_transformed(WrappedStateDict, source.format("model"), after, unsafe=True)


@pytest.mark.parametrize(
    ("save", "load"),
    [
        ("bare = model.module if wide else net.half()\n    torch.save({'model': bare.state_dict()}, path)", "model"),
        ("bare = getattr(model, 'module', model)\n    torch.save({'model': bare.state_dict()}, path)", "bare(model)"),
        ("bare = getattr(model, 'net', model)\n    torch.save({'model': bare.state_dict()}, path)", "model"),
        ("bare = model\n    torch.save({'model': bare.state_dict()}, path)", "model"),
        ("torch.save({'model': get_state_dict(model)}, path)", "model"),
    ],
)
def test_names_that_may_hold_another_model(save: str, load: str) -> None:
    check_nothing(WrappedStateDict, resumed(save, f"{load}.load_state_dict(state['model'])"))


def test_a_file_that_another_program_writes_without_a_wrapper() -> None:
    alone = f"{HEAD}def train(net, path):\n    torch.save({{'model': net.state_dict()}}, path)\n"
    after = resumed(load="model.module.load_state_dict(state['model'])")
    check_transformed(WrappedStateDict, resumed(), after, files={"alone.py": alone}, unsafe=True)


@pytest.mark.parametrize(
    ("save", "load"),
    [
        ("torch.save({'weights': model.module.state_dict()}, path)", "model.load_state_dict(state['model'])"),
        (INSIDE, "model.load_state_dict(renamed(state['model']))"),
        (INSIDE, "model.module.load_state_dict(state['model'])"),
        ("torch.save({'model': state}, path)", "model.load_state_dict(state['model'])"),
        (INSIDE, "net.load_state_dict(state['model'])"),
    ],
)
def test_a_resume_that_fits_or_is_not_seen_to_fail(save: str, load: str) -> None:
    check_nothing(WrappedStateDict, resumed(save, load))


def test_a_file_that_a_wrapper_writes_elsewhere() -> None:
    other = f"{HEAD}def more(net, path):\n    model = DDP(net)\n    torch.save({{'model': model.state_dict()}}, path)\n"
    check_nothing(WrappedStateDict, resumed(), files={"other.py": other})


def test_told_where_the_same_program_loads_it_into_the_wrapper() -> None:
    files = {
        "nets.py": "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n",
        "export.py": (
            "import torch\nfrom nets import Net\n\n\ndef main(args):\n    model = Net()\n"
            "    model.load_state_dict(torch.load(args.a))\n"
        ),
    }
    source = (
        "import os\nimport torch\nfrom torch.nn.parallel import DistributedDataParallel\nfrom nets import Net\n\n\n"
        "def main():\n    args = init_arguments()\n    model = DistributedDataParallel(Net())\n"
        "    torch.save(model.state_dict(), os.path.join(args.out, 'best.pt'))\n{}"
    )
    again = "    model.load_state_dict(torch.load(os.path.join(args.out, 'best.pt')))\n"
    alone = findings_of(WrappedStateDict, source.format(""), files)
    both = findings_of(WrappedStateDict, source.format(again), files)
    assert [f.applicability.value for f in alone] == ["unsafe"] and [f.applicability.value for f in both] == ["display"]


def test_every_reader_is_named() -> None:
    again = "    model.load_state_dict(torch.load(path)['model'])\n"
    source = known("torch.save({'model': model.state_dict()}, path)") + again + "    print(1)\n" + again
    check_told(
        WrappedStateDict, source, files=NETS | PREDICT,
        reason="module.py:11 read the keys too, and may expect `module.`: change all of them at once",
    )  # fmt: skip


def test_a_program_that_reads_back_what_it_saves_bare() -> None:
    alone = {"alone.py": PREDICT["predict.py"] + "\n\ndef train(path):\n    net = predict(path)\n    {}\n"}
    source = known("torch.save({'model': model.state_dict()}, path)")
    for own, fires in (
        ("torch.save({'model': net.state_dict(), 'epoch': 1}, path)", False),
        ("torch.save({'other': net.state_dict()}, path)", True),  # another key
        ("torch.save({'model': optimizer.state_dict()}, path)", True),  # no model
    ):
        files = {"alone.py": alone["alone.py"].replace("{}", own, 1)}
        assert bool(findings_of(WrappedStateDict, source, files=NETS | files)) is fires, own


@pytest.mark.parametrize(
    ("save", "load", "fires"),
    [
        ("'debug/model.pt'", "f'{folder}/model_{epoch}.pt'", False),
        ("os.path.join(folder, 'debug.pt')", "os.path.join(folder, 'best.pt')", False),
        ("f'{folder}/{epoch}.pth'", "f'{folder}/{epoch}.pt'", False),
        ("f'{folder}/model_{epoch}.pt'", "f'{folder}/model_{epoch}.pt'", True),
        ("os.path.join(folder, 'best.pt')", "args.resume", True),  # may be any file
        ("f'{folder}/{name}'", "'out/best.pt'", True),
    ],
)
def test_files_of_other_names(save: str, load: str, fires: bool) -> None:
    source = (
        f"{HEAD}def train(net, folder, epoch, name, args):\n    if args.resume:\n"
        f"        net.load_state_dict(torch.load({load}))\n"
        f"    model = DDP(net)\n    torch.save(model.state_dict(), {save})\n"
    )
    assert bool(findings_of(WrappedStateDict, source)) is fires


ONLY_WITH = (
    "import torch\nfrom nets import Net\n\n\ndef judge(path):\n    net, state = Net(), {{}}\n"
    "    for k, v in torch.load(path)['model'].items():\n        if {test}:\n"
    "            state[k.replace('module.', '')] = v\n{other}"
    "    net.load_state_dict(state)\n"
)


@pytest.mark.parametrize("test", ["'module.' in k", "k.startswith('module.')"])
def test_a_reader_that_keeps_only_what_has_the_prefix_changes_with_it(test: str) -> None:
    source = known("torch.save({'model': model.state_dict()}, path)")
    files = NETS | PREDICT | {"judge.py": ONLY_WITH.format(test=test, other="")}
    (found,) = findings_of(WrappedStateDict, source, files=files)
    assert not found.edits and "judge.py:8" in found.reason
    both = files | {"judge.py": ONLY_WITH.format(test=test, other="        else:\n            state[k] = v\n")}
    (found,) = findings_of(WrappedStateDict, source, files=both)
    assert found.edits


def test_a_flag_whose_default_is_another_file() -> None:
    files = {
        "predict.py": "import argparse\nimport torch\nfrom nets import Net\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--weights', default='runs/3-best.pth')\nargs = parser.parse_args()\nnet = Net()\n"
        "net.load_state_dict(torch.load(args.weights))\n"
    }
    check_nothing(WrappedStateDict, known("torch.save(model.state_dict(), args.out + 'last.pth')"), files=NETS | files)
    assert findings_of(WrappedStateDict, known("torch.save(model.state_dict(), args.out + '-best.pth')"), files=NETS | files)


def test_an_optimizer_is_no_wrapper() -> None:
    source = (
        "import torch\nfrom accelerate import Accelerator\n\n\ndef main(net, path):\n    accelerator = Accelerator()\n"
        "    optimizer = torch.optim.AdamW(net.parameters())\n    optimizer = accelerator.prepare(optimizer)\n"
        "    optimizer.load_state_dict(torch.load(path)['optimizer'])\n    bare = accelerator.unwrap_model(optimizer)\n"
        "    torch.save({'optimizer': bare.state_dict()}, path)\n"
    )
    check_nothing(WrappedStateDict, source)
