"""Find the largest batch size that fits into the memory of a device.

    {prog}                                for the training with the defaults
    {prog} amp=bf16 model=mlp             for another one: it takes every word that `train` takes
    {prog} mode=binsearch start=64        to a single sample, from 64 on

It trains a few steps with each size, prints the line that trains with the largest, and leaves nothing.
"""

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ..engine.hydra_command import hydra_job


@hydra.main(version_base="1.3", config_path="../configs", config_name="find_batch_size")
@hydra_job
def main(config: DictConfig) -> None:
    from ..engine.find_batch_size import find_batch_size

    find_batch_size(config, HydraConfig.get().overrides.task)
