"""Operator tables of torch: definitions, meta functions, and changes applied together. Imports torch."""
