"""Jinja2 templates and the generators that fill them; shipped in the wheel as ``ascend_graph.codegen``."""
