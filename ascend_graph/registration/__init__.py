"""Making an operator known to torch: meta functions, and what else a registration consists of. Imports torch."""
