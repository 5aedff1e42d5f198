"""The command ``ascend-graph`` as a module: ``python -m ascend_graph``."""

from ascend_graph.cli import main

if __name__ == "__main__":
    main()
