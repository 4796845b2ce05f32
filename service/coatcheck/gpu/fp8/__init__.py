"""A W8A8 GLiClass router: its checkpoint quantised to FP8 and audited, its projections as FP8 products, and how it is loaded."""
