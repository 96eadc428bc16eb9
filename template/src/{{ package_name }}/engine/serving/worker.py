"""The process beside a device that holds the network. Only this one imports torch: the others start without it."""

import logging
import signal
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
from litserve import LitAPI
from numpy.typing import NDArray

from .. import logs
from ..errors import UserError
from .batches import Batches
from .endpoint import Endpoint
from .facts import Facts


class Worker(LitAPI):
    """Loads the checkpoint on its device, then answers batch after batch.

    Args:
        news: Where the worker leaves its Facts, or the UserError that kept it from loading.
        threads: Threads of an operation on the CPU, at most.
    """

    def __init__(
        self,
        checkpoint: Path,
        trusted: list[str],
        batches: Batches,
        endpoint: Endpoint,
        news: "Queue[Facts | UserError]",
        threads: int,
    ) -> None:
        super().__init__(spec=endpoint, loop=batches)
        self.checkpoint = checkpoint
        self.trusted = trusted
        self.batches = batches
        self.news = news
        self.threads = threads

    def setup(self, device: str) -> None:
        """Makes the network ready; its first batch, which is slow, is one that nobody waits for."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one says who ends when
        import torch

        from ..deployed import load_deployed

        logs.configure(directory=None, rank=1)
        torch.set_num_threads(min(self.threads, torch.get_num_threads()))
        self.place = torch.device(device)
        try:
            network = load_deployed(self.checkpoint, self.trusted)
        except UserError as error:
            self.news.put(error)
            logging.getLogger("litserve").setLevel(logging.CRITICAL)  # its traceback would say nothing more
            raise
        self.network = network.to(self.place)
        facts = Facts(list(network.class_names), network.shape)
        self.predict(np.zeros((1, *facts.shape), np.uint8))
        self.news.put(facts)
        self.news.cancel_join_thread()  # of a worker that took the place of another, nobody reads them
        self.batches.stop_when_idle()

    def predict(self, x: NDArray[np.uint8], **kwargs: Any) -> NDArray[np.float32]:
        """Maps images `[N, C, H, W]` to probabilities `[N, classes]`, at most a batch at a time."""
        import torch

        with torch.inference_mode():
            parts = torch.from_numpy(x).split(self.batches.batch_size)
            return torch.cat([self.network(part.to(self.place)).float().cpu() for part in parts]).numpy()
