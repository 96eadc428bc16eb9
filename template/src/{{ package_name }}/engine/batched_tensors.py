"""A dataset that lies in memory and is read a batch at a time."""

from torch import Tensor, as_tensor
from torch.utils.data import Dataset


class BatchedTensors(Dataset[tuple[Tensor, ...]]):
    """Tensors of equal length; a batch is one indexing of each, not one of every sample.

    On a small model it saves as much as the forward pass costs: 64 samples of `TensorDataset` are 64 indexings and a
    stack.

    Args:
        tensors: Each `[N, ...]`; sample i is the tuple of their i-th rows.
    """

    def __init__(self, *tensors: Tensor) -> None:
        if len({len(tensor) for tensor in tensors}) != 1:
            raise ValueError(f"the tensors differ in length: {[len(tensor) for tensor in tensors]}")
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: list[int]) -> tuple[Tensor, ...]:
        rows = as_tensor(indices)
        return tuple(tensor[rows] for tensor in self.tensors)
