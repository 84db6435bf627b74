"""DDP806: arguments and properties of the Accelerator that are gone."""

from __future__ import annotations

import pytest

from codemods.upgrades.accelerator_arguments import AcceleratorArguments
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = AcceleratorArguments
OF_LOADERS = "from accelerate import Accelerator, DataLoaderConfiguration"
LOADER = "loader = accelerator.prepare(DataLoader(args.data, batch_size=args.size))"


def pinned(spec: str) -> dict[str, str]:
    return {"requirements.txt": f"torch\naccelerate{spec}\n"}


TODAY = pinned(">=1.0")


def program(given: str, *more: str, imports: str = "from accelerate import Accelerator", before: str = "") -> str:
    body = "".join(f"    {line}\n" for line in (f"accelerator = Accelerator({given})", *more, "return accelerator"))
    head = f"from torch.utils.data import DataLoader\n{imports}\n\n\n{before}"
    return f"{head}def main(args, options):\n{body}\n\nmain(None, {{}})\n"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, files=TODAY)
    check_nothing(RULE, after, files=TODAY)


@pytest.mark.parametrize(
    ("before", "after"),
    [('log_with="wandb", logging_dir=args.folder', 'log_with="wandb", project_dir=args.folder'), ("logging_dir=None", ""),
     ("fp16=True", 'mixed_precision="fp16"'), ("cpu=True, fp16=False", "cpu=True"),
     ("fp16=args.half, cpu=False", 'mixed_precision="fp16" if args.half else None, cpu=False'),
     ("even_batches=True", ""), ("dispatch_batches=None, cpu=True", "cpu=True")],
)  # fmt: skip
def test_arguments_that_are_an_error(before: str, after: str) -> None:
    check_transformed(RULE, program(before), program(after), files=TODAY)


@pytest.mark.parametrize(
    ("before", "after"),
    [("dispatch_batches=False", "dataloader_config=DataLoaderConfiguration(dispatch_batches=False)"),
     ("even_batches=args.even, cpu=True, use_seedable_sampler=True",
      "dataloader_config=DataLoaderConfiguration(even_batches=args.even, use_seedable_sampler=True), cpu=True"),
     ("even_batches=True, dispatch_batches=True", "dataloader_config=DataLoaderConfiguration(dispatch_batches=True)")],
)  # fmt: skip
def test_arguments_of_the_loaders(before: str, after: str) -> None:
    check_transformed(RULE, program(before), program(after, imports=OF_LOADERS), files=TODAY)
    own = f"from accelerate import Accelerator\nfrom accelerate.utils import {OF_LOADERS.rpartition(' ')[2]}"
    check_transformed(RULE, program(before, imports=own), program(after, imports=own), files=TODAY)


def test_batches_that_are_no_longer_shared_out() -> None:
    given = "dataloader_config=DataLoaderConfiguration(split_batches=True)"
    before, after = program("split_batches=True", LOADER), program(given, LOADER, imports=OF_LOADERS)
    (found,) = check_transformed(RULE, before, after, files=TODAY, unsafe=True)
    assert "ignores `split_batches` from Accelerate 1.0 on" in found.message
    assert found.severity == "data"
    before, after = (text.replace("=True", "=args.split") for text in (before, after))
    check_transformed(RULE, before, after, files=TODAY, unsafe=True)
    both = program("split_batches=True, even_batches=False", LOADER)
    (found,) = findings_of(RULE, both, files=TODAY)
    assert "`even_batches` is no argument of the Accelerator from Accelerate 1.0 on; the Accelerator ignores" in found.message
    assert found.severity == "crash"


@pytest.mark.parametrize(
    "source",
    [program("split_batches=False", LOADER), program("split_batches=True"),
     program("split_batches=True", LOADER.replace("args.size", "1")),
     program("split_batches=True", LOADER.replace(", batch_size=args.size", "")),
     program("split_batches=True", "model = accelerator.prepare(args.model)")],
)  # fmt: skip
def test_batches_that_nobody_would_share_out(source: str) -> None:
    check_nothing(RULE, source, files=TODAY)


@pytest.mark.parametrize(
    ("before", "after"),
    [("pad = 8 if accelerator.use_fp16 else None", 'pad = 8 if (accelerator.mixed_precision != "no") else None'),
     ("half = accelerator.use_fp16 and args.half", 'half = (accelerator.mixed_precision != "no") and args.half'),
     ("args.make(half=accelerator.use_fp16)", 'args.make(half=accelerator.mixed_precision != "no")'),
     ("args.make(not accelerator.use_fp16)", 'args.make(not (accelerator.mixed_precision != "no"))')],
)  # fmt: skip
def test_a_property_that_is_gone(before: str, after: str) -> None:
    check_transformed(RULE, program("", before), program("", after), files=TODAY)


@pytest.mark.parametrize(
    ("given", "spec", "safe"),
    [("logging_dir='a'", ">=0.21.0", True), ("logging_dir='a'", "==0.21", True), ("logging_dir='a'", ">=0.17", True),
     ("logging_dir='a'", ">=0.10", False), ("logging_dir='a'", "", False), ("even_batches=False", "==1.2.0", True),
     ("even_batches=False", ">=0.20", False)],
)  # fmt: skip
def test_what_the_pins_allow(given: str, spec: str, safe: bool) -> None:
    (found,) = findings_of(RULE, program(given), files=pinned(spec))
    assert (found.applicability.value == "safe") == safe


def test_nothing_is_pinned() -> None:
    (found,) = findings_of(RULE, program("logging_dir='a'"))
    assert "no file pins it" in found.reason


@pytest.mark.parametrize(
    ("given", "spec"),
    [("logging_dir='a'", "==0.19.0"), ("logging_dir='a'", "<0.20"), ("even_batches=False", "==0.34.2"), ("fp16=True", "~=0.12.0"),
     ("split_batches=True", "<1"), ("logging_dir='a'", "~=0.3.0")],
)  # fmt: skip
def test_versions_that_take_the_old_spelling(given: str, spec: str) -> None:
    check_nothing(RULE, program(given, LOADER, "args.half = accelerator.use_fp16"), files=pinned(spec))


@pytest.mark.parametrize(
    ("given", "why"),
    [("project_dir='a', logging_dir='b'", "ProjectConfiguration"), ("project_config=args.config, logging_dir='b'", "put both"),
     ("logging_dir='b', **options", "may give project_dir"), ("fp16=args.a or args.b", "write it as mixed_precision"),
     ("fp16=True, mixed_precision=args.kind", "given as well"),
     ("even_batches=False, dataloader_config=args.config", "put it into the DataLoaderConfiguration")],
)  # fmt: skip
def test_what_a_person_has_to_write(given: str, why: str) -> None:
    check_told(RULE, program(given), reason=why, files=TODAY)


HEIR = "class Accelerator(A):\n    pass\n\n\n"
HEAD = "from accelerate import Accelerator\n\n\ndef main(args, options):\n"
TRIED = "    try:\n        return Accelerator(logging_dir='a')\n    except TypeError:\n        return Accelerator()\n"
BY_VERSION = "    if args.version < (0, 20):\n        return Accelerator(logging_dir='a')\n"


@pytest.mark.parametrize(
    "source",
    [f"{HEAD}{TRIED}", f"{HEAD}{BY_VERSION}",
     program("logging_dir='a'", imports="from own import Accelerator"), program("**options"),
     program("project_dir='a', mixed_precision='fp16'"), program("", "args.trainer.use_fp16 = args.use_fp16"),
     program("logging_dir='a'", imports="from accelerate import Accelerator as A", before=HEIR)],
)  # fmt: skip
def test_programs_that_are_right(source: str) -> None:
    check_nothing(RULE, source, files=TODAY)


@pytest.mark.parametrize(("test", "told"), [("accelerate.__version__ < '0.20'", False), ("len(sys.argv) > 1", True)])
def test_a_function_that_is_called_for_some_versions(test: str, *, told: bool) -> None:
    source = program("fp16=True").replace("\nmain(None", f"\nif {test}:\n    main(None")
    assert bool(findings_of(RULE, source, TODAY)) is told


READS = ("from accelerate import Accelerator", "accelerator = Accelerator()", "half = accelerator.use_fp16")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("setup.py", "setup(python_requires='>=3.7, <3.8', install_requires=['accelerate'])\n", False),
        ("setup.py", "setup(python_requires='>=3.7', install_requires=['accelerate'])\n", True),
        ("setup.py", "setup(python_requires='<3.9', install_requires=['accelerate>=1.0'])\n", True),
        ("setup.py", "setup(python_requires='<3.9', install_requires=['accelerate'])\n", True),  # it has 1.0
        ("setup.cfg", "[options]\npython_requires = <3.8\ninstall_requires =\n    accelerate\n", False),
        ("pyproject.toml", "[project]\nrequires-python = '<3.8'\ndependencies = ['accelerate']\n", False),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '~3.7'\naccelerate = '*'\n", False),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '^3.7'\naccelerate = '*'\n", True),
        ("environment.yml", "dependencies:\n  - python=3.7\n  - accelerate\n", False),
    ],
)
def test_the_python_of_the_project_keeps_accelerate_below(name: str, text: str, told: bool) -> None:
    source = "\n".join(READS) + "\n"
    assert bool(findings_of(RULE, source, {name: text})) is told
