"""Matrix multiplications."""
