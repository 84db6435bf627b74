"""Which calls write, make, remove, read or list a path, and which of their arguments is the path."""

from __future__ import annotations

import ast
import re
from enum import Enum

from codemods.analysis.files.files_of_objects import dumps_config, is_filled, is_tokenizer, is_writer, saves_itself
from codemods.analysis.files.opened_paths import opened_by
from codemods.analysis.files.rotating_logs import HANDLERS
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record


class Act(Enum):
    """What a call does to a path. FILLS and LOADS are of a folder as a whole."""

    WRITES = "writes"
    MAKES = "makes"
    FILLS = "fills"
    REMOVES = "removes"
    READS = "reads"
    LISTS = "lists"
    LOADS = "loads"
    ASKS = "asks for"


CHANGES = frozenset({Act.WRITES, Act.MAKES, Act.FILLS, Act.REMOVES})

# Position of the path among the arguments; -1 is the receiver.
_FUNCTIONS: dict[str, tuple[Act, int]] = {
    **dict.fromkeys(("torch.save", "safetensors.torch.save_file", "safetensors.numpy.save_file", "joblib.dump",
                     "torch.jit.save", "torchvision.io.write_png", "torchvision.io.write_jpeg", "plotly.io.write_html",
                     "plotly.io.write_image", "omegaconf.OmegaConf.save", "shutil.copy", "shutil.copyfile", "shutil.copy2",
                     "shutil.move", "os.rename",
                     "os.replace", "os.symlink", "os.link", "urllib.request.urlretrieve", "torch.hub.download_url_to_file",
                     "gdown.download", "wget.download"), (Act.WRITES, 1)),
    **dict.fromkeys(("numpy.save", "numpy.savez", "numpy.savetxt", "numpy.savez_compressed", "soundfile.write", "torchaudio.save",
                     "logging.FileHandler", *HANDLERS,
                     "cv2.imwrite", "imageio.imwrite", "imageio.imsave", "imageio.mimsave", "imageio.mimwrite",
                     "imageio.v2.imwrite", "imageio.v2.mimsave", "imageio.v3.imwrite", "matplotlib.pyplot.imsave",
                     "skimage.io.imsave", "scipy.io.savemat", "scipy.io.wavfile.write", "scipy.sparse.save_npz",
                     "torchvision.io.write_file", "torchvision.io.write_video", "pandas.ExcelWriter"), (Act.WRITES, 0)),
    "torchvision.utils.save_image": (Act.WRITES, 1),
    "torch.onnx.export": (Act.WRITES, 2),
    "logging.basicConfig": (Act.WRITES, 99),  # by `filename=` alone
    **dict.fromkeys(("os.makedirs", "os.mkdir"), (Act.MAKES, 0)),
    "shutil.copytree": (Act.FILLS, 1),
    **dict.fromkeys(("shutil.unpack_archive", "torchvision.datasets.utils.download_url",
                     "torchvision.datasets.utils.download_and_extract_archive",
                     "torchvision.datasets.utils.extract_archive"), (Act.FILLS, 1)),
    **dict.fromkeys(("shutil.rmtree", "os.remove", "os.unlink", "os.rmdir"), (Act.REMOVES, 0)),
    **dict.fromkeys(("torch.load", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.memmap", "numpy.fromfile",
                     "onnx.load", "torch.jit.load", "onnxruntime.InferenceSession",
                     "cv2.imread", "PIL.Image.open", "imageio.imread", "pandas.read_csv", "pandas.read_parquet",
                     "pandas.read_json", "pandas.read_pickle", "pandas.read_table", "pandas.read_excel", "pandas.read_hdf",
                     "pandas.read_feather", "scipy.sparse.load_npz", "scipy.io.wavfile.read", "safetensors.torch.load_file",
                     "safetensors.safe_open", "joblib.load", "omegaconf.OmegaConf.load", "os.path.getsize", "os.stat",
                     "soundfile.read", "torchaudio.load", "tokenizers.Tokenizer.from_file", "scipy.io.loadmat",
                     "os.readlink"), (Act.READS, 0)),
    **dict.fromkeys(("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob"), (Act.LISTS, 0)),
    **dict.fromkeys(("datasets.load_from_disk", "datasets.load_dataset", "torchvision.datasets.ImageFolder",
                     "torchvision.datasets.DatasetFolder"), (Act.LOADS, 0)),
    **dict.fromkeys(("os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.lexists",
                     "pathlib.Path.exists", "pathlib.Path.is_file", "pathlib.Path.is_dir"), (Act.ASKS, 0)),
}  # fmt: skip
# What takes its content from another path, the first argument.
_COPIES: dict[str, Act] = {
    **dict.fromkeys(("shutil.copy", "shutil.copyfile", "shutil.copy2", "shutil.move", "os.rename", "os.replace"), Act.READS),
    "shutil.copytree": Act.LOADS,
}
_METHODS: dict[str, tuple[Act, int]] = {
    **dict.fromkeys(("write_text", "write_bytes", "touch", "symlink_to"), (Act.WRITES, -1)),
    **dict.fromkeys(("to_csv", "to_json", "to_parquet", "to_pickle", "to_feather", "to_hdf", "to_html", "to_excel", "savefig",
                     "write_html", "write_image", "tofile", "to_json_file"), (Act.WRITES, 0)),
    "mkdir": (Act.MAKES, -1),
    **dict.fromkeys(("save_pretrained", "save_to_disk", "extractall"), (Act.FILLS, 0)),
    **dict.fromkeys(("unlink", "rmdir"), (Act.REMOVES, -1)),
    **dict.fromkeys(("read_text", "read_bytes"), (Act.READS, -1)),
    "load_from_checkpoint": (Act.READS, 0),
    **dict.fromkeys(("iterdir", "glob", "rglob"), (Act.LISTS, -1)),
    **dict.fromkeys(("from_pretrained", "load_from_disk", "load_state", "load_adapter"), (Act.LOADS, 0)),
    **dict.fromkeys(("is_file", "is_dir"), (Act.ASKS, -1)),
}  # fmt: skip
_KEYWORDS = frozenset(
    {"path", "name", "file", "f", "save_directory", "filename", "root", "data_files", "data_dir", "local_dir", "dst",
     "pretrained_model_name_or_path", "path_or_buf", "filepath_or_buffer", "fname", "filepath", "uri", "image_path", "file_name",
     "fid", "excel_writer"}
)  # fmt: skip
_NO_FILE = ("webbrowser.", "wave.", "os.")
OPENERS = ("tarfile.open", "zipfile.ZipFile", "h5py.File", "lmdb.open", "gzip.open", "bz2.open", "codecs.open", "io.open",
             "rich.progress.open", "gzip.GzipFile", "bz2.BZ2File", "lzma.LZMAFile")
_WILD = lazy(r"[*?]|\[")
SHELLS = frozenset({"os.system", "subprocess.run", "subprocess.call", "subprocess.check_call"})
_TAKES_AWAY = lazy(r"rm(?:\s+-\w+)*\s+-\w*r\w*(?:\s+-\w+)*\s+[\"']?")
# Functions of many packages that fetch an address into a file: `download_file(url, path)`.
_FETCHERS = frozenset({"download", "download_file", "download_url", "download_from_url", "http_get", "fetch_file"})
_ADDRESS = lazy(r"(?i)url|^[\"'](?:https?|ftp)://")
NAMES = frozenset(
    {*_FETCHERS, "open", "exists", "load", "save_model", "save"}
    | {*map(last, SHELLS), *map(last, _FUNCTIONS), *map(last, OPENERS), *_METHODS}
)
# Data sets of torchvision are fetched into their root by `download=True`, and read from it without.
_FETCHED = "torchvision.datasets."


@record
class FileCall:
    """What `call` does, and the path as it is written."""

    call: ast.Call
    path: ast.expr
    act: Act


def file_call(module: SourceModule, call: ast.Call) -> FileCall | None:
    """What a call does to a path, None where it does nothing, or nothing that its text shows."""
    func = call.func
    end = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if end not in NAMES and not end[:1].isupper() and end not in module.imports:
        return None
    name = qualified(module, func)
    if name.startswith(_FETCHED) and end[:1].isupper():
        return _fetched(call)
    if end not in NAMES and last(name) not in NAMES:
        return None
    if (last(name) or end) == "open" or name in OPENERS:
        return _opened(module, call, name)
    if name in SHELLS:
        return _by_the_shell(call)
    known = _FUNCTIONS.get(name)
    if known is None and isinstance(call.func, ast.Attribute) and not name.startswith(("numpy.", "torch.", "os.")):
        known = _METHODS.get(end)
        if end == "exists" and not call.args:
            known = Act.ASKS, -1
        if end == "from_pretrained" and len(call.args) > 1:  # PeftModel.from_pretrained(model, folder)
            known = Act.LOADS, 1
    if known is None and end == "save" and saves_itself(module, func):
        known = Act.WRITES, 0
    if known is None and end == "dump" and dumps_config(module, func):
        known = Act.WRITES, 0
    if known is None and end == "save_model" and is_tokenizer(module, func):
        known = Act.FILLS, 0
    if known is None and end in _FETCHERS and len(call.args) > 1 and _ADDRESS.search(ast.unparse(call.args[0])):
        known = Act.WRITES, 1
    if known is None:
        return None
    if name == "numpy.memmap" and _is_made(call):
        known = Act.WRITES, 0
    path = _argument(call, known[1])
    if path is None or (end == "to_excel" and is_writer(module, path)):
        return None  # the tables go into a file that is open
    return FileCall(call, path, known[0])


def copied_from(module: SourceModule, call: ast.Call) -> FileCall | None:
    """The path that a copy or a move takes its content from; None for other calls."""
    act = _COPIES.get(qualified(module, call.func))
    source = _argument(call, 0) if act is not None and call.args else None
    return FileCall(call, source, act) if act is not None and source is not None else None


def _is_made(call: ast.Call) -> bool:
    """True for an array in a file that is made anew, empty, and filled later."""
    mode = next((k.value for k in call.keywords if k.arg == "mode"), call.args[2] if len(call.args) > 2 else None)
    return isinstance(mode, ast.Constant) and mode.value == "w+"


def _argument(call: ast.Call, position: int) -> ast.expr | None:
    if position == -1:
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        return None if isinstance(holder, ast.Name) and holder.id in ("self", "cls") else holder  # a method of its own class
    if len(call.args) > position and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return call.args[position]
    if len(call.args) <= position and _hands_on(call):  # `torch.save(*args)` of a helper
        return call.args[-1]
    return next((k.value for k in call.keywords if k.arg in _KEYWORDS), None)


def _hands_on(call: ast.Call) -> bool:
    """True where the last argument is `*args` and no other is taken apart."""
    starred = [a for a in call.args if isinstance(a, ast.Starred)]
    return len(starred) == 1 and starred[0] is call.args[-1] and isinstance(starred[0].value, ast.Name)


def handed_on(module: SourceModule, starred: ast.Starred) -> int | None:
    """Which of the arguments that `*args` stands for is the path of the call that it is handed on to."""
    call = module.parent(starred)
    known = _FUNCTIONS.get(qualified(module, call.func)) if isinstance(call, ast.Call) else None
    return known[1] - (len(call.args) - 1) if known is not None and isinstance(call, ast.Call) else None


def _fetched(call: ast.Call) -> FileCall | None:
    root = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "root"), None)
    if root is None:
        return None
    download = next((k.value for k in call.keywords if k.arg == "download"), None)
    fills = isinstance(download, ast.Constant) and download.value is True
    return FileCall(call, root, Act.FILLS if fills else Act.LOADS)


def _by_the_shell(call: ast.Call) -> FileCall | None:
    """`os.system(f"rm -rf {folder}")`, `subprocess.run(["rm", "-rf", folder])`: one folder, taken away."""
    command = call.args[0] if call.args else None
    path: ast.expr | None = None
    if isinstance(command, (ast.List, ast.Tuple)) and len(command.elts) >= 3:
        words = [w.value for w in command.elts[:-1] if isinstance(w, ast.Constant) and isinstance(w.value, str)]
        if len(words) == len(command.elts) - 1 and _TAKES_AWAY.fullmatch(" ".join(words) + " "):
            path = command.elts[-1]
    elif isinstance(command, ast.JoinedStr) and len(command.values) in (2, 3):
        head, value = command.values[:2]
        ends = [v.value for v in command.values[2:] if isinstance(v, ast.Constant)]
        closed = len(ends) == len(command.values) - 2 and all(str(e).strip("\"' ") == "" for e in ends)
        if closed and isinstance(head, ast.Constant) and _TAKES_AWAY.fullmatch(str(head.value)):
            path = value.value if isinstance(value, ast.FormattedValue) else None
    elif isinstance(command, ast.BinOp) and isinstance(command.op, ast.Add) and isinstance(command.left, ast.Constant):
        path = command.right if _TAKES_AWAY.fullmatch(str(command.left.value)) else None
    return FileCall(call, path, Act.REMOVES) if path is not None else None


def _opened(module: SourceModule, call: ast.Call, name: str) -> FileCall | None:
    """`open(path, mode)`, `path.open(mode)`, `store.open(path, mode)`, and archives that are opened in the same way."""
    if name == "PIL.Image.open" and call.args:
        return FileCall(call, call.args[0], Act.READS)
    if name.startswith(_NO_FILE):
        return None
    if name == "lmdb.open" and (database := _argument(call, 0)) is not None:
        return FileCall(call, database, Act.WRITES if is_filled(module, call) else Act.READS)
    opened = opened_by(module, call, with_path=name in OPENERS)
    mode, path = opened.mode, opened.path
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else "r" if mode is None else ""
    if not text or path is None:
        return None
    return FileCall(call, path, Act.WRITES if any(letter in text for letter in "wax") else Act.READS)


def names_the_rank(path: ast.expr) -> bool:
    """True where the path holds the rank, or is made for one process alone: each rank has its own."""
    for node in walk(path):
        word = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if "rank" in word or word in ("getpid", "mkdtemp", "mkstemp", "TemporaryDirectory", "process_index", "uuid4"):
            return True
    return False


def meets(written: Act, made: str, used: Act, path: str) -> bool:
    """True where a use of `path` on another rank needs the change of `made`, or is undone by it."""
    same, below, above = path == made, path.startswith(f"{made}/"), made.startswith(f"{path}/")
    if used is Act.LISTS and _WILD.search(path):
        return written is not Act.MAKES and _may_match(path, made, whole=written is Act.FILLS)
    if written is Act.WRITES:
        if used is Act.READS:
            return same
        return (used is Act.ASKS and same) or (used is Act.LISTS and above) or (used is Act.LOADS and (same or above))
    if written is Act.FILLS:
        if used is Act.LISTS:
            return same or below or above
        return used in (Act.READS, Act.LOADS, Act.ASKS) and (same or below)
    if written is Act.MAKES:
        return (used is Act.WRITES and below) or (used is Act.LISTS and same)  # who asks for a folder finds it, or makes it
    if used is Act.LISTS:
        return same or above
    return used in (Act.WRITES, Act.FILLS, Act.MAKES, Act.READS, Act.LOADS) and (same or below)


def _may_match(pattern: str, made: str, *, whole: bool) -> bool:
    """True where `glob(pattern)` may find what was made, by the text before the first wildcard and behind the last.

    whole: a folder was filled, and what lies in it counts.
    """
    head, tail = _WILD.split(pattern, maxsplit=1)[0], re.split(r"[*?\]/]", pattern)[-1]
    if whole and (head.startswith((made, f"{made}/")) or made.startswith(head)):
        return bool(head)
    unknown = made.endswith(">") or ">" in tail
    return bool(head.strip("./")) and made.startswith(head) and (unknown or made.endswith(tail))


def settles(written: Act, made: str, again: Act, path: str) -> bool:
    """True where every rank makes for itself what rank 0 made before."""
    if written is Act.MAKES:
        return again in (Act.MAKES, Act.FILLS) and (path == made or path.startswith(f"{made}/"))
    return again is written and path == made
