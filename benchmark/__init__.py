"""``python -m benchmark NAME [--json OUT] [--plot OUT.png]``: every figure this project states, measured anew."""
