# state.py - an optimizer's state as JSON and tensors
# SPDX-License-Identifier: BSD-3-Clause
"""A pickle can execute code of the rank that sent it, so optimizer states
travel as a tree of lists in JSON, and their tensors separately."""
import numbers

import torch


def to_tree(value, tensors):
    """Return the tree of a value, and append its tensors to the list.  Raise
    TypeError for anything except tensors, numbers, strings, None, and dicts,
    lists and tuples of them."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        return ["tensor", str(value.dtype)[6:], list(value.shape)]
    if isinstance(value, dict):
        return ["dict", [[to_tree(k, tensors), to_tree(v, tensors)]
                         for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return ["tuple" if isinstance(value, tuple) else "list",
                [to_tree(v, tensors) for v in value]]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numbers.Real):  # a number of numpy
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    raise TypeError(f"a {type(value).__name__} in the optimizer's state cannot "
                    f"be sent, only tensors, numbers and texts; "
                    f"broadcast_object sends anything")


def from_tree(tree, tensors):
    """Return the value of a tree, and append its tensors, which have no content
    yet, to the list."""
    if not isinstance(tree, list):
        return tree
    kind, *rest = tree
    if kind == "tensor":
        dtype = getattr(torch, rest[0], None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"unknown dtype torch.{rest[0]}")
        tensors.append(torch.empty(rest[1], dtype=dtype))
        return tensors[-1]
    if kind == "dict":
        return {from_tree(k, tensors): from_tree(v, tensors)
                for k, v in rest[0]}
    values = [from_tree(v, tensors) for v in rest[0]]
    return tuple(values) if kind == "tuple" else values
