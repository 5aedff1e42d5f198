// A library whose name must exist and from which nothing is used.
