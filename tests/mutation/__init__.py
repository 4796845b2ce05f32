"""Mutants of the modules that scope everything, by mutmut: which tests notice them."""
