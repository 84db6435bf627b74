"""What PyTorch's own modules and functions do to a gradient: which hold parameters, which pass gradients on, which stop them.

From the constructors and docs of torch 2.13; names only, so older versions are covered too.
"""

from __future__ import annotations

# torch.nn classes with parameters, all of which take part in every call.
PARAMETRISED = frozenset(
    {
        "Linear", "Bilinear", "LazyLinear", "Embedding", "EmbeddingBag", "PReLU", "Conv1d", "Conv2d", "Conv3d",
        "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LayerNorm",
        "GroupNorm", "RMSNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
        "SyncBatchNorm", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "MultiheadAttention", "Transformer",
        "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer",
    }
)  # fmt: skip
# Parameters only where the argument is true; the second value is the default.
AFFINE = {
    "LayerNorm": ("elementwise_affine", True),
    "RMSNorm": ("elementwise_affine", True),
    "GroupNorm": ("affine", True),
    "BatchNorm1d": ("affine", True),
    "BatchNorm2d": ("affine", True),
    "BatchNorm3d": ("affine", True),
    "InstanceNorm1d": ("affine", False),
    "InstanceNorm2d": ("affine", False),
    "InstanceNorm3d": ("affine", False),
}
# One parameter only, so reading `.weight` uses all of it.
ONE_PARAMETER = frozenset({"Embedding", "EmbeddingBag", "PReLU", "RMSNorm"})
# torch.nn classes without buffers, whatever they are given.
WITHOUT_BUFFERS = frozenset(
    {
        "Linear", "Bilinear", "Embedding", "EmbeddingBag", "PReLU", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
        "ConvTranspose2d", "ConvTranspose3d", "LayerNorm", "GroupNorm", "RMSNorm", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell",
        "RNNCell", "MultiheadAttention", "Identity", "Flatten", "Unflatten", "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU",
        "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softplus", "Softmax", "LogSoftmax", "Hardtanh", "Hardswish", "Hardsigmoid",
        "GLU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "MaxPool1d", "MaxPool2d", "MaxPool3d",
        "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "Upsample", "PixelShuffle", "ZeroPad2d",
        "ReflectionPad1d", "ReflectionPad2d", "ReplicationPad2d",
    }
)  # fmt: skip
# Modules that hold what they are given.
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Module", "Parameter"})
# Which gradients reach which output differs, or which parameters take part depends on the batch.
UNSURE = frozenset({"AdaptiveLogSoftmaxWithLoss"})
# Modules whose first output depends on every parameter, the others not (MultiheadAttention: the weights).
FIRST_OUTPUT_ONLY = frozenset({"MultiheadAttention"})

# Wrappers that return the module they are given.
REPARAMETRISATIONS = frozenset({"weight_norm", "spectral_norm", "orthogonal", "skip_init", "remove_weight_norm"})
# Methods of a module that return the module itself.
RETURNS_SELF = frozenset(
    {"to", "cuda", "cpu", "eval", "train", "float", "half", "bfloat16", "double", "apply", "requires_grad_", "type", "xpu",
     "share_memory"}
)  # fmt: skip

# torch functions (last name) whose result carries no gradient of their arguments.
STOPPING_FUNCTIONS = frozenset(
    {
        "argmax", "argmin", "argsort", "zeros_like", "ones_like", "rand_like", "randn_like", "randint_like", "empty_like",
        "full_like", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "arange", "linspace",
        "logspace", "eye", "tensor", "as_tensor", "from_numpy", "bernoulli", "multinomial", "one_hot", "isnan", "isinf",
        "isfinite", "eq", "ne", "gt", "lt", "ge", "le", "logical_and", "logical_or", "logical_not", "any", "all",
        "nonzero", "bincount", "searchsorted", "bucketize", "is_tensor", "is_grad_enabled", "is_autocast_enabled",
        "sign", "floor", "ceil", "round", "count_nonzero", "histc", "unique", "device", "Size", "is_available",
        "get_rank", "get_world_size", "all_gather", "all_reduce", "broadcast", "barrier", "finfo", "iinfo", "numel",
        "heaviside", "isclose", "allclose", "equal",
    }
)  # fmt: skip
# Functions whose results each carry the gradient of some arguments only, or that run something else.
NOT_FOLLOWED = frozenset(
    {"broadcast_tensors", "meshgrid", "align_tensors", "compile", "script", "trace", "vmap", "grad", "functional_call"}
)
# Methods of a tensor whose result carries no gradient.
STOPPING_METHODS = frozenset(
    {
        "detach", "detach_", "item", "tolist", "numpy", "size", "dim", "numel", "argmax", "argmin", "argsort", "long",
        "int", "bool", "byte", "short", "nonzero", "any", "all", "eq", "ne", "gt", "lt", "ge", "le", "new_zeros",
        "new_ones", "new_full", "new_empty", "new_tensor", "is_floating_point", "stride", "ndimension", "unique",
        "sign", "floor", "ceil", "round", "isnan", "isinf", "isfinite", "multinomial", "bernoulli", "get_device",
        "data_ptr", "is_contiguous", "backward", "bincount", "logical_not", "logical_and", "logical_or",
    }
)  # fmt: skip
# Methods that only a tensor has, so the receiver needs no proof that it is one.
TENSOR_METHODS = frozenset(
    {
        "matmul", "mm", "bmm", "addmm", "baddbmm", "mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "expand_as",
        "view_as", "reshape_as", "type_as", "to", "masked_fill", "masked_fill_", "masked_select", "masked_scatter", "scatter",
        "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_", "index_select", "index_put", "index_put_",
        "gather", "where", "lerp", "copy_", "fill_", "pow", "dot", "outer", "ger", "mv", "addcmul", "addcdiv", "maximum",
        "minimum", "clamp", "atan2", "take_along_dim", "split", "chunk", "unbind", "tensor_split", "__add__", "__mul__",
        "softmax", "log_softmax", "cosine_similarity", "index_copy", "index_copy_", "index_fill", "true_divide", "multiply",
    }
)  # fmt: skip
STOPPING_ATTRIBUTES = frozenset(
    {"data", "shape", "dtype", "device", "ndim", "grad", "is_cuda", "requires_grad", "layout", "grad_fn", "names"}
)
# Builtins whose result carries no gradient, and those that hand their arguments on.
STOPPING_BUILTINS = frozenset(
    {"len", "int", "float", "bool", "str", "isinstance", "issubclass", "hasattr", "type", "id", "print", "repr", "range",
     "callable", "format", "hash", "round", "any", "all", "open"}
)  # fmt: skip
PASSING_BUILTINS = frozenset(
    {"sum", "list", "tuple", "dict", "set", "abs", "reversed", "pow", "iter"}
)
# Libraries whose functions pass gradients from every tensor argument to the result.
DIFFERENTIABLE_FAMILIES = frozenset({"einops"})
# Contexts in which nothing is recorded.
NO_GRAD = frozenset({"no_grad", "inference_mode"})

# Decorators that leave the gradients of a function alone.
HARMLESS_DECORATORS = frozenset(
    {"property", "cached_property", "staticmethod", "classmethod", "override", "abstractmethod", "overload", "wraps", "setter",
     "export", "ignore", "unused", "autocast", "custom_fwd", "disable", "typechecked", "beartype", "jaxtyped",
     "force_fp32", "auto_fp16", "deprecated", "add_start_docstrings", "add_start_docstrings_to_model_forward",
     "replace_return_docstrings", "auto_docstring", "can_return_tuple", "record_function", "script", "script_if_tracing"}
)  # fmt: skip

# torchvision models that hold no branch and no auxiliary head: the result depends on every parameter.
WHOLE_MODELS = frozenset(
    {
        "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d",
        "wide_resnet50_2", "wide_resnet101_2", "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn",
        "vgg19_bn", "alexnet", "densenet121", "densenet169", "densenet201", "mobilenet_v2", "mobilenet_v3_small",
        "mobilenet_v3_large", "squeezenet1_0", "squeezenet1_1", "shufflenet_v2_x1_0", "vit_b_16", "vit_b_32", "vit_l_16",
    }
)  # fmt: skip
