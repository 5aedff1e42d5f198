"""C++ functions that Python calls without a schema: their schemas, what they write, and the Python module that has them."""
