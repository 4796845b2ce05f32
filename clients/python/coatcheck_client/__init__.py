"""The Python client of Coatcheck."""
