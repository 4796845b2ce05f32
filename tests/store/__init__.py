"""Against a real PostgreSQL, migrated by the real migrations."""
