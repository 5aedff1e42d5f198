"""torch's tables of operators: definitions, meta functions, and changes that are made together. Imports torch."""
