"""Train a model, then test its best checkpoint."""

from typing import Any

import hydra
from omegaconf import DictConfig

from ..engine.features import feature
from ..engine.hydra_command import hydra_job
from ..engine.launch import launch

trials = feature("sweeps", "trials")


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
@hydra_job
def main(config: DictConfig) -> Any:
    return launch(config).get("best_score") if trials is None else trials.run_trial(config, launch)
