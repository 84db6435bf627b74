"""DDP805: a keyword that goes before an option of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.trainer.overridden_options import Overridden, overridden
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropKeyword, Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_GONE = (2, 0)  # Lightning: Trainer.from_argparse_args


class OptionOverridden(DdpCodemod):
    """A keyword beside `Trainer.from_argparse_args(args)` that goes before an option which a command of the repository gives.

    ## What it does
    Finds keywords of `Trainer.from_argparse_args(args, max_epochs=32)` that the commands in job files and texts of the repository
    give as options with another value. Drops the keyword where each of these commands gives the option.

    ## Why it matters
    The keyword counts: `--devices 8` in the job file does nothing, and the run takes one device, another strategy or another
    number of epochs without a word.

    ## Example
    ```python
    # run.sh: python module.py --max_epochs 100
    from argparse import ArgumentParser

    import pytorch_lightning as pl

    parser = pl.Trainer.add_argparse_args(ArgumentParser())
    args = parser.parse_args()
    trainer = pl.Trainer.from_argparse_args(args, max_epochs=32, logger=False)
    ```

    ## Use instead
    ```python
    # run.sh: python module.py --max_epochs 100
    from argparse import ArgumentParser

    import pytorch_lightning as pl

    parser = pl.Trainer.add_argparse_args(ArgumentParser())
    args = parser.parse_args()
    trainer = pl.Trainer.from_argparse_args(args, logger=False)
    ```

    ## Safety
    Unsafe: a command that is not in the repository may leave the option out, and then takes the default of the Trainer.

    ## Refuses
    - Says nothing where no command of the repository gives the option, and where it gives the value of the keyword.
    - Says nothing where Lightning is pinned at 2.0 or later, or `target-lightning` asks for it: the method is gone (DDP801).
    - Says nothing of a keyword that may be made of the options, of a value that the shell puts in, and of a Trainer of one's own.
    - Reports where other commands leave the option out: they go by the keyword.
    - Reports an object for the keyword (`strategy=DDPStrategy(...)`), whose settings an option cannot give.
    - A repository's own tests.

    ## References
    `from_argparse_args` of pytorch-lightning 1.0 to 1.9: `trainer_kwargs.update(**kwargs)`.
    """

    code = "DDP805"
    severity = "data"
    subject = "Let the command line decide over the Trainer"
    must_show = "The run takes what its command gives: print the argument of the Trainer once."
    printed = ()
    TRIGGERS = ((b"from_argparse_args",), (b"lightning",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        pin = lightning_pin(project, near=module.path)
        if is_test_module(module) or (pin is not None and pin.surely_at_least(_GONE)):
            return
        for one in overridden(project, module):
            yield self._tell(module, one)

    def _tell(self, module: SourceModule, one: Overridden) -> Finding:
        assert one.keyword.arg is not None
        name, path, line = one.keyword.arg, *one.place
        _, flag = one.given[0]
        written = " ".join(module.text_of(one.keyword.value).split())
        given = f"{flag.name} {flag.value}" if flag.value is not None else flag.name
        why = ""
        if not isinstance(one.keyword.value, ast.Constant):
            why = f"an option cannot give {written}: take `{flag.name}` out of the command, or choose by `args.{name}`"
        elif not one.all:
            why = f"other commands leave `{flag.name}` out: make {written} the default, `parser.set_defaults({name}={written})`"
        return self.finding(
            module, one.keyword, f"`{name}={written}` goes before the command line: `{given}` in {path}:{line} does nothing",
            level=Applicability.DISPLAY if why else Applicability.UNSAFE,
            edits=[] if why else [DropKeyword(module.path, module.span(one.call), name)],
            evidence=[Evidence("static", f"gives `{given}`", c.file.path, c.span_of(f).line) for c, f in one.given[:3]],
            reason=why or f"assumes that every command gives `{flag.name}`, as those of the repository do",
        )  # fmt: skip
