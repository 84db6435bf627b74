"""States that a function is handed to save, and loads that pick the entries of a file, or come to it by two ways."""

from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_nothing, check_transformed, findings_of

HEAD = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
KEEP = "\n\ndef keep(state, best, path='last.pt'):\n    torch.save(state, path)\n"
HANDED = "keep({'epoch': 1, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, True)"


def train(save: str, *, load: str = "net.load_state_dict(torch.load(path)['model'])", keep: str = KEEP, head: str = "") -> str:
    return (
        f"{HEAD}{head}\n\ndef train(net, path, resume, optimizer):\n    if resume:\n        {load}\n    model = DDP(net)\n"
        f"    {save}\n{keep}"
    )


@pytest.mark.parametrize(
    "save",
    [
        HANDED,
        HANDED.replace("keep({", "state = {").replace("}, True)", "}\n    keep(state, False)"),
        HANDED.replace("keep({", "keep(best=True, state={").replace("}, True)", "})"),
    ],
)
def test_a_function_that_saves_the_dict_it_is_handed(save: str) -> None:
    source = train(save)
    check_transformed(WrappedStateDict, source, source.replace("model.state_dict()", "model.module.state_dict()"), unsafe=True)


def test_a_function_of_another_file_saves_it() -> None:
    files = {"files.py": "import torch\n" + KEEP}
    source = train(HANDED, keep="", head="from files import keep\n")
    check_transformed(
        WrappedStateDict, source, source.replace("model.state_dict()", "model.module.state_dict()"), files=files, unsafe=True
    )
    assert len(findings_of(WrappedStateDict, source, files=files)) == 1


@pytest.mark.parametrize(
    ("save", "keep"),
    [
        (HANDED.replace("model.state_dict", "model.module.state_dict"), KEEP),
        (HANDED, KEEP.replace("    torch.save", "    state = bare(state)\n    torch.save")),
        (HANDED, KEEP.replace("save(state, path)", "save(bare(state), path)")),
        (HANDED, KEEP.replace("torch.save(state, path)", "print(state)")),
        (HANDED, KEEP.replace("torch.save(state, path)", "torch.save(best, path)")),
        (HANDED.replace("'model'", "'network'"), KEEP),
        (HANDED.replace("keep(", "show("), KEEP),
    ],
)
def test_what_is_not_saved_as_it_is(save: str, keep: str) -> None:
    check_nothing(WrappedStateDict, train(save, keep=keep))


def test_a_file_that_is_read_in_two_ways() -> None:
    load = (
        "if path:\n            read = torch.load(path, map_location='cpu')\n"
        "        else:\n            read = torch.load('last.pt')\n"
        "        net.load_state_dict(read['model'])"
    )
    source = train(HANDED, load=load)
    check_transformed(WrappedStateDict, source, source.replace("model.state_dict()", "model.module.state_dict()"), unsafe=True)
    check_nothing(WrappedStateDict, source.replace("torch.load('last.pt')", "made(path)"))
    check_nothing(WrappedStateDict, source.replace("torch.load('last.pt')", "torch.load('last.pt')['all']"))


NET = {"nets.py": "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n"}
PREDICT = """\
import torch
from nets import Net


def predict(path):
    net = Net()
    own = net.state_dict()
    read = torch.load(path)
    read = {k: v for k, v in read.items() if k in own}
    own.update(read)
    net.load_state_dict(own)
    return net
"""


def known(save: str = "torch.save(model.state_dict(), path)") -> str:
    return f"{HEAD}from nets import Net\n\n\ndef train(path):\n    net = Net()\n    model = DDP(net)\n    {save}\n"


def test_entries_that_are_picked_by_the_keys_of_the_model() -> None:
    source = known()
    after = source.replace("model.state_dict()", "model.module.state_dict()")
    check_transformed(WrappedStateDict, source, after, files=NET | {"predict.py": PREDICT}, unsafe=True)
    (found,) = findings_of(WrappedStateDict, source, files=NET | {"predict.py": PREDICT})
    assert "none of them, and says nothing" in found.message
    strict = PREDICT.replace("    own.update(read)\n", "").replace("load_state_dict(own)", "load_state_dict(read)")
    (found,) = findings_of(WrappedStateDict, source, files=NET | {"predict.py": strict})
    assert "predict.py:10 raises an error" in found.message
    short = PREDICT.replace("    read = {k", "    own.update({k").replace("in own}\n    own.update(read)", "in own})")
    assert findings_of(WrappedStateDict, source, files=NET | {"predict.py": short})


@pytest.mark.parametrize(
    "predict",
    [
        PREDICT.replace("{k: v for", "{k[7:]: v for"),
        PREDICT.replace("{k: v for", "{clean(k): v for"),
        PREDICT.replace("if k in own", "if k.startswith('body')"),
        PREDICT.replace("torch.load(path)", "torch.load('pretrained.pt')"),
        PREDICT.replace("    own.update(read)\n", "    own.update(read)\n    own.update(net.extra(read))\n"),
        PREDICT.replace("net = Net()", "net = torch.nn.DataParallel(Net())"),
        PREDICT.replace("own = net.state_dict()", "own = dict(net.named_parameters())"),
    ],
)
def test_entries_that_may_fit(predict: str) -> None:
    check_nothing(WrappedStateDict, known(), files=NET | {"predict.py": predict})
