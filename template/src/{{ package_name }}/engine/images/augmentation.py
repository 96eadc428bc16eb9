"""Random numbers of augmentation: a function of seed, epoch, batch and rank, and apart from everybody else's."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from lightning.pytorch import Trainer

from ..sampling import BATCH_STRIDE, EPOCH_STRIDE

AUGMENTS = 7919  # a prime keeps the key apart from those of the workers


class AugmentationSeed:
    """Seeds torch's numbers for one batch at a time; a run that goes on augments as if it had never stopped.

    A batch that comes again before the next, as in `preview`, gets other numbers.

    Args:
        seed: The data's.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._last: tuple[int, int] | None = None
        self._again = 0

    @contextmanager
    def batch_of(self, trainer: Trainer) -> Generator[None]:
        """Within it, torch's generator of the CPU, which kornia draws from, is this batch's; then it is as before."""
        place = trainer.current_epoch, trainer.fit_loop.epoch_loop.batch_progress.current.ready
        self._again = self._again + 1 if place == self._last else 0
        self._last = place
        key = (self.seed * EPOCH_STRIDE + place[0]) * BATCH_STRIDE + place[1]
        key = (key * trainer.world_size + trainer.global_rank) * AUGMENTS + self._again
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(key % 2**63)  # `torch.manual_seed` would seed the GPUs as well
        try:
            yield
        finally:
            torch.set_rng_state(state)
