"""DDP502: a file of the bare model that is loaded into the wrapper made of it."""

from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_transformed, findings_of


def bare_file(save: str = "torch.save(model.state_dict(), path)", *, wrap: str = "ddp = DDP(model)", load: str = "path") -> str:
    return (
        "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
        f"def work(model, batch, path, other):\n    model = model.cuda()\n    {wrap}\n    if dist.get_rank() == 0:\n"
        f"        {save}\n"
        f"    dist.barrier()\n    ddp.load_state_dict(torch.load({load}), strict=False)\n    ddp(batch).sum().backward()\n"
    )


def test_a_file_of_the_model_that_the_wrapper_was_made_of() -> None:
    after = bare_file().replace("ddp.load_state_dict", "ddp.module.load_state_dict")
    (found,) = check_transformed(WrappedStateDict, bare_file(), after, unsafe=True)
    assert "takes none of them with strict=False" in found.message


@pytest.mark.parametrize(
    "source",
    [
        bare_file("torch.save(ddp.state_dict(), path)"),  # the keys of the wrapper
        bare_file(load="other"),  # what is in another file is not seen
        bare_file(wrap="ddp = model = DDP(model)"),  # the name holds the wrapper by then
        bare_file(wrap="ddp = model"),  # no wrapper
    ],
)
def test_files_that_fit_or_that_are_not_seen(source: str) -> None:
    assert not [f for f in findings_of(WrappedStateDict, source) if "strict=False" in f.message and "`ddp`" in f.message]
