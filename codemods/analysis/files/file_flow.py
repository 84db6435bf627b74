"""What code does to paths, and where it waits for the other ranks: in the order of its text, callees included."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite, called_function, find_function
from codemods.analysis.class_index import ClassSite, class_facts, find_class
from codemods.analysis.files.file_calls import Act, copied_from, file_call, names_the_rank
from codemods.analysis.files.file_paths import forms, forms_of_either, outside
from codemods.analysis.files.filtered_listings import taken_endings
from codemods.analysis.files.parts_of_ranks import is_one_of_a_loop
from codemods.analysis.files.switched_by_caller import ranks_by_caller
from codemods.analysis.importing import imports_of
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.rank_guards import Ranks, guards_over
from codemods.files.source import FunctionNode, SourceModule, child_nodes, walk, walk_scope
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.file_facts import file_fact
from codemods.store.import_targets import Resolved
from codemods.store.project import Project
from codemods.store.tables import Table

DEPTH = 5
_FILE_WORDS = lazy(
    rb"open\(|save|mkdir|makedirs|copy|\.move|to_csv|to_json|write_|urlretrieve|dump|rename|replace\(|download|extractall|to_p"
    rb"|rmtree|remove\(|unlink|touch\(|imwrite|symlink"
)
# Calls of code that is not in the project and waits for the others, by their names; a step of training does too.
_WAITING = lazy(
    r"barrier|synchron|wait|gather|reduce|broadcast|backward|prepare$|prepare_model|launch|spawn|rendezvous|[lL]ock|^sleep$|^fit$|^train$"
    r"|^training_step$|^setup$|init_process_group|init_distributed|^initialize$|^Accelerator$|"
    r"^train_(?!(?:resize|crop|flip|trans\w*|aug\w*|data\w*|ds|set|loader|sampler|size|split|collate\w*|preproc\w*|tokeniz\w*)$)"
)
_HOPS = 3  # packages that a name may be handed on by
_LOOKS = frozenset({"sleep", "exists", "isfile", "is_file"})
_NOT_WAITING = frozenset({"reduce_lr", "train_test_split", "broadcast_to", "broadcast_tensors", "block", "unlock", "train_size"})


@record
class Step:
    """One thing that happens. act None: it waits for the other ranks, in code of the project or elsewhere.

    forms: the path in the words of the function asked about. module, call: where it stands.
    """

    act: Act | None
    forms: frozenset[str]
    module: SourceModule
    call: ast.AST
    ranks: Ranks = Ranks.ALL


_Steps = Table[tuple[str, int, int], tuple[Step, ...]]


def steps_in(project: Project, module: SourceModule, nodes: Sequence[ast.AST], depth: int = 0) -> Iterator[Step]:
    """The steps of some statements or expressions, in the order of their text, inner functions left out."""
    for node in _in_order(nodes):
        if isinstance(node, ast.Call):
            yield from _of_call(project, module, node, depth)
        elif _sleeps(node) or (isinstance(node, ast.Attribute) and collective_at(module, node, project)):
            yield Step(None, frozenset(), module, node)


def _sleeps(node: ast.AST) -> bool:
    """True for a loop that looks again and again whether something is there."""
    if not isinstance(node, ast.While):
        return False
    calls = (n for n in walk(node) if isinstance(n, ast.Call))
    return any((n.func.attr if isinstance(n.func, ast.Attribute) else dotted(n.func)) in _LOOKS for n in calls)


def _in_order(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Arguments before the call that takes them."""
    stack: list[tuple[ast.AST, bool]] = [(n, False) for n in reversed(nodes)]
    while stack:
        node, done = stack.pop()
        if done or not isinstance(node, ast.Call):
            yield node
            if done:
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                continue
        else:
            stack.append((node, True))
        stack += [(child, False) for child in reversed(child_nodes(node))]


def _of_call(project: Project, module: SourceModule, call: ast.Call, depth: int) -> Iterator[Step]:
    """Most calls are no step: who comes to one is asked of those that are."""
    if found := file_call(module, call):
        for touched in filter(None, (copied_from(module, call), found)):
            own = names_the_rank(touched.path) and not is_one_of_a_loop(module, call, touched.path)
            if not own or touched.act is Act.WRITES:
                ranks = Ranks.UNKNOWN if own else ranks_in_function(project, module, call)
                said = forms_of_either if touched.act is Act.READS else forms
                named = said(module, touched.path)
                if touched.act is Act.LISTS and (ends := taken_endings(module, call)):
                    named = frozenset(f"{folder}/*{end}" for folder in named for end in ends)
                yield Step(touched.act, named, module, call, ranks)
        return
    if (collective := collective_at(module, call, project)) is not None:
        if not collective.grouped:
            yield Step(None, frozenset(), module, call, ranks_in_function(project, module, call))
        return
    site = callee(project, module, call)
    if site is None and _lets_rank_0_in_first(module, call):
        yield Step(None, frozenset(), module, call, ranks_in_function(project, module, call))
        return
    if site is None:
        end = last(dotted(call.func)) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
        if _WAITING.search(end) and end not in _NOT_WAITING and not _of_the_device(module, call) and not is_pause(module, call):
            yield Step(None, frozenset(), module, call, ranks_in_function(project, module, call))
        return
    yield from brought_out(project, site, module, call, None, depth)


def _lets_rank_0_in_first(module: SourceModule, call: ast.Call) -> bool:
    """`super()._prepare_dataset(...)` of a trainer of trl: it works under `main_process_first()`, so all ranks meet in it."""
    func, owner = call.func, module.class_of(call)
    if not isinstance(func, ast.Attribute) or func.attr != "_prepare_dataset" or owner is None:
        return False
    above = isinstance(func.value, ast.Call) and dotted(func.value.func) == "super"
    return above and any(qualified(module, base).startswith("trl.") for base in owner.bases)


def is_pause(module: SourceModule, call: ast.Call) -> bool:
    """`time.sleep(5)` outside of a loop: a slow disk takes longer, and no rank asks whether another is through."""
    if qualified(module, call.func) != "time.sleep" or not call.args or not isinstance(call.args[0], ast.Constant):
        return False
    for up in module.ancestors(call):
        if isinstance(up, (ast.While, ast.For, ast.AsyncFor)):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return True


def _of_the_device(module: SourceModule, call: ast.Call) -> bool:
    """`torch.cuda.synchronize()` waits for the own device, and for no other rank."""
    return qualified(module, call.func).endswith((".cuda.synchronize", ".xpu.synchronize", ".npu.synchronize"))


def brought_out(
    project: Project, site: FunctionSite, module: SourceModule, call: ast.Call, ranks: Ranks | None, depth: int = 0
) -> Iterator[Step]:
    """The steps of the function that `call` runs, in the words of the function round the call.

    ranks: those that make the call; None: those that come to it.
    """
    steps = steps_of(project, site, depth + 1)
    if steps and ranks is None:
        ranks = ranks_in_function(project, module, call)
    for step in steps:
        merged = step.ranks if ranks is Ranks.ALL or ranks is None else ranks if step.ranks is Ranks.ALL else Ranks.UNKNOWN
        if step.act is None:
            yield Step(None, frozenset(), step.module, step.call, merged)
            continue
        holder = holder_of(module, call, site)
        made = constructor(project, module, call) if holder not in ("", "self") else None
        said = frozenset[str]().union(
            *(outside(form, site.node, site.module, module, call, holder, made) for form in step.forms)
        )
        if said:
            switched = ranks_by_caller(project, site, step.call, module, call) if step.module is site.module else Ranks.ALL
            yield Step(step.act, said, step.module, step.call, _both(merged, switched))


def _both(one: Ranks, other: Ranks) -> Ranks:
    """The ranks that come where the tests of a function and those of its callers let them."""
    if other is Ranks.ALL:
        return one
    return Ranks.ZERO if one in (Ranks.ALL, Ranks.ZERO) and other in (Ranks.ZERO, Ranks.LOCAL_ZERO) else Ranks.UNKNOWN


def steps_of(project: Project, site: FunctionSite, depth: int = 0) -> tuple[Step, ...]:
    """The steps of a whole function, remembered for the project; a function that is being read adds nothing to itself."""
    known: _Steps = project.memo("file steps", lambda: Table(project))
    if site.key in known:
        return known[site.key]
    if depth > DEPTH:
        return ()
    with project.apart() as rest:
        known.put(site.key, (), rest)
        found = tuple(steps_in(project, site.module, list(site.node.body), depth))
        steps = (*found[:60], *waits_behind(project, site.module, site.node))
    return known.put(site.key, steps, rest)


def waits_behind(project: Project, module: SourceModule, function: FunctionNode) -> tuple[Step, ...]:
    """Where a decorator of the project waits for the other ranks, behind the function that it decorates."""
    found: list[Step] = []
    for decorator in function.decorator_list:
        site = find_function(project, module, dotted(decorator)) if dotted(decorator) else None
        if site is None or not site.node.args.args:
            continue
        taken = site.node.args.args[0].arg
        for inner in (n for n in walk(site.node) if isinstance(n, ast.FunctionDef) and n is not site.node):
            runs = [n.lineno for n in walk_scope(inner) if isinstance(n, ast.Call) and dotted(n.func) == taken]
            steps = steps_in(project, site.module, list(inner.body), DEPTH) if runs else ()
            found += [s for s in steps if s.act is None and getattr(s.call, "lineno", 0) > max(runs) and s.ranks is Ranks.ALL]
    return tuple(found)


def callee(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    """The project function that a call runs; also a method of an object that was made by a class of the project just there."""
    if (site := called_function(project, module, call)) is not None:
        return site
    if _is_of_base(call):
        return _base_method(project, module, call)
    made = _made_by(module, call)
    owner = _class_made(project, module, made) if made is not None else _class_named(project, module, call)
    if owner is None or not isinstance(call.func, ast.Attribute):
        return None
    method = class_facts(project, owner.module, owner.node).method(call.func.attr)
    return FunctionSite(method[0].module, method[1]) if method else None


def _is_of_base(call: ast.Call) -> bool:
    """`super().__init__(path)`."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "super"


def _base_method(project: Project, module: SourceModule, call: ast.Call) -> FunctionSite | None:
    owner = module.class_of(call)
    if owner is None or not isinstance(call.func, ast.Attribute):
        return None
    for site in class_facts(project, module, owner).lineage[1:]:
        for statement in site.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == call.func.attr:
                return FunctionSite(site.module, statement)
    return None


def _class_named(project: Project, module: SourceModule, call: ast.Call) -> ClassSite | None:
    """`Rows` of `Rows.write(path)`, a static method."""
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    named = isinstance(holder, ast.Name) and holder.id[:1].isupper()
    return find_class(project, module, holder.id) if named and isinstance(holder, ast.Name) else None


def _class_made(project: Project, module: SourceModule, made: ast.Call) -> ClassSite | None:
    """The class of what a call makes: its constructor, or a function of the project that hands out such an object."""
    name = dotted(made.func)
    if last(name)[:1].isupper():
        return find_class(project, module, name)
    site = called_function(project, module, made)
    for node in walk_scope(site.node) if site is not None else ():
        value = node.value if isinstance(node, ast.Return) else None
        if site is not None and isinstance(value, ast.Name):
            bound = bindings_of(site.module, value)
            value = bound[0].value if len(bound) == 1 and not bound[0].part else None
        if site is not None and isinstance(value, ast.Call) and last(dotted(value.func))[:1].isupper():
            return find_class(project, site.module, dotted(value.func))
    return None


def constructor(project: Project, module: SourceModule, call: ast.Call) -> tuple[ast.Call, FunctionNode] | None:
    """The call that made the object whose method is called, and the constructor that it runs."""
    made = _made_by(module, call)
    site = called_function(project, module, made) if made else None
    return (made, site.node) if made and site and site.node.name == "__init__" else None


def _made_by(module: SourceModule, call: ast.Call) -> ast.Call | None:
    """`Store(root)` for `store.put(...)`, where `store` is bound to it and to nothing else, and for `Store(root).put(...)`."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call) and not _is_of_base(call):
        return call.func.value
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return None
    bound = bindings_of(module, call.func.value)
    if len(bound) != 1 or bound[0].part or not isinstance(bound[0].value, ast.Call):
        return None
    return bound[0].value


def holder_of(module: SourceModule, call: ast.Call, site: FunctionSite) -> str:
    """What `self` of the called function is where the call stands: "self", a name, or ""."""
    if _is_of_base(call):
        return "self"
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        root = call.func.value.id
        return "self" if root in ("self", "cls") else root
    if site.node.name == "__init__":
        parent = module.parent(call)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            return parent.targets[0].id
    return ""


def ranks_in_function(project: Project, module: SourceModule, node: ast.AST) -> Ranks:
    """ALL, ZERO (local ones too) where only rank 0 comes there, UNKNOWN where the tests say something else."""
    ranks = Ranks.ALL
    for guard in guards_over(module, node, project=project):
        if guard.ranks in (Ranks.ZERO, Ranks.LOCAL_ZERO):
            ranks = Ranks.ZERO if ranks in (Ranks.ALL, Ranks.ZERO) else Ranks.UNKNOWN
        elif guard.ranks.some:
            ranks = Ranks.UNKNOWN
    return ranks


def may_touch_files(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """False where the function that is called stands in another file without a word of writing: it is not parsed then."""
    name = dotted(call.func)
    root, _, rest = name.partition(".")
    if not name:
        return False
    if root in ("self", "cls"):
        return True
    imports = module.imports.get(root, ())
    if not imports:
        return _speaks_of_files(project, module.path)
    for found in imports:
        resolved = project.resolve(f"{found.dotted}.{rest}" if rest else found.dotted, module.path)
        if resolved is not None and _leads_to_files(project, resolved, _HOPS):
            return True
    return False


def _leads_to_files(project: Project, found: Resolved, hops: int) -> bool:
    """True where the file of a name has a word of files, or the one that it gets the name from; told from the bytes."""
    if _speaks_of_files(project, found.path):
        return True
    if hops == 0 or len(found.rest) != 1 or found.path in project.files_defining(found.rest[0]):
        return False
    for target in imports_of(project, found.path):
        there = project.resolve(target, found.path)
        if there is None or there.path == found.path:
            continue
        if not there.rest:  # everything of that file
            there = replace(there, rest=found.rest)
        if there.rest == found.rest and _leads_to_files(project, there, hops - 1):
            return True
    return False


def _speaks_of_files(project: Project, path: str) -> bool:
    """Asked for each call of a file: the file is searched once."""
    return project.fact(_holds_file_words, path)


@file_fact
def _holds_file_words(path: str, data: bytes) -> bool:
    del path
    return _FILE_WORDS.search(data) is not None

