"""Folders of images: found, split, read as whole uint8 batches, made ready on the device."""
