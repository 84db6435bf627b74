"""DDP207: the local rank where the global one is meant, the global one where the local is, and a rank asked for too early."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_module
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.guards.before_group import group_comes_later, is_of_group
from codemods.analysis.guards.global_rank_at import global_test
from codemods.analysis.guards.local_guards import local_guard
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.output.early_ranks import is_asked_too_early
from codemods.analysis.output.file_readers import reader_on_every_rank, suffixes
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.ranks.device_ranks import device_ranks
from codemods.analysis.ranks.local_shares import is_for_one_node
from codemods.analysis.ranks.misnamed_ranks import LOCAL
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_entering
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.several_nodes import names_nodes
from codemods.analysis.trainer.parsed_arguments import are_parsed_training_arguments
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression, Severity
from codemods.files.left_alone import left
from codemods.files.sites import Site
from codemods.files.source import SourceModule, walk
from codemods.rewriting.imports import plan_rank_zero_only
from codemods.store.project import Project


class WrongRank(DdpCodemod):
    """The local rank where the global one is meant, or the other way round.

    ## What it does
    Finds devices that are chosen by the global rank (`set_device`, `device_ids`, `f"cuda:{rank}"`, `device_map={"": rank}`,
    `accelerator.process_index`), and takes the local rank there; the rank is followed over names, fields, helpers of the
    project, callers, and options whose default reads what the launcher sets. Finds tests of
    `training_args.local_rank` where transformers 5 is pinned, and writes `process_index` (safe). Finds files that local rank
    0 of every node writes, fills or removes, in the test's own block, behind an early exit or through functions, and tests the
    global rank instead: that of the same object (`is_main_process`, `trainer.global_rank`), one at hand, or the group's
    (unsafe). Finds tests by the process group's rank above the Lightning Trainer that will make the group, and asks
    `rank_zero_only.rank` (unsafe).

    ## Why it matters
    The local rank counts the processes of one node, the global rank all of them. On one node they are the same, so the mistake
    shows on the second: rank 8 asks for the ninth GPU of a node that has eight and ends with "invalid device ordinal"; local
    rank 0 of each node writes the same file. In transformers 5 `local_rank` is -1 on every rank, so `in (-1, 0)` is true on
    all of them. Before the group is made each process takes itself for the only one, and the guard lets all of them through.

    ## Example
    ```python
    import os

    import torch
    import torch.distributed as dist


    def main():
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(rank)
        return local_rank
    ```

    ## Use instead
    ```python
    import os

    import torch
    import torch.distributed as dist


    def main():
        dist.init_process_group("nccl")
        rank = dist.get_rank()
        local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(local_rank)
        return local_rank
    ```

    ## Safety
    Safe: on one node the local rank is the number that the device has had. It is taken from above the place, from beside
    the rank (`args.local_rank`), or from a test round the place (`if args.local_rank != -1:`); where it is not there, from
    `int(os.environ.get("LOCAL_RANK", rank))`, the same as before where nobody sets it, bound to `local_rank` once where
    several places ask. Where Slurm or Open MPI gives the rank, it is their variable (`SLURM_LOCALID`). Safe too:
    `local_rank in (-1, 0)` of parsed TrainingArguments with transformers 5 or later pinned; and the test above the Trainer,
    for `rank_zero_only.rank` is 0 wherever nobody has set a rank. Unsafe: files, for a cache on a node's own disk is
    rightly written by local rank 0; `local_rank == 0` of those arguments, which never held in version 5; and a test above
    the Trainer round a file of a kind that every rank reads.

    ## Refuses
    - A `torch.device(…)` under a name that its function does not use: silent.
    - A rank that some caller is not seen to take from the group, and ranks that `mp.spawn` starts: there they count the
      processes of one node.
    - A rank that is taken modulo the number of devices: that is the local rank.
    - A rank that the project works out itself (`node_rank * gpus + gpu`), reported: no variable holds the local one there.
    - Files whose path, or what made it, speaks of a cache, a download, a node or a temporary folder, or holds the rank; files
      that every rank of the function reads; folders alone; lines that are printed or logged.
    - A state that the same file restores on every rank where it finds one: each node may keep its own snapshot.
    - Files whose path holds the clock of each process on every way, and functions whose paths hold the local rank.
    - A block that sets what is read under the same test elsewhere: reported, for all of these tests belong together.
    - What stands behind a value that a function gives to rank 0 alone, and a function whose calls stand under a test of the local
      rank: that one is reported.
    - Files where no global rank is at hand, and the file does not use torch.distributed.
    - Devices and files of a project that starts its processes on its own machine itself by the launcher.
    - Devices of a program that joins its processes at its own machine, or numbers all of them by their place on it
      (`init_process_group(rank=local_rank)` beside no size of all machines); of every program, where no other one is seen to
      make a group. Files of a project with any such program.
    - Devices of a program whose sampler has a share for each GPU of the machine (`num_replicas=torch.cuda.device_count()`): it
      refuses the rank of a second node.
    - Files of a project that asserts both ranks to be the same, or whose commands are of one node; where there are no
      commands, of one that has no global rank at hand beside the local one (Accelerate, Lightning and transformers have both).
    - Places that no program of the project comes to.
    - The global rank that goes on under the name `local_rank` (`args.local_rank = local_rank`), where something else than a
      device reads that name: reported, for the name has to be bound to the local rank, and the other place asks for the global
      one.
    - A parameter `local_rank` to which another file hands a global rank that it calls so: reported, for that file has to bind the
      local rank to the name.
    - A test of TrainingArguments that asks for more than the rank, `transformers` below 5 or not pinned.
    - A project that makes its process group itself; files without Lightning's Trainer.
    - A repository's own tests.

    ## References
    transformers pull requests 41382 and 41504 (`local_rank` in version 5), and two-process runs of guards by it; torchrun's
    documentation of `LOCAL_RANK` and `RANK`; Lightning 2.6.6: the group is made in `fit`, `rank_zero_only.rank` at import.
    """

    code = "DDP207"
    severity = "crash"
    subject = "Ask for the right rank"
    must_show = "On two nodes each process has a device of its own, and each file is written once."
    printed = ("CUDA error: invalid device ordinal", "Duplicate GPU detected")
    TRIGGERS = (
        (b"rank", b"RANK", b"_local_", b"process_index", b"local_process"),
        (b"cuda", b"local_rank", b"LOCAL_RANK", b"get_rank", b".fit(", b"is_local_", b"local_process_index",
         b"per_node", b"gpus", b"device_map"),
    )
    SITES = (Site(
        rb"(?:local_rank|LOCAL_RANK|local_process_index)\b[^\n]{0,12}(?:[=!]=|in|[<>])|(?:if|not|and)[ \t]+[\w.]*local_rank\b|"
        rb"is_local_(?:main|process_zero|master|rank|leader)|rank[ \t]*%[^\n]{1,30}[=!]=[ \t]*0|"
        rb"rank[^\n]{0,10} (?:== 0|is None)|set_device\([^\n]{0,30}rank|"
        rb"cuda[^\n]{0,24}rank|device_map[^\n]{0,40}(?:rank|process_index)|device_ids[^\n]{0,12}rank|\.to\([ \t]*\w*rank|"
        rb"[ \t](?!rank\b)\w+[ \t]*=[^\n=]{0,20}get_rank\(|\w[ \t]*=[ \t]*[\w.()]+\.process_index\b|"
        rb"(?<![\w.])(?!\w*rank\b)\w+[ \t]*=[^\n=]{0,24}env(?:iron)?\b[^\n=]{0,6}[\"']RANK[\"']",
        b"rank", b"RANK", b"_local_", b"process_index",
    ),)  # fmt: skip
    READS_TESTS = False

    @classmethod
    def nodes(cls, findings: Sequence[Finding]) -> int:
        """On one node the two ranks are the same number; what newer versions or the Trainer change is seen there too."""
        return 2 if all("node" in finding.message for finding in findings) else 1

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        if not is_for_one_node(project, module.path):
            yield from self._devices(module, project)
        for node in module.nodes(ast.If):
            made = self._arguments(module, project, node) or self._files(module, project, node)
            if made := made or self._too_early(module, project, node):
                yield made

    # Devices

    def _devices(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for found in device_ranks(project, module):
            if _is_never_read(module, found.rank) and left(module, found.node, "nothing in the function uses the device"):
                continue
            text = module.text_of(found.rank)
            message = f"the device is chosen by the global rank ({text}): a second node has no such device"
            evidence = [Evidence("static", f"{text} counts the processes of all nodes", module.path, found.rank.lineno)]
            level = Applicability.DISPLAY if found.told else Applicability.SAFE
            severity: Severity = "" if names_nodes(project) else "risk"  # on one node the two ranks are the same
            yield self.finding(
                module, found.node, message, level=level, edits=found.edits, evidence=evidence, reason=found.told,
                severity=severity,
            )  # fmt: skip

    # transformers 5

    def _arguments(self, module: SourceModule, project: Project, node: ast.If) -> Finding | None:
        asked = _local_test(node.test)
        if asked is None or last(dotted(asked)) != "local_rank" or not isinstance(asked, ast.Attribute):
            return None
        if not _are_training_arguments(project, module, asked.value):
            return None
        pin = transformers_pin(project, near=module.path)
        if pin is None or not pin.surely_at_least((5,)):
            return None
        assert isinstance(node.test, ast.Compare)
        holds = not isinstance(node.test.ops[0], (ast.Eq, ast.NotEq))
        what = module.text_of(asked)
        always = "true" if holds and isinstance(node.test.ops[0], ast.In) else "false"
        message = f"{what} is -1 on every rank since transformers 5, so this test is {always} on all of them"
        edits: list[Edit] = [
            ReplaceExpression(module.path, module.span(node.test), _with_index(module, node.test, asked.value))
        ]
        evidence = [Evidence("version", f"{pin.text} is pinned", pin.path, pin.line)]
        level = Applicability.SAFE if holds else Applicability.UNSAFE
        reason = "" if holds else "assumes that what stands under the test is wanted: in version 5 it never ran"
        return self.finding(module, node, message, level=level, edits=edits, evidence=evidence, reason=reason)

    # Files

    def _files(self, module: SourceModule, project: Project, node: ast.If) -> Finding | None:
        found = local_guard(project, module, node)
        if found is None or under_such_a_name(project, module, node):
            return None  # one process of the whole run comes here
        home = module.function_of(node)
        if home is not None and ranks_entering(project, module, home) is Ranks.LOCAL_ZERO:
            return None  # the guard round its calls is told: one change is enough
        whole = global_test(project, module, node, found.operand, holds=found.holds)
        if whole is None or is_run_by_nobody(project, module, node):
            return None
        if not names_nodes(project) and (starts(project) or not _has_both_ranks(module, whole[1])):
            return None  # its commands are of one node
        what = " ".join(found.step.module.text_of(found.step.call).split())
        message = f"local rank 0 of every node comes here, and `{_short(what)}` {found.does} what the nodes share"
        edits: list[Edit] = [ReplaceExpression(module.path, module.span(whole[0]), whole[1])]
        place = found.step.module.path, getattr(found.step.call, "lineno", 0)
        evidence = [Evidence("static", "a process of each node runs this line, with the same path", *place)]
        if is_of_group(whole[1]) and (later := group_comes_later(project, module, node)):
            reason = f"there is no process group yet here, so its rank cannot be asked: {later}"
            return self.finding(module, node, message, evidence=evidence, reason=reason, severity="data")
        if found.beside is not None:
            name, line = found.beside
            reason = f"the block sets {name}, which line {line} reads under the same test: change all of these tests together"
            return self.finding(module, node, message, evidence=evidence, reason=reason, severity="data")
        reason = "assumes that the nodes share the disk: a file that each node needs on its own is rightly written there"
        return self.finding(
            module, node, message, level=Applicability.UNSAFE, edits=edits, evidence=evidence, reason=reason, severity="data"
        )  # fmt: skip

    # Above the Trainer

    def _too_early(self, module: SourceModule, project: Project, node: ast.If) -> Finding | None:
        planned = plan_rank_zero_only(module) if is_asked_too_early(project, module, node) else None
        if planned is None:
            return None
        message = "the process group is only made when the Trainer starts, below: here every process takes itself for rank 0"
        edits: list[Edit] = [
            ReplaceExpression(module.path, module.span(node.test), f"{planned.name}.rank == 0"), *planned.edits
        ]
        written = suffixes(module, node)
        reader = reader_on_every_rank(project, module, node, written) if written else ""
        level = Applicability.UNSAFE if reader else Applicability.SAFE
        reason = f"assumes that the other ranks do not read what is written: {reader} reads such a file" if reader else ""
        evidence = [Evidence("static", "no file of the project makes a process group", module.path, node.lineno)]
        return self.finding(module, node, message, level=level, edits=edits, reason=reason, evidence=evidence)


def _has_both_ranks(module: SourceModule, test: str) -> bool:
    """True where the place has both ranks: whoever tells them apart may run it on several nodes.

    By a member of an object that tells both itself, or by a name for the global rank beside that for the local one.
    """
    if last(test) in ("rank", "global_rank", "world_rank") and test.removeprefix("self.").isidentifier():
        return True
    if test.endswith((".is_main_process", ".is_world_process_zero", ".process_index")):
        return True
    return test.endswith(".global_rank") and any(family(name) == "lightning" for name in module.imported_modules)


def _is_never_read(module: SourceModule, rank: ast.expr) -> bool:
    """True in `device = torch.device(f"cuda:{rank}")` of a function that does nothing with that name."""
    given, function = module.statement_of(rank), module.function_of(rank)
    if function is None or not isinstance(given, ast.Assign) or len(given.targets) != 1:
        return False
    target, made = given.targets[0], given.value
    if not isinstance(target, ast.Name) or not isinstance(made, ast.Call) or last(dotted(made.func)) != "device":
        return False
    shared = any(target.id in n.names for n in walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)))
    read = any(isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) for n in walk(function))
    return not shared and not read and not any(isinstance(n, ast.Name) and n.id in ("locals", "vars") for n in walk(function))


def _local_test(test: ast.expr) -> ast.expr | None:
    """The local rank in a plain test of it and nothing else."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left = test.left
    name = last(dotted(left))
    return left if name in LOCAL else None


def _are_training_arguments(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for what `parse_args_into_dataclasses` or `TrainingArguments(...)` gave."""
    for value in values_of(module, node):
        if isinstance(value, ast.Call):
            if are_parsed_training_arguments(project, module, last(dotted(node)), value):
                return True
            if qualified(module, value.func) == "transformers.TrainingArguments":
                return True
    return False


def _with_index(module: SourceModule, test: ast.Compare, holder: ast.expr) -> str:
    index = f"{module.text_of(holder)}.process_index"
    positive = isinstance(test.ops[0], (ast.In, ast.Eq, ast.LtE, ast.Lt))
    return f"{index} == 0" if positive else f"{index} != 0"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
