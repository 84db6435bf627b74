"""A path expression as text that can be compared, also between functions: parts joined by `/`, names in angle brackets.

`os.path.join(args.out, "a.pt")`, `Path(args.out) / "a.pt"` and `f"{args.out}/a.pt"` are all `<P:args.out>/a.pt`. The letter
says what a name is: P a parameter, N a name of the function, S an attribute of self, I a parameter of the constructor behind
one, G a name of a module, E any other expression. `__file__` is the module's own path from the root.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import attribute_bindings, bindings_at_top, bindings_in
from codemods.analysis.files.either_part import with_part
from codemods.analysis.files.file_calls import handed_on
from codemods.analysis.files.formatted_texts import formatted
from codemods.analysis.files.held_at import last_above, only_item
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_TOKEN = lazy(r"<([PNSIGE]):([^<>]*)>")
_JOINS = frozenset({"os.path.join", "posixpath.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"})
_SAME = frozenset(
    {"str", "os.fspath", "os.path.abspath", "os.path.realpath", "os.path.expanduser", "os.path.normpath", "os.path.expandvars"}
)
_SAME_METHODS = frozenset({"resolve", "absolute", "as_posix", "expanduser", "strip"})
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.JoinedStr)
DEEP = 4
OWN_FILE = "<G:root>/"


class Unknown(Exception):
    """The expression is no path that its text shows."""


def forms(module: SourceModule, path: ast.expr) -> frozenset[str]:
    """The path as it is written, with its names replaced by their values once, and as far as that goes.

    `folder if args.prior else None` is the folder wherever there is a path at all.
    """
    if isinstance(path, ast.IfExp):
        arms = [arm for arm in (path.body, path.orelse) if not is_none(arm)]
        return forms(module, arms[0]) if len(arms) == 1 else frozenset()
    found = set()
    for depth in (0, 1, DEEP):
        try:
            text = _clean(_text(module, path, depth))
        except Unknown:
            continue
        if _says_something(text):
            found.add(text)
    return frozenset(found)


def forms_of_either(module: SourceModule, path: ast.expr) -> frozenset[str]:
    """The forms of each file that may be meant: `os.path.join(root, self.train_file if train else self.test_file)`."""
    chosen = next((n for n in walk(path) if isinstance(n, ast.IfExp)), None)
    if chosen is None or chosen is path:
        return forms(module, path)
    return frozenset().union(*(forms(module, with_part(path, chosen, arm)) for arm in (chosen.body, chosen.orelse)))


def _clean(text: str) -> str:
    text = re.sub(r"/{2,}", "/", text)
    text = re.sub(r"(^|/)\./", r"\1", text)
    return text.rstrip("/") if len(text) > 1 else text


def _says_something(text: str) -> bool:
    return bool(text.strip("./ ")) and text not in ("<E:>", "None")


def _text(module: SourceModule, node: ast.expr, depth: int) -> str:
    if isinstance(node, ast.Constant):
        if node.value is None or isinstance(node.value, bool):
            raise Unknown
        return str(node.value).replace("<", "(").replace(">", ")")
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(module, p.value if isinstance(p, ast.FormattedValue) else p, depth) for p in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return f"{_text(module, node.left, depth)}/{_text(module, node.right, depth)}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(module, node.left, depth) + _text(module, node.right, depth)
    if depth > 0 and isinstance(node, (ast.BinOp, ast.Call)) and (parts := formatted(node)) is not None:
        return "".join(p if isinstance(p, str) else _text(module, p, depth) for p in parts)
    if isinstance(node, ast.Call):
        return _called(module, node, depth)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return _named(module, node, depth)
    if isinstance(node, ast.Starred) and isinstance(node.value, ast.Name) and (at := handed_on(module, node)) is not None:
        function = module.function_of(node)
        if function is not None and function.args.vararg is not None and function.args.vararg.arg == node.value.id:
            return f"<P:{node.value.id}.{at}>"
    raise Unknown


def _called(module: SourceModule, call: ast.Call, depth: int) -> str:
    name = qualified(module, call.func)
    if any(isinstance(a, ast.Starred) for a in call.args) or (not call.args and not isinstance(call.func, ast.Attribute)):
        raise Unknown
    if name in _JOINS and call.args:
        return "/".join(_text(module, a, depth) for a in call.args)
    if name in _SAME and len(call.args) == 1:
        return _text(module, call.args[0], depth)
    if name == "os.path.dirname" and len(call.args) == 1:
        return _parent(_text(module, call.args[0], depth))
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "joinpath":
            return "/".join([_text(module, call.func.value, depth), *(_text(module, a, depth) for a in call.args)])
        if call.func.attr in _SAME_METHODS and not call.args:
            return _text(module, call.func.value, depth)
    return f"<E:{_opaque(module, call)}>"


def _parent(text: str) -> str:
    head, slash, _ = text.rpartition("/")
    if not slash or not head:
        raise Unknown
    return head


def _opaque(module: SourceModule, node: ast.AST) -> str:
    return re.sub(r"[<>\s]+", " ", ast.unparse(node)).replace("/", "|")


def _named(module: SourceModule, node: ast.Name | ast.Attribute | ast.Subscript, depth: int) -> str:
    root, suffix = _chain(node)
    if root is None:
        return f"<E:{_opaque(module, node)}>"
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return _parent(_text(module, node.value, depth))
    if root.id == "__file__" and root is node:
        return f"{OWN_FILE}{module.path}"
    if root.id in ("self", "cls"):
        return _attribute(module, node, suffix, depth)
    function = module.function_of(root)
    while function is not None:
        bound = bindings_in(module, function, root.id)
        if bound:
            if len(bound) == 1 and bound[0].parameter:
                return f"<P:{root.id}{suffix}>"
            if not suffix and depth > 0 and (item := only_item(module, root)) is not None and _is_plain(module, item):
                return _text(module, item, depth - 1)
            held = bound[0] if len(bound) == 1 else last_above(module, root, bound)
            value = held.value if held is not None and not held.part else None
            if not suffix and depth > 0 and value is not None and _is_plain(module, value):
                return _text(module, value, depth - 1)
            return f"<N:{root.id}{suffix}>"
        function = module.function_of(function)
    top = bindings_at_top(module, root.id)
    if not suffix and depth > 0 and len(top) == 1 and top[0].value is not None and _is_plain(module, top[0].value):
        return _text(module, top[0].value, depth - 1)
    if root.id in module.imports:
        return f"<G:{qualified(module, root)}{suffix}>"
    return f"<G:{module.path}:{root.id}{suffix}>".replace("/", "|") if top else f"<E:{root.id}{suffix}>"


def _is_plain(module: SourceModule, value: ast.expr) -> bool:
    """True for a value that is made anew from the same parts each time: no call but those that join paths."""
    for node in walk(value):
        if isinstance(node, ast.Call) and formatted(node) is None:
            name = qualified(module, node.func)
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name not in _JOINS | _SAME | {"os.path.dirname"} and method not in _SAME_METHODS | {"joinpath"}:
                return False
    return isinstance(value, (*_PLAIN, ast.Call)) and not (isinstance(value, ast.Constant) and not isinstance(value.value, str))


def _attribute(module: SourceModule, node: ast.expr, suffix: str, depth: int) -> str:
    holder = node
    while isinstance(holder, (ast.Attribute, ast.Subscript)) and not isinstance(holder.value, ast.Name):
        holder = holder.value
    if depth > 0 and holder is node and isinstance(node, ast.Attribute):
        # where it is None there is no path at all
        bound = [b for b in attribute_bindings(module, node) if b.value is None or not is_none(b.value)]
        if len(bound) == 1 and bound[0].value is not None and not bound[0].part and _is_plain(module, bound[0].value):
            text = _text(module, bound[0].value, depth - 1)
            if module.function_of(bound[0].node) is not module.function_of(node):
                if "<N:" in text:
                    return f"<S:{suffix.lstrip('.')}>"
                return text.replace("<P:", "<I:")
            return text
    return f"<S:{suffix.lstrip('.')}>"


def _chain(node: ast.expr) -> tuple[ast.Name | None, str]:
    """(`args`, `.out['x']`) of `args.out["x"]`."""
    suffix = ""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            suffix = f".{node.attr}{suffix}"
        elif isinstance(node.slice, ast.Constant):
            suffix = f".{str(node.slice.value).replace('/', '|')}{suffix}"
        else:
            return None, ""
        node = node.value
    return (node, suffix) if isinstance(node, ast.Name) else (None, "")


def names_in(form: str) -> frozenset[str]:
    """The names of its function that a form hangs on."""
    return frozenset(re.split(r"\W", m.group(2))[0] for m in _TOKEN.finditer(form) if m.group(1) in "PN")


def outside(
    form: str, function: FunctionNode, here: SourceModule, caller: SourceModule, call: ast.Call, holder: str,
    made: tuple[ast.Call, FunctionNode] | None = None,
) -> frozenset[str]:  # fmt: skip
    """A form of `function` (in `here`) in the words of the function that makes `call`; none where a name does not travel.

    holder: what `self` is there: "self", a name, or "" where it is neither. made: the call that made it, and its constructor.
    """
    results = frozenset({""})
    position = 0
    for match in [*_TOKEN.finditer(form), None]:
        literal = form[position : match.start() if match else len(form)]
        results = frozenset(r + literal for r in results)
        if match is None:
            break
        position = match.end()
        kind, word = match.group(1), match.group(2)
        if kind == "G" or (kind in "SI" and holder == "self"):
            values = frozenset({match.group(0)})
        elif kind == "S":
            values = frozenset({f"<N:{holder}.{word}>"}) if holder else frozenset()
        elif kind == "P":
            values = _argument(word, function, here, caller, call)
        elif kind == "I":
            values = _argument(word, made[1], here, caller, made[0]) if made else frozenset()
        else:  # nobody outside can name it; the folder round it still counts
            values = frozenset({f"<E:{word if kind == 'E' and '|' in word else f'{function.name}|{word}'}>"})
        results = frozenset(r + v for r in results for v in values)
        if not results or len(results) > 12:
            return frozenset()
    if holder == "self" and _is_own_constructor(function, here, caller, call):
        results |= {r.replace("<I:", "<P:") for r in results}
    return frozenset(_clean(r) for r in results)


def _is_own_constructor(function: FunctionNode, here: SourceModule, caller: SourceModule, call: ast.Call) -> bool:
    """True where the constructor of the method's class calls it: the parameters behind the fields are its own."""
    outer = caller.function_of(call) if here is caller else None
    return outer is not None and outer.name == "__init__" and caller.parent(outer) is here.parent(function)


def _argument(word: str, function: FunctionNode, here: SourceModule, caller: SourceModule, call: ast.Call) -> frozenset[str]:
    """What a parameter (`args`, or `args.out`) is given by a call; a default counts where it is a text."""
    name, dot, rest = word.partition(".")
    if rest.isdigit() and function.args.vararg is not None and function.args.vararg.arg == name:
        at = len(function.args.posonlyargs) + len(function.args.args) + int(rest)
        plain = not any(isinstance(a, ast.Starred) for a in call.args[: at + 1])
        return forms(caller, call.args[at]) if plain and at < len(call.args) else frozenset()
    argument = arguments_of(function, call).get(name)
    if argument is None:
        default = defaults(function).get(name)
        return forms(here, default) if isinstance(default, ast.Constant) and not rest else frozenset()
    found = forms(caller, argument)
    if not dot:
        return found
    return frozenset(f"{f[:-1]}.{rest}>" for f in found if _TOKEN.fullmatch(f) and not f.startswith("<E:"))


def arguments_of(function: FunctionNode, call: ast.Call) -> dict[str, ast.expr]:
    """What a call gives to the parameters of the function, by their names."""
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    found: dict[str, ast.expr] = {}
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        found[name] = value
    found.update({k.arg: k.value for k in call.keywords if k.arg})
    return found
