"""DDP709: a comparison stands where a setting of the launch was to be given its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.loading.seeds import handed_seeds, seeds_in
from codemods.analysis.run_by_ranks import may_show_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, InsertAfter, RemoveStatement, ReplaceExpression
from codemods.files.sites import Site
from codemods.files.source import SourceModule
from codemods.store.project import Project


class ComparisonWithoutEffect(DdpCodemod):
    """A statement that compares, in a program of several processes, and throws the answer away; a comparison as a seed.

    ## What it does
    Finds a statement that is nothing but `name == value`, in a file that speaks of several processes. Writes `name = value`.
    Finds a seed that is a comparison (`set_seed(seed + rank >= 0)`), and writes what is compared with a number.

    ## Why it matters
    Nothing happens: the setting keeps the value that it had. An address that was to become "auto" stays a fixed port, and the
    second job on the host ends with "Address already in use"; a batch size that was to become 1 stays 8. A seed that is a
    comparison is 0 or 1, whatever the seed of the run is, and mostly the same on every rank.

    ## Example
    ```python
    import torch.distributed as dist


    def main(args):
        if args.nodes == 1:
            args.dist_url == "auto"
        dist.init_process_group("nccl", init_method=args.dist_url)
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    def main(args):
        if args.nodes == 1:
            args.dist_url = "auto"
        dist.init_process_group("nccl", init_method=args.dist_url)
    ```

    ## Safety
    Unsafe: assumes that `=` was meant. It may have been an `assert`, and what was compared never took place so far. The seed:
    the numbers of a run change.

    ## Refuses
    - Says nothing in a repository's own tests, and in files that do not speak of several processes.
    - Says nothing of other comparisons (`!=`, `<`), of several in a row, and of what cannot be given a value (`f(x) == 1`).
    - Says nothing at the end of a block that gives its last value to a notebook or an interpreter: lines at the top of the file.
    - Says nothing of two numbers of the same object (`x.shape[0] == x.shape[1]`), which reads as a forgotten `assert`.
    - Reports a seed that compares in another way than a sum, a difference or a product with a number.
    - Reports a statement that shares its line, and one over several lines.

    ## References
    The Python reference: an expression statement evaluates its value and drops it; runs of such a program with a fixed port.
    """

    code = "DDP709"
    severity = "data"
    subject = "Give the setting its value instead of comparing it"
    must_show = "The setting has the new value behind the line: print it there once."
    printed = ("Address already in use",)
    TRIGGERS = ((b"dist", b"rank", b"gpu", b"world"),)
    SITES = (
        Site(rb"(?m)^[ \t]+\w[\w.\[\]\"']*[ \t]*==[ \t]*[^=\n]+$", b"=="),
        Site(rb"seed\w*[ \t]*\([^\n]*[<>=]", b"seed"),
    )
    READS_TESTS = False

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        return may_show_ranks(project, path)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module) or not may_show_ranks(project, module.path):
            return
        for statement in module.nodes(ast.Expr):
            compared = statement.value
            if not isinstance(compared, ast.Compare) or not _may_be_meant(module, statement, compared):
                continue
            name = module.text_of(compared.left)
            edits = _assigned(module, statement, compared)
            yield self.finding(
                module, statement,
                f"this compares and drops the answer: `{name}` keeps the value that it had",
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[Evidence("static", "the statement is a comparison and nothing else", module.path, statement.lineno)],
                reason="assumes that `=` was meant" if edits else "write `=` if it is to have this value, or `assert`",
            )  # fmt: skip
        yield from self._of_seeds(module, project)

    def _of_seeds(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """A seed of 0 or 1, whatever the numbers are that it is made of."""
        given = [s.value for s in (*seeds_in(module), *handed_seeds(project, module)) if isinstance(s.value, ast.Compare)]
        for value in dict.fromkeys(given):  # a helper seeds several libraries with one number
            meant = module.text_of(value.left) if _is_number_of_its_own(value) else ""
            yield self.finding(
                module, value,
                f"the seed is a comparison: `{module.text_of(value)}` is True or False, which seeds with 1 or 0",
                level=Applicability.UNSAFE if meant else Applicability.DISPLAY,
                edits=[ReplaceExpression(module.path, module.span(value), meant)] if meant else [],
                evidence=[Evidence("static", "the seed is a comparison", module.path, value.lineno)],
                reason="the numbers of a run change" if meant else "hand over the number itself",
            )  # fmt: skip


def _is_number_of_its_own(value: ast.Compare) -> bool:
    """True for `seed + rank >= 0`: what is compared reads as the seed that was meant."""
    left = value.left
    sums = isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Sub, ast.Mult))
    return sums and len(value.ops) == 1 and isinstance(value.comparators[0], ast.Constant)


def _may_be_meant(module: SourceModule, statement: ast.Expr, compared: ast.Compare) -> bool:
    """True where one target is compared with a value that it could be given."""
    if isinstance(module.parent(statement), ast.Module) or len(compared.ops) != 1 or not isinstance(compared.ops[0], ast.Eq):
        return False
    left, right = compared.left, compared.comparators[0]
    if not isinstance(left, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    return isinstance(right, (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Call, ast.UnaryOp, ast.JoinedStr))


def _assigned(module: SourceModule, statement: ast.Expr, compared: ast.Compare) -> list[Edit]:
    text = module.text_of(statement)
    behind = module.lines[statement.lineno - 1].partition(text)[2].strip("; \t\r\n")
    if not module.is_whole(statement) or "\n" in text or (behind and not behind.startswith("#")):
        return []
    span = module.span(statement)
    comment = f"  {behind}" if behind else ""
    code = f"{module.text_of(compared.left)} = {module.text_of(compared.comparators[0])}{comment}"
    return [InsertAfter(module.path, span, code), RemoveStatement(module.path, span)]
