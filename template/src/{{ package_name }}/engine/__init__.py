"""The template's machinery. `copier update` keeps it current; nobody needs to edit it.

`docs/tour.md` says what each file does.
"""
