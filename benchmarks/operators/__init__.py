"""PyTorch's operator database on the host runtime: an operator's checks, how results are compared, the processes they run in."""
