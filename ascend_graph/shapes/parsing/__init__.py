"""Parser of shape relations: tokens, grammar, statements."""
