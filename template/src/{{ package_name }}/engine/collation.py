"""What becomes of samples in a batch: torch's rules, with one line for what they cannot take."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from .errors import UserError
from .first_batch import describe


def collate(samples: list[Any]) -> Any:
    """Stacks tensors, arrays and numbers of all samples, through dicts, lists and tuples; words become a list.

    Python's floats and arrays of doubles become numbers of torch's default type, float32, in which networks compute;
    `torch.set_default_dtype(torch.float64)` keeps doubles.

    Raises:
        UserError: samples of unequal size or of a type that is no number.
    """
    try:
        return _without_doubles(default_collate(samples))
    except (TypeError, RuntimeError, KeyError, ValueError) as error:
        first, other = samples[0], _unlike(samples)
        if other is None:
            if not isinstance(error, TypeError):
                raise
            raise UserError(
                f"a sample {_describe(first)} holds what is no number: let the dataset return tensors, arrays or "
                "numbers, as torch.from_numpy(numpy.array(image)) of a PIL image, or override collate of the data "
                "module"
            ) from error
        raise UserError(
            f"samples differ, one is {_describe(first)} and one is {_describe(other)}: make them alike in the dataset, "
            "or override collate of the data module, which may pad them"
        ) from error


def _without_doubles(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(torch.get_default_dtype()) if batch.dtype == torch.float64 else batch
    if isinstance(batch, dict):
        return {key: _without_doubles(part) for key, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_without_doubles, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(_without_doubles, batch))
    return batch


def _unlike(samples: list[Any]) -> Any:
    """The first sample of another description than the first one's; None where all are alike."""
    wanted = _describe(samples[0])
    return next((sample for sample in samples if _describe(sample) != wanted), None)


def _describe(sample: Any) -> str:
    """As `first_batch.describe`, with the shapes of arrays as well."""
    if isinstance(sample, dict):
        return f"{{{', '.join(f'{key}: {_describe(part)}' for key, part in sample.items())}}}"
    if isinstance(sample, (list, tuple)):
        return f"({', '.join(map(_describe, sample))})"
    if not isinstance(sample, Tensor) and hasattr(sample, "shape") and hasattr(sample, "dtype"):
        return f"{list(sample.shape)} {sample.dtype}"
    return describe(sample)
