"""The guarded client, against a network that the tests make up."""
