"""Look at the data before training: samples with their labels, augmentation, statistics.

    {prog}                  the first training batch, as the network gets it
    {prog} split=val        the first validation batch
    {prog} experiment=NAME  the data of an experiment; every word that train takes

`preview/` gets `batch.png`, `augmented.png` (training samples, as they are and augmented) and `labels.png` (how often
each label occurs). Label counts and pixel statistics are printed, and a warning for inputs that are not normalised,
classes without samples or with few, labels that are no class, and samples that are in two splits. Where classes are
very unequal, `model.class_weights=[...]` is printed with the weights that make them count alike.
"""

import hydra
from omegaconf import DictConfig

from ..engine.hydra_command import hydra_job


@hydra.main(version_base="1.3", config_path="../configs", config_name="preview")
@hydra_job
def main(config: DictConfig) -> None:
    from ..engine.config import plain
    from ..engine.preview import preview

    preview(plain(config))
