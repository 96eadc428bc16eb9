"""One file a command: the first line of its docstring describes it, and its `main()` runs it."""
