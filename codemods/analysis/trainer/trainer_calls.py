"""Calls that build a Hugging Face Trainer: which class it is, which TrainingArguments reach it, what is done with it."""

from __future__ import annotations

import ast
from functools import cached_property

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.class_index import (
    HARMLESS_FAMILIES,
    ClassFacts,
    ClassSite,
    Role,
    class_facts,
    external_role,
    find_class,
)
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.trainer.references import binding_scope, bindings, in_other_files, names_of
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

# Classes whose use of compute_metrics is that of transformers' own loop.
PLAIN_TRAINERS = frozenset({"Trainer", "Seq2SeqTrainer"})
ARGUMENT_CLASSES = frozenset({"TrainingArguments", "Seq2SeqTrainingArguments"})
# What can be done with a Trainer without an evaluation.
QUIET_USES = frozenset(
    {"train", "save_model", "save_state", "save_metrics", "log_metrics", "log", "metrics_format", "push_to_hub",
     "create_model_card", "is_world_process_zero", "is_local_process_zero", "model", "state", "args", "accelerator", "tokenizer",
     "processing_class", "optimizer", "lr_scheduler", "train_dataset", "data_collator", "get_train_dataloader", "end",
     "is_fsdp_enabled", "is_deepspeed_enabled", "deepspeed", "can_return_loss", "model_wrapped", "add_callback",
     "remove_callback", "pop_callback", "num_examples"}
)  # fmt: skip
# Training arguments that say whether there is an evaluation, what it computes and who wants the numbers.
DECISIVE = frozenset(
    {"prediction_loss_only", "eval_strategy", "evaluation_strategy", "eval_on_start", "do_eval", "evaluate_during_training",
     "metric_for_best_model", "predict_with_generate", "compute_metrics"}
)  # fmt: skip


@record
class Handed:
    """An argument of a call: a keyword of it, or an entry of the dict literal behind its `**`. place: what it is named at."""

    name: str
    holder: ast.Call | ast.Dict
    place: ast.keyword | ast.expr
    value: ast.expr


@record
class TrainerCall:
    """A call of a Trainer class. kind: the framework's class at its root, by qualified name."""

    project: Project
    module: SourceModule
    call: ast.Call
    kind: str
    lineage: tuple[ClassSite, ...]
    opaque: tuple[str, ...]

    def argument(self, name: str) -> ast.expr | None:
        return found.value if (found := self.handed(name)) else None

    def handed(self, name: str) -> Handed | None:
        named = next((k for k in self.call.keywords if k.arg == name), None)
        if named is not None:
            return Handed(name, self.call, named, named.value)
        for key, value in zip(self.packed.keys, self.packed.values, strict=True) if self.packed else ():
            if isinstance(key, ast.Constant) and key.value == name:
                return Handed(name, self.packed, key, value) if self.packed else None
        return None

    @cached_property
    def packed(self) -> ast.Dict | None:
        """The dict literal behind `**`, if it serves nothing else; None where there is no `**`, or it is not all to be seen."""
        return packed_arguments(self.project, self.module, self.call)

    def method(self, name: str) -> tuple[ClassSite, FunctionNode] | None:
        return next(((s, m[name]) for s in self.lineage if name in (m := s.methods())), None)

    @property
    def is_plain(self) -> bool:
        return family(self.kind) == "transformers" and last(self.kind) in PLAIN_TRAINERS and not self.opaque

    @cached_property
    def arguments(self) -> Arguments:
        return trace_arguments(self)


@record
class Arguments:
    """The TrainingArguments of a Trainer. call: the literal they are made by; else why it is not known, and how they are made."""

    call: ast.Call | None = None
    why_not: str = ""
    filled: bool = False


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def packed_arguments(project: Project, module: SourceModule, call: ast.Call) -> ast.Dict | None:
    """`{…}` of `f(**{…})`, or of `given = {…}` and `f(**given)` where the name is used for nothing else."""
    stars = [k.value for k in call.keywords if k.arg is None]
    value = stars[0] if len(stars) == 1 else None
    if isinstance(value, ast.Name):
        scope = binding_scope(module, value)
        bound = bindings(module, value.id, scope)
        reads = [n for n in names_of(module, value.id, scope) if isinstance(n.ctx, ast.Load)]
        if len(bound) != 1 or not isinstance(bound[0], (ast.Assign, ast.AnnAssign)) or reads != [value]:
            return None
        if not module.is_whole(bound[0]) or (isinstance(scope, ast.Module) and in_other_files(project, module.path, value.id)):
            return None
        value = bound[0].value
    if isinstance(value, ast.Dict) and all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in value.keys):
        return value
    return None


def constant(node: ast.expr | None) -> object:
    """The value of a literal, or None."""
    return node.value if isinstance(node, ast.Constant) else None


def literals(node: ast.expr | None) -> tuple[object, ...] | None:
    """The values that an expression of literals and conditions can have, None where it has other parts."""
    if isinstance(node, ast.IfExp):
        sides = (literals(node.body), literals(node.orelse))
        return None if sides[0] is None or sides[1] is None else (*sides[0], *sides[1])
    return (node.value,) if isinstance(node, ast.Constant) else None


def is_off(value: ast.expr) -> bool:
    """True for a literal that switches an evaluation off: `"no"`, `IntervalStrategy.NO`, None, False."""
    if isinstance(value, ast.Attribute):
        return value.attr == "NO"
    return isinstance(value, ast.Constant) and value.value in ("no", None, False)


def trainer_calls(project: Project, module: SourceModule, *, with_argument: str = "") -> list[TrainerCall]:
    """Calls in the file of a class that is a Hugging Face Trainer, all or those given one keyword argument."""
    wanted = {with_argument, None}
    calls = (c for c in module.nodes(ast.Call) if not with_argument or any(k.arg in wanted for k in c.keywords))
    found = (as_trainer(project, module, call) for call in calls)
    return [trainer for trainer in found if trainer and (not with_argument or trainer.handed(with_argument))]


def as_trainer(project: Project, module: SourceModule, call: ast.Call) -> TrainerCall | None:
    named = _class_of_call(module, call)
    written = dotted(named)
    if not written or not last(written)[:1].isupper():
        return None
    if site := find_class(project, module, written):
        facts = class_facts(project, site.module, site.node)
        roots = [n for n in facts.external if external_role(n) is Role.HF_TRAINER]
        return TrainerCall(project, module, call, roots[0], facts.lineage, unknown_bases(facts)) if roots else None
    name = qualified(module, named)
    if external_role(name) is Role.HF_TRAINER:
        return TrainerCall(project, module, call, name, (), ())
    return None


def _class_of_call(module: SourceModule, call: ast.Call) -> ast.expr:
    """`Trainer` of `Trainer(...)`, and of `kind = Trainer` with `kind(...)`, where the name is given nothing else."""
    if not isinstance(call.func, ast.Name) or call.func.id[:1].isupper():
        return call.func
    value = only_value(bindings_of(module, call.func))
    return value if isinstance(value, (ast.Name, ast.Attribute)) else call.func


def unknown_bases(facts: ClassFacts) -> tuple[str, ...]:
    """Bases besides the Trainer itself that might override anything."""
    other = [
        n for n in facts.external if external_role(n) is not Role.HF_TRAINER and family(n) not in HARMLESS_FAMILIES
    ]
    return (*facts.unresolved, *other)


# TrainingArguments


def trace_arguments(trainer: TrainerCall) -> Arguments:
    module = trainer.module
    value = trainer.argument("args")
    if (
        value is None
        and len(trainer.call.args) > 1
        and not any(isinstance(a, ast.Starred) for a in trainer.call.args[:2])
    ):
        value = trainer.call.args[1]
    if value is None:
        if any(k.arg is None for k in trainer.call.keywords):
            return Arguments(None, "the Trainer's arguments come from **kwargs", filled=True)
        return Arguments(None, "the Trainer is given no TrainingArguments here")
    if isinstance(value, ast.Call):
        return _as_literal(trainer, value)
    if not isinstance(value, ast.Name):
        return Arguments(None, f"where {module.text_of(value)} is made is not shown")
    scope = binding_scope(module, value)
    bound = bindings(module, value.id, scope)
    if any(_is_parser_call(b) for b in bound):
        return Arguments(None, f"{value.id} is filled from the command line", filled=True)
    if (
        len(bound) != 1
        or not isinstance(bound[0], (ast.Assign, ast.AnnAssign))
        or not isinstance(bound[0].value, ast.Call)
    ):
        return Arguments(None, f"{value.id} is not made once, by a literal call, where it can be followed")
    literal = _as_literal(trainer, bound[0].value)
    if literal.call is not None and (why := _changed_on_the_way(trainer, value.id, scope)):
        return Arguments(None, why)
    return literal


def _is_parser_call(node: ast.AST) -> bool:
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr.startswith("parse_")


def _as_literal(trainer: TrainerCall, call: ast.Call) -> Arguments:
    module = trainer.module
    written = dotted(call.func)
    shown = module.text_of(call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("parse_"):
        return Arguments(None, "the TrainingArguments are filled from the command line", filled=True)
    name = qualified(module, call.func)
    own = find_class(trainer.project, module, written) if written else None
    if own is not None:
        facts = class_facts(trainer.project, own.module, own.node)
        if not facts.is_a(Role.HF_ARGUMENTS):
            return Arguments(None, f"{shown} is no TrainingArguments")
        if facts.opaque or any(_decides_more(site) for site in facts.lineage):
            return Arguments(None, f"{shown} gives TrainingArguments defaults of its own")
    elif not (family(name) == "transformers" and last(name) in ARGUMENT_CLASSES):
        return Arguments(None, f"what {shown} makes is not known")
    if any(k.arg is None for k in call.keywords):
        return Arguments(None, f"{shown}(**…) takes arguments from elsewhere", filled=True)
    if len(call.args) > 1 or any(isinstance(a, ast.Starred) for a in call.args):
        return Arguments(None, f"{shown} is given positional arguments")
    return Arguments(call)


def _decides_more(site: ClassSite) -> bool:
    """True where a subclass of TrainingArguments says something of evaluation, or runs code when it is made."""
    return any(word in site.module.text_of(site.node) for word in (*DECISIVE, "__post_init__", "__init__"))


def _changed_on_the_way(trainer: TrainerCall, word: str, scope: ast.AST) -> str:
    """How the arguments may be changed between the literal and the Trainer, "" if they cannot be."""
    module = trainer.module
    for name in names_of(module, word, scope):
        up = module.parent(name)
        if isinstance(up, ast.Attribute) and (up.attr.startswith("set_") or (_is_stored(up) and up.attr in DECISIVE)):
            return f"{word}.{up.attr} changes it at line {name.lineno}"
        if not isinstance(name.ctx, ast.Load) or isinstance(up, (ast.Attribute, ast.FormattedValue)) or up is trainer.packed:
            continue
        call = module.parent(up) if isinstance(up, ast.keyword) else up
        harmless = isinstance(call, ast.Call) and (
            last(dotted(call.func)) in ("print", "info", "debug", "warning", "str", "repr")
            or as_trainer(trainer.project, module, call) is not None
        )
        if not harmless:
            return f"{word} is handed on at line {name.lineno}, where it may be changed"
    if isinstance(scope, ast.Module) and (users := in_other_files(trainer.project, module.path, word)):
        return f"{word} is also used by {users[0]}"
    return ""


def _is_stored(attribute: ast.Attribute) -> bool:
    return not isinstance(attribute.ctx, ast.Load)


# What is done with it


def other_uses(trainer: TrainerCall, *, quiet_too: frozenset[str] = frozenset()) -> str | None:
    """ "" where the Trainer is only trained and saved (or asked for `quiet_too`); what else is done with it; None where it cannot
    be followed."""
    quiet = QUIET_USES | quiet_too
    module, up = trainer.module, trainer.module.parent(trainer.call)
    if isinstance(up, ast.Attribute):
        return "" if up.attr in quiet else f".{up.attr} (line {up.lineno})"
    targets = up.targets if isinstance(up, ast.Assign) else []
    if len(targets) != 1 or not isinstance(target := targets[0], ast.Name):
        return None
    scope = binding_scope(module, target)
    if isinstance(scope, ast.Module) and in_other_files(trainer.project, module.path, target.id):
        return None
    for name in names_of(module, target.id, scope):
        if name is target:
            continue
        user = module.parent(name)
        if not isinstance(user, ast.Attribute):
            return None
        if user.attr not in quiet or not isinstance(user.ctx, ast.Load):
            return f".{user.attr} (line {user.lineno})"
    return ""


def returns_only_loss(function: FunctionNode) -> bool:
    """True where every `return` of a `prediction_step` is `(loss, None, None)`."""
    returns = [n for n in walk(function) if isinstance(n, ast.Return)]
    shapes = [r.value for r in returns]
    return bool(shapes) and all(
        isinstance(v, ast.Tuple)
        and len(v.elts) == 3
        and all(isinstance(e, ast.Constant) and e.value is None for e in v.elts[1:])
        for v in shapes
    )
