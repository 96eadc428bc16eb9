"""Yours: data modules and datasets. An update of the template never touches this folder."""
