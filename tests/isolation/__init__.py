"""Nobody else's: two tenants and five principals over one app, against every wall there is between them."""
