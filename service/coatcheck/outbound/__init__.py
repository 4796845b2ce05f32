"""The one way out: what the service fetches from addresses that somebody has told it, guarded against reaching inside."""
