"""From which hooks a method is reached."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.analysis.callers import Entries, entries
from codemods.analysis.class_index import class_facts
from ddpfix.testing import project_of
from tests.lightning_sources import module


def reached(source: str, method: str, files: Mapping[str, str] | None = None) -> Entries:
    project = project_of(source, files)
    found = project.module("module.py")
    assert found is not None
    function = next(f for f in found.functions if f.name == method)
    owner = found.class_of(function)
    assert owner is not None
    return entries(project, class_facts(project, found, owner), function)


def test_a_hook_and_a_helper_of_several_hooks() -> None:
    source = module("""
        def validation_step(self, batch, batch_idx):
            self.one(batch)

        def test_step(self, batch, batch_idx):
            self.one(batch)

        def one(self, batch):
            return self.two(batch)

        def two(self, batch):
            self.one(batch)
        """)
    assert reached(source, "validation_step").hooks == {"validation_step"}
    assert reached(source, "two").hooks == {"validation_step", "test_step"}
    assert len(reached(source, "one").steps) == 4
    assert not reached(source, "two").unknown


def test_a_hook_that_another_hook_calls() -> None:
    source = module("""
        def validation_step(self, batch, batch_idx):
            pass

        def training_step(self, batch, batch_idx):
            return self.validation_step(batch, batch_idx)
        """)
    assert reached(source, "validation_step").hooks == {"validation_step", "training_step"}


def test_a_subclass_in_another_file() -> None:
    sub = "class Sub(Model):\n    def test_step(self, batch):\n        self.one(batch)\n"
    files = {"sub.py": f"from module import Model\n\n\n{sub}"}
    source = module("def one(self, batch):\n    pass\n")
    assert reached(source, "one", files).hooks == {"test_step"}
    assert reached(source, "one").unknown == "nobody in the project is seen to call one"


def test_super_is_a_step_on_the_way() -> None:
    files = {
        "sub.py": """\
            from module import Model


            class Sub(Model):
                def validation_step(self, batch, batch_idx):
                    if batch:
                        super().validation_step(batch, batch_idx)
            """
    }
    found = reached(module("def validation_step(self, batch, batch_idx):\n    pass\n"), "validation_step", files)
    assert [s.site.name for s in found.steps] == ["Sub"]


def test_a_method_that_is_handed_on_or_called_from_an_inner_function() -> None:
    handed = module("def one(self):\n    pass\n\ndef test_step(self, batch):\n    run(self.one)\n")
    assert "passed on as a value" in reached(handed, "one").unknown
    inner = module("def one(self):\n    pass\n\ndef test_step(self, batch):\n    def go():\n        self.one()\n    go()\n")
    assert "a function inside test_step" in reached(inner, "one").unknown


def test_calls_on_another_object() -> None:
    files = {
        "watch.py": "def run(pl_module, other):\n    pl_module.one()\n    other.one()\n",
        "tests/test_it.py": "def test_it(model):\n    model.one()\n",
    }
    source = module("def one(self):\n    pass\n\ndef test_step(self, batch):\n    self.one()\n    self.model.one()\n")
    assert [(o.module.path, o.call.lineno) for o in reached(source, "one", files).outside] == [("watch.py", 2)]
