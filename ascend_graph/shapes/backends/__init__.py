"""Back ends of relations: Python functions and the program of the C++ interpreter."""
