"""Running the service: logging, metrics, the progress board, the watchdog and the crash points of fault tests."""
