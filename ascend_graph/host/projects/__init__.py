"""Operator projects of other authors: discovered once, described, built; whole repositories built or surveyed."""
