"""Experts: routes that are safe to index with, and scratch memory that layers share."""
