"""What configs may ask while they are composed: `${image_classes:FOLDER,TABLE}` is the number of classes there."""

from omegaconf import OmegaConf

from .images.classes import count_classes

OmegaConf.register_new_resolver("image_classes", count_classes, replace=True, use_cache=True)
