"""What code does besides computing, seen through its functions."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.output.effects import Effects, Kind, effects_of_function, names_rank
from codemods.store.project import Project

IMPORTS = "import csv, json, os, shutil, sys\nimport numpy as np\nimport torch\nfrom lightning.pytorch import Callback\n"


def effects(body: str, *, files: dict[str, str] | None = None, head: str = "") -> Effects:
    """The effects of a method `hook` of a callback with this body."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    source = f"{textwrap.dedent(head)}\nclass Saver(Callback):\n    def hook(self, trainer, pl_module):\n{lines}\n"
    if not head:
        source = IMPORTS + source
    texts = {"saver.py": source, **{p: textwrap.dedent(t) for p, t in (files or {}).items()}}
    project = Project.of({p: t.encode() for p, t in texts.items()})
    module = project.module("saver.py")
    assert module is not None
    return effects_of_function(project, module, next(f for f in module.functions if f.name == "hook"))


def kinds(body: str, **more: object) -> set[Kind]:
    return {e.kind for e in effects(body, **more).items}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("print(trainer.current_epoch)", Kind.PRINT),
        ("sys.stdout.write('a')", Kind.PRINT),
        ("open(self.path, 'w').write('a')", Kind.FILE),
        ("open(self.path, mode='ab')", Kind.FILE),
        ("self.path.write_text('a')", Kind.FILE),
        ("json.dump({}, self.handle)", Kind.FILE),
        ("np.save(self.path, [1])", Kind.FILE),
        ("shutil.rmtree(self.path)", Kind.FILE),
        ("os.remove(self.path)", Kind.FILE),
        ("table.to_csv(self.path)", Kind.FILE),
        ("self.writer.add_scalar('a', 1)", Kind.TRACKER),
        ("trainer.logger.log_metrics({})", Kind.QUIET),
        ("pl_module.logger.experiment.add_text('a', 'b')", Kind.QUIET),
        ("trainer.strategy.barrier()", Kind.COLLECTIVE),
        ("print(trainer.log_dir)", Kind.COLLECTIVE),
        ("pl_module.acc.compute()", Kind.COLLECTIVE),
        ("trainer.callback_metrics['a']", Kind.METRICS),
        ("trainer.should_stop = True", Kind.STATE),
        ("self.rows.append(1)", Kind.STATE),
        ("trainer.datamodule.size['a'] = 2", Kind.STATE),
        ("pl_module.eval()", Kind.STATE),
        ("torch.randn(2)", Kind.RANDOM),
        ("np.random.rand()", Kind.RANDOM),
        ("pl_module(torch.zeros(1))", Kind.FORWARD),
        ("raise ValueError", Kind.RAISES),
        ("trainer.datamodule.setup('fit')", Kind.UNKNOWN),
        ("os.system('ls')", Kind.UNKNOWN),
    ],
)
def test_each_kind(body: str, kind: Kind) -> None:
    assert kind in kinds(body)


@pytest.mark.parametrize(
    "body",
    [
        "with open(self.path) as f:\n    rows = list(csv.reader(f))\n    rows.append(1)",
        "text = ', '.join(sorted(str(v) for v in self.rows))",
        "total = sum(p.numel() for p in pl_module.parameters())",
        "found = os.path.exists(os.path.join(self.path, 'a'))",
        "x = torch.zeros(1).mean().item()",
        "rows = []\nrows.append({'a': 1})\nrows[0]['b'] = 2",
        "return None",
    ],
)
def test_computing_is_no_effect(body: str) -> None:
    found = effects(body)
    assert not found.items
    assert not found.returns


def test_a_value_is_returned() -> None:
    assert effects("return self.rows").returns


def test_what_an_alias_changes_is_shared_and_what_was_made_here_is_not() -> None:
    assert kinds("rows = self.rows\nrows.append(1)") == {Kind.STATE}
    assert kinds("rows = list(self.rows)\nrows.append(1)") == set()


def test_methods_functions_and_other_files_are_followed() -> None:
    head = """\
        from lightning.pytorch import Callback
        from files import save as keep

        class Base(Callback):
            def _write(self, text):
                with open(self.path, "a") as f:
                    f.write(text)

        def announce(text):
            print(text)

        class Saver(Base):
            def hook(self, trainer, pl_module):
                self._write("a")
                announce("b")
                keep({})
        """
    files = {"files.py": "import json\n\ndef save(rows):\n    json.dump(rows, open('a.json', 'w'))\n"}
    texts = {"saver.py": textwrap.dedent(head), **files}
    project = Project.of({p: t.encode() for p, t in texts.items()})
    module = project.module("saver.py")
    assert module is not None
    found = effects_of_function(project, module, next(f for f in module.functions if f.name == "hook"))
    assert {e.kind for e in found.items} == {Kind.FILE, Kind.PRINT}
    assert {e.path for e in found.items} == {"saver.py", "files.py"}
    assert found.only_output


def test_what_stands_under_a_guard_is_no_output_of_every_rank() -> None:
    found = effects("if trainer.is_global_zero:\n    print('a')\n")
    assert found.items
    assert not found.output


def test_a_function_that_calls_itself_ends() -> None:
    head = """\
        def spell(n):
            print(n)
            spell(n - 1)
            return even(n)

        def even(n):
            return spell(n)
        """
    assert kinds("spell(3)", head="from lightning.pytorch import Callback\n" + textwrap.dedent(head)) == {Kind.PRINT}


def test_an_override_in_the_project_counts() -> None:
    head = "from lightning.pytorch import Callback\n"
    tail = "\n    def note(self):\n        pass\n\nclass Loud(Saver):\n    def note(self):\n        self.trainer_ref.stop()\n"
    source = f"{head}class Saver(Callback):\n    def hook(self):\n        self.note()\n{tail}"
    project = Project.of({"saver.py": source.encode()})
    module = project.module("saver.py")
    assert module is not None
    found = effects_of_function(project, module, module.functions[0])
    assert [e.text for e in found.of(Kind.UNKNOWN)] == ["self.trainer_ref.stop(…)"]


def test_unknown_callees_are_named() -> None:
    found = effects("self.schedule.apply(pl_module)")
    assert [e.phrase for e in found.items] == ["calls self.schedule.apply(…)"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("f'[rank {rank}]'", True),
        ("self.global_rank", True),
        ("args.local_rank", True),
        ("os.getpid()", True),
        ("rank_zero_only", False),
        ("ranking", False),
        ("low_ranked", False),
        ("is_global_zero", False),
    ],
)
def test_text_that_names_the_rank(text: str, named: bool) -> None:
    assert names_rank(text) is named
