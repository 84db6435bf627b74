"""Which methods a `getattr` may fetch by a text that is put together."""

from __future__ import annotations

import pytest

from codemods.analysis.ranks.fetched_names import may_be_fetched
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.store.project import Project

METHOD = "def run(self, kind, names):\n    {line}\n"


@pytest.mark.parametrize(
    ("line", "fetched", "other"),
    [
        ('getattr(self, f"embed_{kind}")()', True, False),
        ('getattr(self, "embed_" + kind)()', True, False),
        ('getattr(self, "embed_%s" % kind)()', True, False),
        ('getattr(self, "embed_{}".format(kind))()', True, False),
        ('getattr(self, kind + "_text")()', True, False),
        ('name = f"embed_{kind}"\n    getattr(self, name)()', True, False),
        ('getattr(self, f"optimizer{kind}").step()', False, False),
        ('getattr(self, "embed_image")()', False, False),  # a plain text is a use by its name
        ("getattr(self, kind)()", True, True),
        ("for name in names:\n        getattr(self, name)()", True, True),
        ('name = f"embed_{kind}"\n    name = kind\n    getattr(self, name)()', True, True),
        ("getattr(self, names[kind])()", True, True),
        ('getattr(self, f"{kind}")()', True, True),
        ("pass", False, False),
    ],
)
def test_what_a_text_may_be(line: str, fetched: bool, other: bool) -> None:
    module = Project.of({"work.py": METHOD.format(line=line).encode()}).module("work.py")
    assert module is not None
    assert may_be_fetched(module, "embed_text") is fetched
    assert may_be_fetched(module, "show") is other


PROGRAM = """import torch.distributed as dist


class Work:
    def step(self, kind):
        {line}

    def embed_text(self):
        print("a text")


def main(kind):
    dist.init_process_group("nccl")
    Work().step(kind)


if __name__ == "__main__":
    main(read())
"""


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ('getattr(self, f"optimizer{kind}").step()', False),
        ('getattr(self, f"embed_{kind}")()', True),
        ("getattr(self, kind)()", True),
        ("self.embed_text()", True),
    ],
)
def test_a_method_that_no_text_fetches(line: str, run: bool) -> None:
    project = Project.of({"main.py": PROGRAM.format(line=line).encode()})
    module = project.module("main.py")
    assert module is not None
    (shows,) = module.calls_named("print")
    assert is_run_by_nobody(project, module, shows) is not run
