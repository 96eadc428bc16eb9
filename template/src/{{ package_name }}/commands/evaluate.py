"""Evaluate a trained model, from its run or its checkpoint alone."""

from typing import Any, cast

import hydra
from omegaconf import DictConfig, OmegaConf

from ..engine.hydra_command import hydra_job


@hydra.main(version_base="1.3", config_path="../configs/commands", config_name="evaluate")
@hydra_job
def main(config: DictConfig) -> None:
    from ..engine.evaluate import evaluate

    evaluate(cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True, throw_on_missing=True)))
