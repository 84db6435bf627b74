from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.class_index import (
    MANY_FILES,
    ClassFacts,
    ClassSite,
    Role,
    class_facts,
    external_role,
    find_class,
    has_many_heirs,
    local_class,
    overriding,
    role_of_method,
    subclasses,
)
from codemods.store.project import Project
from tests.places import node

BASE = "import lightning.pytorch as pl\nclass Base(pl.LightningModule):\n    def log_it(self): pass\n"


def project(files: dict[str, str]) -> Project:
    return Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})


def facts(files: dict[str, str], name: str = "Model", path: str = "model.py") -> ClassFacts:
    whole = project(files)
    module = whole.module(path)
    assert module is not None
    found = local_class(module, name)
    assert found is not None
    return class_facts(whole, module, found)


def is_lightning(files: dict[str, str], path: str = "model.py") -> bool:
    known = facts(files, path=path)
    return known.is_a(Role.LIGHTNING_MODULE) and not known.opaque


@pytest.mark.parametrize(
    "imports",
    [
        "import lightning as L\nX = 1\nclass Model(L.LightningModule): pass\n",
        "import lightning.pytorch as pl\nclass Model(pl.LightningModule): pass\n",
        "import pytorch_lightning as pl\nclass Model(pl.LightningModule): pass\n",
        "from lightning.pytorch import LightningModule as LM\nclass Model(LM): pass\n",
        "from pytorch_lightning.core.lightning import LightningModule\nclass Model(LightningModule): pass\n",
        "import pytorch_lightning\nclass Model(pytorch_lightning.LightningModule): pass\n",
        "try:\n import lightning as L\nexcept E:\n import pytorch_lightning as L\nclass Model(L.LightningModule): pass\n",
        "if x:\n  import lightning as L\nelse:\n  import pytorch_lightning as L\nclass Model(L.LightningModule): pass\n",
        "from abc import ABC\nfrom lightning import LightningModule\nclass Model(LightningModule, ABC): pass\n",
        "from typing import Generic\nfrom lightning import LightningModule\nclass Model(LightningModule, Generic[T]): pass\n",
        "from lightning import LightningModule\nclass A(LightningModule): pass\nclass Model(A): pass\n",
    ],
)
def test_every_spelling_of_the_base(imports: str) -> None:
    assert is_lightning({"model.py": imports})


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/model.py": "from .base import Base\nclass Model(Base): pass\n", "pkg/base.py": BASE},
        {"pkg/model.py": "from . import base\nclass Model(base.Base): pass\n", "pkg/base.py": BASE},
        {"pkg/model.py": "from ..base import Base as B\nclass Model(B): pass\n", "base.py": BASE},
        {
            "pkg/model.py": "from pkg import Base\nclass Model(Base): pass\n",
            "pkg/__init__.py": "from .base import Base\n",
            "pkg/base.py": BASE,
        },
        {
            "pkg/model.py": "from . import Base\nclass Model(Base): pass\n",
            "pkg/__init__.py": "from .base import *\n",
            "pkg/base.py": BASE,
        },
        {"pkg/model.py": "from base import *\nclass Model(Base): pass\n", "base.py": BASE},
        {"pkg/model.py": "import pkg.base\nclass Model(pkg.base.Base): pass\n", "pkg/base.py": BASE},
        {"pkg/model.py": "import pkg.base as b\nclass Model(b.Base): pass\n", "pkg/base.py": BASE},
        {"pkg/model.py": "from base import Base\nclass Model(Base): pass\n", "pkg/base.py": BASE},
        {"pkg/model.py": "from lib.base import Base\nclass Model(Base): pass\n", "src/lib/base.py": BASE},
        {"pkg/model.py": "from space.deep.base import Base\nclass Model(Base): pass\n", "space/deep/base.py": BASE},
        {
            "pkg/model.py": "from lib import api\nclass Model(api.Base): pass\n",
            "lib/__init__.py": "",
            "lib/api.py": "from .inner import Thing as Base\n",
            "lib/inner.py": BASE.replace("Base", "Thing"),
        },
        {
            "pkg/model.py": "try:\n  from fast import Base\nexcept E:\n  from .base import Base\nclass Model(Base): pass\n",
            "pkg/base.py": BASE,
        },
        {
            "pkg/model.py": "from .a import Base\nclass Model(Base): pass\n",
            "pkg/a.py": "if x:\n  class Base: pass\nelse:\n  import lightning as L\n  class Base(L.LightningModule): pass\n",
        },
    ],
)
def test_a_base_in_another_file(files: dict[str, str]) -> None:
    known = facts(files, path="pkg/model.py")
    assert known.is_a(Role.LIGHTNING_MODULE)
    assert [site.module.path for site in known.lineage][-1] != "pkg/model.py"


@pytest.mark.parametrize(
    ("source", "opaque"),
    [
        ("class Model(Unknown): pass\n", "Unknown"),
        ("from thing import Base\nclass Model(Base): pass\n", "thing.Base"),
        ("from .gone import Base\nclass Model(Base): pass\n", "Base"),
        ("class Model(make(1)): pass\n", "make(1)"),
        ("import lightning as L\nfrom thing import Mixin\nclass Model(Mixin, L.LightningModule): pass\n", "thing.Mixin"),
        ("class Model(bases[0]): pass\n", "bases"),
    ],
)
def test_an_unknown_base_is_told(source: str, opaque: str) -> None:
    assert facts({"model.py": source}).opaque == (opaque,)


def test_harmless_bases_hide_nothing() -> None:
    source = "import abc, torch\nclass Model(torch.nn.Module, abc.ABC, dict, object): pass\n"
    known = facts({"model.py": source})
    assert known.opaque == () and known.is_a(Role.NN_MODULE)


def test_cycles_end() -> None:
    files = {"model.py": "from a import B\nclass Model(B): pass\n", "a.py": "from b import B\n", "b.py": "from a import B\n"}
    assert facts(files).opaque == ("a.B",)
    files = {"model.py": "from a import A\nclass Model(A): pass\n", "a.py": "from model import Model\nclass A(Model): pass\n"}
    assert len(facts(files).lineage) == 2
    assert len(facts({"model.py": "class Model(Model): pass\n"}).lineage) == 1
    stars = {"model.py": "from a import *\nclass Model(X): pass\n", "a.py": "from b import *\n", "b.py": "from a import *\n"}
    assert facts(stars).opaque == ("X",)


def test_a_file_that_cannot_be_read_leaves_the_base_unknown() -> None:
    files = {"model.py": "from base import Base\nclass Model(Base): pass\n", "base.py": "class Base(:\n"}
    assert facts(files).opaque


def test_the_last_definition_of_a_class_counts_and_nested_ones_do_not() -> None:
    first = "import lightning as L\nclass Base: pass\ndef f():\n    class Base(L.Callback): pass\n"
    assert is_lightning({"model.py": first + "class Base(L.LightningModule): pass\nclass Model(Base): pass\n"})


def test_the_method_that_an_object_finds() -> None:
    known = facts({"model.py": "from base import Base\nclass Model(Base):\n    def own(self): pass\n", "base.py": BASE})
    own, inherited = known.method("own"), known.method("log_it")
    assert own is not None and own[0].name == "Model"
    assert inherited is not None and inherited[0].module.path == "base.py"
    assert known.method("forward") is None


def test_the_class_of_a_method_and_none_outside() -> None:
    whole = project({"model.py": BASE.replace("pass", "go()") + "stop()\n"})
    module = whole.module("model.py")
    assert module is not None
    found = role_of_method(whole, module, node(module, "go()", ast.Call))
    assert found is not None and found[0].is_a(Role.LIGHTNING_MODULE) and found[1].name == "log_it"
    assert role_of_method(whole, module, node(module, "stop()", ast.Call)) is None


def test_subclasses_under_another_name_and_of_subclasses() -> None:
    whole = project(
        {
            "base.py": BASE,
            "a.py": "from base import Base as B\nclass A(B): pass\nclass Base2: pass\n",
            "b.py": "import a\nclass C(a.A): pass\n",
            "other.py": "class Base: pass\nclass D(Base): pass\n",
        }
    )
    module = whole.module("base.py")
    assert module is not None
    site = find_class(whole, module, "Base")
    assert site is not None
    assert {s.name for s in subclasses(whole, site)} == {"A", "C"}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("lightning.pytorch.callbacks.ModelCheckpoint", Role.LIGHTNING_CALLBACK),
        ("pytorch_lightning.Callback", Role.LIGHTNING_CALLBACK),
        ("pytorch_lightning.metrics.Accuracy", Role.METRIC),
        ("torchmetrics.Accuracy", Role.METRIC),
        ("torchmetrics.functional.accuracy", None),
        ("torch.nn.Module", Role.NN_MODULE),
        ("torch.nn.parallel.DistributedDataParallel", None),
        ("torch.utils.data.Dataset", Role.DATASET),
        ("transformers.Trainer", Role.HF_TRAINER),
        ("transformers.Seq2SeqTrainer", Role.HF_TRAINER),
        ("transformers.TrainerCallback", Role.HF_CALLBACK),
        ("transformers.TrainingArguments", Role.HF_ARGUMENTS),
        ("trl.SFTConfig", Role.HF_ARGUMENTS),
        ("transformers.BertForMaskedLM", Role.NN_MODULE),
        ("jax.nn.Module", None),
    ],
)
def test_roles_of_a_framework_s_own_classes(name: str, role: Role | None) -> None:
    assert external_role(name) is role


MANY = {f"heir{i}.py": f"from base import Base\n\n\nclass Heir{i}(\n    Base,\n):\n    pass\n" for i in range(MANY_FILES + 1)}


@pytest.mark.parametrize("count", [3, MANY_FILES + 1])
def test_the_heirs_of_a_class_are_found_one_by_one_or_all_at_once(count: int) -> None:
    heirs = dict(list(MANY.items())[:count])
    grand = {"grand.py": "from heir0 import Heir0\n\n\nclass Grand(Heir0):\n    def go(self): pass\n"}
    tests = {"tests/test_base.py": "from base import Base\n\n\nclass Fake(Base):\n    def go(self): pass\n"}
    whole = project({"base.py": "class Base:\n    def go(self): pass\n", **heirs, **grand, **tests})
    module = whole.module("base.py")
    assert module is not None
    site = ClassSite(module, module.nodes(ast.ClassDef)[0])
    assert has_many_heirs(whole, site) is (count > MANY_FILES)
    assert {s.node.name for s in subclasses(whole, site)} == {*(f"Heir{i}" for i in range(count)), "Grand"}
    assert [s.node.name for s in overriding(whole, site, "go") or ()] == ["Grand"]
    assert overriding(whole, site, "stop") == ()


def test_heirs_in_the_same_file_define_a_method_anew() -> None:
    whole = project({"a.py": "class A:\n    def go(self): pass\n\n\nclass B(A): pass\n\n\nclass C(B):\n    def go(self): pass\n"})
    module = whole.module("a.py")
    assert module is not None
    found = overriding(whole, ClassSite(module, module.nodes(ast.ClassDef)[0]), "go")
    assert [s.node.name for s in found or ()] == ["C"]
