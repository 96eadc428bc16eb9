"""Answer over HTTP what a trained network predicts, until it is told to stop."""

from typing import Any, cast

import hydra
from omegaconf import DictConfig, OmegaConf

from ..engine.hydra_command import hydra_job


@hydra.main(version_base="1.3", config_path="../configs/commands", config_name="serve")
@hydra_job
def main(config: DictConfig) -> None:
    from ..engine.serving.serve import serve

    serve(cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True, throw_on_missing=True)))
