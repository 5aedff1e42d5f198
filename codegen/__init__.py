"""Generators and the Jinja2 templates that they fill; shipped in the wheel as ``ascend_graph.codegen``."""
