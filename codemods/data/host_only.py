"""Packages and functions that never talk to another process, and what of them writes. Data only, no code.

A call that is in none of these tables, and in no project file, is unknown.
"""

from __future__ import annotations

# Everything in these packages works on the host, for this process alone, without PyTorch's random numbers.
PACKAGES = frozenset(
    {
        "argparse", "array", "base64", "bisect", "bokeh", "calendar", "collections", "colorama", "configparser",
        "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions",
        "functools", "getpass", "glob", "gzip", "hashlib", "heapq", "html", "imageio", "inspect", "io", "itertools",
        "json", "locale", "math", "matplotlib", "numbers", "omegaconf", "operator", "orjson", "pandas", "pathlib",
        "PIL", "pickle", "platform", "plotly", "pprint", "prettytable", "psutil", "pynvml", "pytz", "re", "rich",
        "seaborn", "shutil", "socket", "statistics", "string", "struct", "tabulate", "tarfile", "tempfile",
        "termcolor", "textwrap", "time", "tomllib", "tqdm", "traceback", "typing", "typing_extensions", "types",
        "ujson", "unicodedata", "uuid", "warnings", "yaml", "zipfile", "zlib", "mlflow", "wandb",
    }
)  # fmt: skip

# Parts of wider packages, by prefix.
PREFIXES = (
    "os.path.", "sklearn.metrics.", "torchvision.utils.", "torch.utils.tensorboard.", "tensorboardX.", "scipy.io.",
    "skimage.io.", "skimage.transform.", "numpy.", "cv2.", "torchvision.io.", "torchvision.transforms.functional.",
)  # fmt: skip

# `os` and `sys` hold much that ends, forks or configures the process: these only look.
LOOKS = frozenset(
    {
        "os.getcwd", "os.getenv", "os.getpid", "os.listdir", "os.scandir", "os.walk", "os.stat", "os.cpu_count",
        "os.fspath", "os.environ.get", "os.sep", "os.access", "os.uname", "os.getloadavg", "os.get_terminal_size",
        "sys.getsizeof", "torch.cuda.memory_allocated", "torch.cuda.max_memory_allocated",
        "torch.cuda.memory_reserved", "torch.cuda.max_memory_reserved", "torch.cuda.get_device_name",
        "torch.cuda.device_count", "torch.cuda.is_available", "torch.cuda.get_device_properties",
        "torch.cuda.current_device", "torch.cuda.memory_summary", "torch.cuda.mem_get_info", "torch.cuda.synchronize",
        "torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.distributed.is_initialized",
        "torch.distributed.is_available", "torch.distributed.get_rank", "torch.distributed.get_world_size",
    }
)  # fmt: skip

# Functions that write, delete or rename.
WRITERS = frozenset(
    {
        "os.mkdir", "os.makedirs", "os.remove", "os.unlink", "os.rename", "os.renames", "os.replace", "os.rmdir",
        "os.removedirs", "os.symlink", "os.link", "os.truncate", "os.chmod", "shutil.copy", "shutil.copy2",
        "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.rmtree", "shutil.make_archive", "json.dump",
        "ujson.dump", "pickle.dump", "yaml.dump", "yaml.safe_dump", "yaml.dump_all", "numpy.save", "numpy.savez",
        "numpy.savez_compressed", "numpy.savetxt", "matplotlib.pyplot.savefig", "matplotlib.pyplot.imsave",
        "cv2.imwrite", "imageio.imwrite", "imageio.imsave", "imageio.mimsave", "imageio.mimwrite",
        "imageio.v2.imwrite", "imageio.v2.mimsave", "imageio.v3.imwrite", "skimage.io.imsave",
        "scipy.io.wavfile.write", "scipy.io.savemat", "soundfile.write", "torchaudio.save",
        "torchvision.utils.save_image", "torchvision.io.write_video", "torchvision.io.write_png",
        "torchvision.io.write_jpeg", "torchvision.io.write_file", "omegaconf.OmegaConf.save",
        "safetensors.torch.save_file", "safetensors.torch.save_model", "torch.jit.save", "torch.onnx.export",
        "joblib.dump", "torch.save", "plotly.io.write_html", "plotly.io.write_image",
        "tarfile.open", "zipfile.ZipFile", "csv.writer", "csv.DictWriter",
    }
)  # fmt: skip
# Not a write of their own: what they are given was opened for writing, or not.
ON_A_HANDLE = frozenset({"csv.writer", "csv.DictWriter", "tarfile.open", "zipfile.ZipFile"})

# Methods that write, whatever they are called on.
WRITING_METHODS = frozenset(
    {
        "write", "writelines", "writerow", "writerows", "writeheader", "write_text", "write_bytes", "to_csv",
        "to_json", "to_excel", "to_parquet", "to_pickle", "to_feather", "to_hdf", "to_html", "to_latex", "savefig",
        "imsave", "write_html", "write_image", "unlink", "rmdir", "touch", "symlink_to", "mkdir", "flush", "tofile",
        "imwrite", "save_pretrained", "to_json_file",
    }
)  # fmt: skip

# SummaryWriter and its like. A logger of Lightning does these on rank 0 only.
TRACKER_METHODS = frozenset(
    {
        "add_scalar", "add_scalars", "add_image", "add_images", "add_figure", "add_text", "add_histogram",
        "add_graph", "add_video", "add_audio", "add_embedding", "add_hparams", "add_pr_curve", "add_mesh",
        "add_custom_scalars",
    }
)  # fmt: skip
LOGGER_METHODS = frozenset(
    {
        "log_metrics", "log_hyperparams", "log_image", "log_images", "log_text", "log_table", "log_graph",
        "log_audio", "log_video", "watch", "unwatch", "after_save_checkpoint",
    }
)  # fmt: skip
TRACKER_FUNCTIONS = frozenset(
    {
        "wandb.log", "wandb.save", "wandb.log_artifact", "wandb.alert", "wandb.finish", "mlflow.log_metric",
        "mlflow.log_metrics", "mlflow.log_param", "mlflow.log_params", "mlflow.log_artifact", "mlflow.log_figure",
        "mlflow.log_dict",
    }
)  # fmt: skip
LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "success", "trace"})
# What runs the forward of the model that it is handed, to see what it does.
RUNS_THE_MODEL = frozenset(
    {"torch.onnx.export", "torch.onnx.dynamo_export", "torch.jit.trace", "torch.jit.trace_module", "torch.export.export",
     "torchinfo.summary", "torchsummary.summary", "torchsummaryX.summary", "thop.profile", "ptflops.get_model_complexity_info",
     "fvcore.nn.FlopCountAnalysis"}
)  # fmt: skip
# What decides whether the lines of a logger are written anywhere: on rank 0 alone it takes the other ranks' lines away.
SETS_UP_LOGGING = frozenset({"basicConfig", "dictConfig", "fileConfig", "disable", "captureWarnings"})
SETS_UP_LOGGER = frozenset({"addHandler", "removeHandler", "setLevel"})

# Random numbers: on rank 0 alone they set that rank's sequence apart from the others'.
RANDOM_PREFIXES = ("random.", "numpy.random.")
RANDOM = frozenset(
    {
        "torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.rand_like", "torch.randn_like",
        "torch.randint_like", "torch.multinomial", "torch.normal", "torch.bernoulli", "torch.poisson",
        "torch.manual_seed", "torch.seed", "torch.set_rng_state", "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all", "torch.utils.data.random_split", "torch.nn.functional.dropout",
    }
)  # fmt: skip

BUILTINS = frozenset(
    {
        "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict",
        "dir", "divmod", "enumerate", "filter", "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex",
        "id", "int", "isinstance", "issubclass", "len", "list", "map", "max", "min", "object", "oct", "ord", "pow",
        "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "type",
        "vars", "zip", "Exception", "ValueError", "RuntimeError", "TypeError", "KeyError", "NotImplementedError",
        "FileNotFoundError", "iter", "locals", "globals",
    }
)  # fmt: skip

# Methods of strings, containers, dates, paths, arrays, tensors and modules that change nothing, whatever they are called on.
PURE_METHODS = frozenset(
    {
        "absolute", "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "as_posix", "astimezone", "astype",
        "buffers", "bool", "bytes", "capitalize", "casefold", "center", "chunk", "children", "clamp", "clip", "clone",
        "contiguous", "copy", "count", "cpu", "cuda", "date", "decode", "detach", "difference", "dim", "double",
        "element_size", "encode", "endswith", "exists", "expand", "expanduser", "extra_repr", "flatten", "float",
        "format", "get", "get_last_lr", "get_lr", "glob", "half", "hexdigest", "index", "indices", "int",
        "intersection", "is_dir", "is_file", "isalnum", "isalpha", "isdigit", "isfinite", "isoformat", "isnan",
        "item", "items", "iterdir", "join", "joinpath", "keys", "ljust", "long", "lower", "lstrip", "match", "max",
        "mean", "median", "min", "modules", "most_common", "named_buffers", "named_children", "named_modules",
        "named_parameters", "nelement", "norm", "norm_squared", "numel", "numpy", "parameters", "partition",
        "permute", "product", "quantile", "read", "readline", "readlines", "read_text", "relative_to", "replace",
        "reshape", "resolve", "rfind", "rglob", "rjust", "round", "rpartition", "rsplit", "rstrip", "search", "shape",
        "size", "softmax", "sigmoid", "split", "splitlines", "sqrt", "square", "squeeze", "startswith", "stat",
        "state_dict", "std", "strftime", "strip", "sub", "sum", "swapcase", "tell", "timestamp", "title", "to",
        "tolist", "topk", "total_seconds", "transpose", "union", "unique", "unsqueeze", "upper", "values", "var",
        "view", "with_name", "with_suffix", "zfill", "find", "groups", "group", "eq", "ne", "gt", "lt", "ge", "le",
        "abs", "diag", "dot", "matmul", "__len__", "isdecimal", "removeprefix", "removesuffix", "seek", "is_absolute",
        "isatty", "is_relative_to", "with_stem", "is_symlink", "fileno", "elapsed_time", "type", "is_floating_point",
        "requires_grad", "data_ptr",
    }
)  # fmt: skip

# Functions of these packages that change what they are given: on rank 0 alone the ranks would go on with different values.
CHANGES_ARGUMENT = frozenset(
    {
        "omegaconf.OmegaConf.update", "omegaconf.OmegaConf.set_struct", "omegaconf.OmegaConf.set_readonly",
        "omegaconf.OmegaConf.resolve", "omegaconf.OmegaConf.set_type", "omegaconf.OmegaConf.set_cache",
        "omegaconf.OmegaConf.unsafe_merge", "heapq.heappush", "heapq.heappop", "heapq.heapify", "heapq.heappushpop",
        "heapq.heapreplace", "bisect.insort", "bisect.insort_left", "bisect.insort_right", "operator.setitem",
        "operator.delitem", "operator.iadd", "operator.ior", "numpy.copyto", "numpy.put", "numpy.place",
        "numpy.putmask", "numpy.fill_diagonal", "numpy.put_along_axis", "struct.pack_into", "functools.update_wrapper",
        "cv2.rectangle", "cv2.putText", "cv2.circle", "cv2.line", "cv2.polylines", "cv2.fillPoly", "cv2.ellipse",
        "cv2.drawContours", "cv2.arrowedLine", "cv2.drawMarker", "cv2.normalize",
    }
)  # fmt: skip

# Methods that change what they are called on: harmless on an object the function has just made.
MUTATORS = frozenset(
    {
        "append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear",
        "update", "add", "setdefault", "sort", "reverse", "rotate", "close", "fill", "put", "zero_", "copy_", "fill_",
        "add_", "mul_", "div_",
    }
)  # fmt: skip
