from __future__ import annotations

import textwrap

import pytest

from codemods.files.source import SourceModule
from codemods.rewriting.imports import in_scope, last_top_import, plan_plain, plan_rank_zero_only
from tests.places import module_of, written


def planned(source: str) -> tuple[str, str]:
    """(the name to write, the text with the import)."""
    module = module_of(source)
    plan = plan_rank_zero_only(module)
    assert plan is not None
    return plan.name, written(module, *plan.edits)


def check(source: str, wanted: str, name: str = "rank_zero_only") -> None:
    assert planned(source) == (name, textwrap.dedent(wanted))


# rank_zero_only


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from lightning.pytorch.utilities import rank_zero_only\n", "rank_zero_only"),
        ("from pytorch_lightning.utilities import rank_zero_only as only\n", "only"),
        ("from pytorch_lightning.utilities.rank_zero import rank_zero_only\n", "rank_zero_only"),
        ("from lightning_utilities.core.rank_zero import rank_zero_only\n", "rank_zero_only"),
        ("try:\n    from a.b import rank_zero_only\nexcept ImportError:\n    from c import rank_zero_only\n", "rank_zero_only"),
    ],
)
def test_an_import_that_is_there_is_used(source: str, name: str) -> None:
    assert planned(source) == (name, source)


def test_an_import_below_other_code_is_pardoned_as_its_neighbour_is() -> None:
    source = "x = 1\nfrom lightning.pytorch.core import LightningModule  # noqa: E402\n"
    check(source, source + "from lightning.pytorch.utilities import rank_zero_only  # noqa: E402\n")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import lightning\nx = 1\n", "import lightning\nfrom lightning.pytorch.utilities import rank_zero_only\nx = 1\n"),
        (
            "import a\nimport pytorch_lightning as pl\n\nimport mine\n",
            "import a\nimport pytorch_lightning as pl\nfrom pytorch_lightning.utilities import rank_zero_only\n\nimport mine\n",
        ),
        (
            "import lightning as L\nimport numpy\nimport torch\nx = 1\n",
            "import lightning as L\nimport numpy\nimport torch\nfrom lightning.pytorch.utilities import rank_zero_only\nx = 1\n",
        ),
        (
            "import lightning as L\nimport torch\nfrom einops import rearrange\nfrom torch import nn\n",
            "import lightning as L\nimport torch\nfrom einops import rearrange\n"
            "from lightning.pytorch.utilities import rank_zero_only\nfrom torch import nn\n",
        ),
        (
            "import lightning as L\n\nimport torch\n",
            "import lightning as L\nfrom lightning.pytorch.utilities import rank_zero_only\n\nimport torch\n",
        ),
        (
            "import lightning as L\nfrom .mine import a\nimport torch\n",
            "import lightning as L\nfrom lightning.pytorch.utilities import rank_zero_only\nfrom .mine import a\nimport torch\n",
        ),
        (
            "from pytorch_lightning import Trainer\nfrom pytorch_lightning.callbacks import Callback\nfrom zoo import a\n",
            "from pytorch_lightning import Trainer\nfrom pytorch_lightning.callbacks import Callback\n"
            "from pytorch_lightning.utilities import rank_zero_only\nfrom zoo import a\n",
        ),
        (
            "if x:\n  import lightning.pytorch as pl\n  y = 1\n",
            "if x:\n  import lightning.pytorch as pl\n  from lightning.pytorch.utilities import rank_zero_only\n  y = 1\n",
        ),
    ],
)
def test_a_new_import_stands_beside_the_one_that_brought_the_flavour(source: str, wanted: str) -> None:
    check(source, wanted)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("import grad_norm", "import grad_norm, rank_zero_only"),
        ("import Extra, seed", "import Extra, rank_zero_only, seed"),
        ("import (grad_norm, seed)", "import (grad_norm, rank_zero_only, seed)"),
        ("import (\n    grad_norm,\n    seed,\n)", "import (\n    grad_norm,\n    rank_zero_only,\n    seed,\n)"),
        ("import (\n    AttributeDict,\n    grad_norm\n)", "import (\n    AttributeDict,\n    grad_norm,\n    rank_zero_only\n)"),
        ("import (\n    grad_norm,\n)", "import (\n    grad_norm,\n    rank_zero_only,\n)"),
        ("import z, b  # noqa: E402", "import z, b, rank_zero_only  # noqa: E402"),
        (
            "import AttributeDict, CombinedLoader, grad_norm, move_data_to_device",
            "import (\n    AttributeDict,\n    CombinedLoader,\n    grad_norm,\n    move_data_to_device,\n    rank_zero_only,\n)",
        ),
    ],
)
def test_an_import_from_the_same_module_brings_one_name_more(names: str, wanted: str) -> None:
    source = "import torch\n{0}\n\nx = 1\n"
    head = "from lightning.pytorch.utilities "
    check(source.format(head + names), source.format(head + wanted))
    inside = "try:\n    {0}\nexcept ImportError:\n    pass\n"
    inner, outer = (text.replace("\n", "\n    ") for text in (head + names, head + wanted))
    check(inside.format(inner), inside.format(outer))


@pytest.mark.parametrize("names", ["import (  # all\n    seed,\n)", "import grad_norm, \\\n    seed", "import *"])
def test_an_import_with_a_layout_of_its_own_stays_as_it_is(names: str) -> None:
    source = f"import pytorch_lightning as pl\nfrom pytorch_lightning.utilities {names}\n"
    check(source, source + "from pytorch_lightning.utilities import rank_zero_only\n")


def test_an_import_that_comes_first_in_the_order_stands_above() -> None:
    source = "import torch\nfrom lightning.pytorch.utilities.seed import seed_everything\nfrom torch import nn\n"
    wanted = source.replace("from lightning", "from lightning.pytorch.utilities import rank_zero_only\nfrom lightning", 1)
    check(source, wanted)


def test_each_branch_of_a_try_gets_its_own() -> None:
    check(
        """\
        try:
            import lightning.pytorch as pl
        except ImportError:
            import pytorch_lightning as pl
        """,
        """\
        try:
            import lightning.pytorch as pl
            from lightning.pytorch.utilities import rank_zero_only
        except ImportError:
            import pytorch_lightning as pl
            from pytorch_lightning.utilities import rank_zero_only
        """,
    )


def test_never_above_a_statement_with_a_side_effect() -> None:
    source = 'import os\nos.environ["X"] = "1"\nimport pytorch_lightning as pl\n'
    check(source, source + "from pytorch_lightning.utilities import rank_zero_only\n")


def test_an_import_for_type_checkers_or_in_a_function_does_not_count() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pytorch_lightning as pl\n"
    assert plan_rank_zero_only(module_of(source)) is None
    assert plan_rank_zero_only(module_of("def f():\n    import pytorch_lightning as pl\n")) is None
    both = "import pytorch_lightning as pl\nif TYPE_CHECKING:\n    from pytorch_lightning.utilities import rank_zero_only\n"
    assert plan_rank_zero_only(module_of(both)) is None


def test_no_flavour_no_plan() -> None:
    assert plan_rank_zero_only(module_of("import torch\n")) is None


@pytest.mark.parametrize(
    "own", ["def rank_zero_only(f): return f\n", "rank_zero_only = f\n", "from mine.x import other as rank_zero_only\n"]
)
def test_a_name_that_means_something_else_is_not_taken(own: str) -> None:
    assert plan_rank_zero_only(module_of("import pytorch_lightning as pl\n" + own)) is None


def test_a_name_is_in_scope_only_if_every_import_of_it_is_wanted() -> None:
    module = module_of("try:\n    from a import x\nexcept ImportError:\n    from b import x\nimport c.d as e\n")
    assert in_scope(module, lambda dotted: dotted == "a.x") is None
    assert in_scope(module, lambda dotted: dotted in ("a.x", "b.x")) == "x"
    assert in_scope(module, lambda dotted: dotted == "c.d") == "e"


# import a.b


def plain(source: str, wanted: str = "torch.distributed") -> tuple[str, str]:
    module = SourceModule("module.py", source.encode())
    plan = plan_plain(module, wanted)
    assert plan is not None
    return plan.name, written(module, *plan.edits)


@pytest.mark.parametrize(
    ("source", "name", "text"),
    [
        ("import torch.distributed as dist\n", "dist", "import torch.distributed as dist\n"),
        ("from torch import distributed\n", "distributed", "from torch import distributed\n"),
        ("import torch.distributed\n", "torch.distributed", "import torch.distributed\n"),
        ("import torch\nx = 1\n", "torch.distributed", "import torch\nimport torch.distributed\nx = 1\n"),
        ('"""Doc."""\n\nimport a\nfrom b import c\n\nx = 1\n', "torch.distributed",
         '"""Doc."""\n\nimport a\nfrom b import c\nimport torch.distributed\n\nx = 1\n'),
        ("# head\nx = 1\n", "torch.distributed", "# head\nimport torch.distributed\nx = 1\n"),
        ('"""Doc."""\nx = 1\n', "torch.distributed", '"""Doc."""\nimport torch.distributed\nx = 1\n'),
        ('"""Doc."""\n', "torch.distributed", '"""Doc."""\nimport torch.distributed\n'),
        ("from __future__ import annotations\nx = 1\n", "torch.distributed",
         "from __future__ import annotations\nimport torch.distributed\nx = 1\n"),
        ("import a\nx = 1\nimport b\n", "torch.distributed", "import a\nimport torch.distributed\nx = 1\nimport b\n"),
        ("import a; go()\n", "torch.distributed", "import a\nimport torch.distributed\ngo()\n"),
        ("import a\nimport torch\nimport zoo\nfrom b import c\n", "torch.distributed",
         "import a\nimport torch\nimport torch.distributed\nimport zoo\nfrom b import c\n"),
        ("import os\n\nimport a\nfrom torch import nn\n", "torch.distributed",
         "import os\n\nimport a\nimport torch.distributed\nfrom torch import nn\n"),
        ("from torch import nn\n\nx = 1\n", "torch.distributed", "import torch.distributed\nfrom torch import nn\n\nx = 1\n"),
    ],
)  # fmt: skip
def test_a_plain_import(source: str, name: str, text: str) -> None:
    assert plain(source) == (name, text)


@pytest.mark.parametrize("own", ["def f(x):\n    torch = x\n", "from mine import torch\n", "class torch: pass\n"])
def test_a_root_that_means_something_else_is_not_bound_again(own: str) -> None:
    """`import torch.distributed` binds `torch`."""
    assert plan_plain(module_of(own), "torch.distributed") is None


def test_an_import_of_a_script_does_not_count() -> None:
    source = "import os\nif __name__ == '__main__':\n    import torch.distributed as dist\n"
    assert plain(source)[0] == "torch.distributed"


def test_a_module_of_the_standard_library_stands_among_its_own() -> None:
    source = "from __future__ import annotations\n\nimport json\nimport sys\nfrom pathlib import Path\n\nimport torch\n"
    assert plain(source, "os") == ("os", source.replace("import sys", "import os\nimport sys"))


def test_an_empty_file_has_no_place() -> None:
    module = SourceModule("module.py", b"# nothing\n")
    assert last_top_import(module) is None
    assert plan_plain(module, "torch") is None
