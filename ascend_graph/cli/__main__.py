"""``python -m ascend_graph.cli``: the command ``ascend-graph``."""

from ascend_graph.cli import main

if __name__ == "__main__":
    main(prog_name="ascend-graph")
