"""PostgreSQL, the authority: tables, scoped transactions, one module of statements for each aggregate, the embedded server."""
