"""Files that an object of a package is asked for: a picture or a tokenizer that saves itself, a database that is opened."""

from __future__ import annotations

import ast

from codemods.analysis.bound_values import assigned
from codemods.analysis.literals import is_false, is_true
from codemods.analysis.names import dotted, end_of, family, qualified
from codemods.files.source import SourceModule, walk

_CHAINED = 5
_IMAGES = frozenset({"PIL.Image.fromarray", "PIL.Image.new", "torchvision.transforms.functional.to_pil_image"})


def saves_itself(module: SourceModule, func: ast.expr) -> bool:
    """True for `x.save` of an object that writes the one file which it is given."""
    return _is_image(module, func) or is_tokenizer(module, func)


def _is_image(module: SourceModule, func: ast.expr) -> bool:
    """`Image.fromarray(x).resize(size).save`, also where the image has a name of its own."""
    made: ast.expr = func
    for _ in range(_CHAINED):  # `image = image.resize(size)` goes round
        if not isinstance(made, ast.Attribute) or not isinstance(made.value, (ast.Call, ast.Name)):
            return False
        held: ast.expr = made.value
        if isinstance(held, ast.Name):
            values = assigned(module, held, held.id)
            if len(values) != 1 or not isinstance(values[0], ast.Call):
                return False
            held = values[0]
        if not isinstance(held, ast.Call) or qualified(module, held.func) in _IMAGES:
            return isinstance(held, ast.Call)
        made = held.func
    return False


def is_tokenizer(module: SourceModule, func: ast.expr) -> bool:
    """True for a method of an object that a class of the package tokenizers has made: `Tokenizer(BPE())`, and one it loads."""
    held = func.value if isinstance(func, ast.Attribute) else None
    values = assigned(module, held, dotted(held)) if held is not None and dotted(held) else []
    made = [qualified(module, v.func) for v in values if isinstance(v, ast.Call)]
    return bool(made) and len(made) == len(values) and all(n.startswith("tokenizers.") and "Tokenizer" in n for n in made)


def dumps_config(module: SourceModule, func: ast.expr) -> bool:
    """True for `cfg.dump` of a configuration that mmcv or mmengine has read: it writes its text into the file it is given."""
    held = func.value if isinstance(func, ast.Attribute) and func.attr == "dump" else None
    if not isinstance(held, ast.Name) or not module.holds(b"fromfile"):
        return False
    names = [qualified(module, v.func) if isinstance(v, ast.Call) else "" for v in assigned(module, held, held.id)]
    return bool(names) and all(family(n) in ("mmcv", "mmengine") and n.endswith("Config.fromfile") for n in names)


def is_writer(module: SourceModule, path: ast.expr) -> bool:
    """True for `book` of `with pd.ExcelWriter(path) as book`, which stands where a path could."""
    values = assigned(module, path, dotted(path)) if dotted(path) else []
    return any(isinstance(v, ast.Call) and end_of(v.func).endswith("Writer") for v in values)


def is_filled(module: SourceModule, opened: ast.Call) -> bool:
    """True for `lmdb.open(path)` in a function that begins to write there, unless it is opened to be read.

    The file is there as soon as it is opened, and empty until the first transaction is through.
    """
    if any(k.arg == "readonly" and not is_false(k.value) for k in opened.keywords):
        return False
    function = module.function_of(opened)
    begun = (c for c in walk(function or module.tree) if isinstance(c, ast.Call) and end_of(c.func) == "begin")
    return any(k.arg == "write" and is_true(k.value) for c in begun for k in c.keywords)
