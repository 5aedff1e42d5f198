"""PyTorch's operator database on the host runtime: checks of an operator, comparison of results, worker processes."""
