"""The checkers that ask an SMT solver."""
