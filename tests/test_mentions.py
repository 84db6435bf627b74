"""Which mentions of a name a rename is about, and which it leaves alone or tells."""

from __future__ import annotations

import pytest

from codemods.analysis.mention_places import Rename
from codemods.analysis.mentions import mentions
from ddpfix.testing import project_of

DIST = "import torch.distributed as dist\n\n\ndef is_main():\n    return dist.get_rank() == 0\n"
FILES = {"utils/__init__.py": "", "utils/dist.py": DIST, "other/dist.py": DIST, "utils/re.py": "from utils.dist import is_main\n"}


def seen(source: str, kind: str, old: str, new: str, *, path: str = "train.py") -> tuple[str, list[str]]:
    """(the text with every place renamed, the doubts)."""
    project = project_of(source, FILES, path=path)
    module = project.module(path)
    assert module is not None
    found = mentions(project, module, Rename(kind, old, new))
    lines = list(module.lines)
    for span, name in reversed(found.places):
        line = lines[span.line - 1]
        lines[span.line - 1] = line[: span.column] + name + line[span.end_column :]
    return "".join(lines), [doubt for _, doubt in found.doubts]


FUNCTIONS = [
    ("from utils.dist import is_main\nis_main()\n", "from utils.dist import new\nnew()\n"),
    ("from utils.dist import is_main as m\nm()\n", "from utils.dist import new as m\nm()\n"),
    ("from utils import dist\ndist.is_main()\n", "from utils import dist\ndist.new()\n"),
    ("import utils.dist as d\nf(d.is_main)\n", "import utils.dist as d\nf(d.new)\n"),
    ("import utils.dist\nutils.dist.is_main()\n", "import utils.dist\nutils.dist.new()\n"),
    ("from utils.re import is_main\n@is_main\ndef f(): pass\n", "from utils.re import new\n@new\ndef f(): pass\n"),
    ("from utils.dist import *\nis_main()\n", "from utils.dist import *\nnew()\n"),
    ('def is_main(): pass\n__all__ = ["is_main"]\n', 'def new(): pass\n__all__ = ["new"]\n'),
    ("async  def  is_main(): pass\nis_main()\n", "async  def  new(): pass\nnew()\n"),
    ("try:\n    from utils.dist import is_main\nexcept ImportError:\n    def is_main(): pass\n",
     "try:\n    from utils.dist import new\nexcept ImportError:\n    def new(): pass\n"),
    ("from utils.dist import (\n    is_main,  # ours\n)\nx = is_main if is_main() else 1\n",
     "from utils.dist import (\n    new,  # ours\n)\nx = new if new() else 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), FUNCTIONS)
def test_a_function_is_renamed_wherever_it_is_meant(source: str, wanted: str) -> None:
    assert seen(source, "functions", "is_main", "new") == (wanted, [])


LEFT = [
    "from timm.utils import is_main\nis_main()\n",
    "import accelerate\naccelerate.is_main()\n",
    "class A:\n    def is_main(self): return self.is_main()\n",
    "def f(is_main): return is_main\n",
    "f(is_main=1)\n",
    "accelerator.is_main()\n",
    "is_main_process()\nis_mainly = 1\n",
    'print("is_main")  # is_main\n',
]


@pytest.mark.parametrize("source", LEFT)
def test_another_thing_of_the_name_is_left_alone(source: str) -> None:
    assert seen(source, "functions", "is_main", "new") == (source, [])


IN_TEXTS = [
    'print(f"is_main: {is_main()} {{is_main}} {x.is_main}")\n',
    "print(f'''a\n  {is_main()!r:>{is_main()}}\n''' 'is_main')\n",
]


@pytest.mark.parametrize("text", IN_TEXTS)
def test_a_name_in_an_f_string_is_found(text: str) -> None:
    head = "from utils.dist import {}\n"
    wanted = text.replace("{is_main()", "{new()")
    assert seen(head.format("is_main") + text, "functions", "is_main", "new") == (head.format("new") + wanted, [])


def test_an_import_inside_of_a_function_is_followed() -> None:
    source = "def f():\n    from utils.dist import is_main\n    return is_main()\n"
    assert seen(source, "functions", "is_main", "new") == (source.replace("is_main", "new"), [])
    other = "def f():\n    from timm.utils import is_main\n    return is_main()\n"
    assert seen(other, "functions", "is_main", "new") == (other, [])


SHADOWED = [
    ("def f(is_main):\n    return is_main\n", "def f(is_main):\n    return is_main\n"),
    ("def f():\n    is_main = 3\n    return is_main\n", "def f():\n    is_main = 3\n    return is_main\n"),
    ("def f():\n    return [is_main for is_main in x], is_main\n", "def f():\n    return [is_main for is_main in x], new\n"),
    ("def f(y=is_main):\n    return lambda is_main: is_main\n", "def f(y=new):\n    return lambda is_main: is_main\n"),
    ("class A:\n    def is_main(self):\n        return is_main()\n", "class A:\n    def is_main(self):\n        return new()\n"),
]


@pytest.mark.parametrize(("source", "wanted"), SHADOWED)
def test_a_name_that_a_function_binds_itself_is_another_one(source: str, wanted: str) -> None:
    head, new_head = "from utils.dist import is_main\n", "from utils.dist import new\n"
    assert seen(head + source, "functions", "is_main", "new") == (new_head + wanted, [])


def test_a_second_meaning_in_the_file_is_told_and_nothing_renamed() -> None:
    source = "from utils.dist import is_main\nis_main = 3\n"
    assert seen(source, "functions", "is_main", "new") == (source, ["`is_main` has a second meaning in this file"])


def test_a_dotted_function_is_that_of_its_module_alone() -> None:
    mine, others = "from utils.dist import is_main\n", "from other.dist import is_main\n"
    assert seen(mine, "functions", "utils.dist.is_main", "new")[0] == "from utils.dist import new\n"
    assert seen(others, "functions", "utils.dist.is_main", "new")[0] == others
    assert "def new" in seen(DIST, "functions", "pkg.dist.is_main", "new", path="src/pkg/dist.py")[0]
    assert seen(DIST, "functions", "utils.dist.is_main", "new", path="src/pkg/dist.py")[0] == DIST


def test_a_function_of_a_library_is_renamed_by_its_full_name() -> None:
    source = "from timm.utils import is_main\nis_main()\n"
    assert seen(source, "functions", "timm.utils.is_main", "new")[0] == source.replace("is_main", "new")


METHODS = [
    ("class A:\n    def old(self): return self.old\nx.old()\n", "old", "class A:\n    def new(self): return self.new\nx.new()\n"),
    ("import json\njson.old()\ndef old(): pass\nold()\n", "old", "import json\njson.old()\ndef old(): pass\nold()\n"),
    ("class A:\n    def old(self): pass\nclass B(A):\n    def old(self): super().old()\n", "A.old",
     "class A:\n    def new(self): pass\nclass B(A):\n    def new(self): super().new()\n"),
    ("class A: pass\nclass C:\n    def old(self): self.old()\n", "A.old",
     "class A: pass\nclass C:\n    def old(self): self.old()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "old", "wanted"), METHODS)
def test_a_method_goes_by_its_name_or_by_its_class(source: str, old: str, wanted: str) -> None:
    assert seen(source, "methods", old, "new") == (wanted, [])


def test_whose_method_it_is_may_be_untold() -> None:
    source = "class A:\n    def old(self): pass\nmake().old()\n"
    assert seen(source, "methods", "A.old", "new") == (
        "class A:\n    def new(self): pass\nmake().old()\n", ["whose `old` this is, is not known"],
    )  # fmt: skip


def test_attributes_where_they_are_set_read_and_declared() -> None:
    source = "class A:\n    {0}: int = 0\n    def f(self):\n        self.{0} = 1\n        x.{0}.y\nold = 2\n"
    assert seen(source.format("old"), "attributes", "old", "new") == (source.format("new"), [])


KEYWORDS = [
    ("f(old=1)\nold = 2\n", "old", "f(new=1)\nold = 2\n"),
    ("f(old=old)\ng(old=1)\n", "f.old", "f(new=old)\ng(old=1)\n"),
    ("from torch.nn.parallel import DistributedDataParallel as DDP\nDDP(m, old=True)\n", "DistributedDataParallel.old",
     "from torch.nn.parallel import DistributedDataParallel as DDP\nDDP(m, new=True)\n"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "old", "wanted"), KEYWORDS)
def test_a_keyword_is_renamed_in_calls(source: str, old: str, wanted: str) -> None:
    assert seen(source, "keywords", old, "new") == (wanted, [])


def test_a_call_that_has_the_new_keyword_is_told() -> None:
    assert seen("f(old=1, new=2)\n", "keywords", "old", "new") == ("f(old=1, new=2)\n", ["the call has a `new` already"])


MODULES = [
    ("import utils.dist\nutils.dist.f()\n", "train.py", "import utils.far\nutils.far.f()\n"),
    ("import utils.dist as d\nd.f()\n", "train.py", "import utils.far as d\nd.f()\n"),
    ("from utils.dist import f\n", "train.py", "from utils.far import f\n"),
    ("from utils.dist.sub import f\n", "train.py", "from utils.far.sub import f\n"),
    ("from utils import dist\ndist.f()\n", "train.py", "from utils import far as dist\ndist.f()\n"),
    ("from utils import dist as d\n", "train.py", "from utils import far as d\n"),
    ("from .dist import f\n", "utils/x.py", "from .far import f\n"),
    ("from ..dist import f\n", "utils/sub/x.py", "from ..far import f\n"),
    ("from . import dist\n", "utils/x.py", "from . import far as dist\n"),
    ("from .dist import f\nimport other.dist\n", "other/x.py", "from .dist import f\nimport other.dist\n"),
    ("import utils.distributed\nimport utils\nutils.dist.f()\n", "train.py",
     "import utils.distributed\nimport utils\nutils.dist.f()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "path", "wanted"), MODULES)
def test_a_module_is_renamed_in_every_form_of_import(source: str, path: str, wanted: str) -> None:
    assert seen(source, "modules", "utils.dist", "utils.far", path=path) == (wanted, [])


def test_a_module_that_moves_into_another_package_is_split_by_hand() -> None:
    source = "from utils import dist, other\n"
    left, doubts = seen(source, "modules", "utils.dist", "core.dist")
    assert left == source
    assert doubts == ["`dist` moves into another package: this import is yours to split"]
    assert seen("from utils.dist import f\n", "modules", "utils.dist", "core.dist")[0] == "from core.dist import f\n"
