"""The accelerated runtime, importable alone: its logic and its ownership rules need no GPU, torch is imported where it is used."""
