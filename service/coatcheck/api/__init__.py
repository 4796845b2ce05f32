"""The ASGI edge, the HTTP routers, problem details and probes: thin, with no logic of its own."""
