"""Find a learning rate: raise it from step to step, and see where the loss falls fastest.

    {prog}                                for the training with the defaults
    {prog} optimizer=sgd model=mlp        for another one: it takes every word that `train` takes
    {prog} max_lr=10 steps=200            over other rates

It prints the line that trains with the rate, draws `learning_rate.png`, and leaves nothing else.
"""

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ..engine.hydra_command import hydra_job


@hydra.main(version_base="1.3", config_path="../configs", config_name="find_lr")
@hydra_job
def main(config: DictConfig) -> None:
    from ..engine.find_lr import find_lr

    find_lr(config, HydraConfig.get().overrides.task)
