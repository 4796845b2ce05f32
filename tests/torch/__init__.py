"""Adapters that need torch: run in .venv-models."""
