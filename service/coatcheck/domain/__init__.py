"""Values, invariants and ports. No I/O, and no import from any other package of the service but itself."""
