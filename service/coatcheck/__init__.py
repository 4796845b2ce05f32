"""Coatcheck: hand in the window, carry a small ticket, get the exact text back."""
