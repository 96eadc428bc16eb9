"""Train a model, then test its best checkpoint."""

from __future__ import annotations

from typing import Any

import hydra
from omegaconf import DictConfig

from ..engine.launch import launch


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config: DictConfig) -> Any:
    return launch(config).get("best_score")
