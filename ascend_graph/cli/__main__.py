"""Entry point ``python -m ascend_graph.cli`` of the command ``ascend-graph``."""

from ascend_graph.cli import main

if __name__ == "__main__":
    main(prog_name="ascend-graph")
