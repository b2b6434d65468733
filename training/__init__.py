"""How the weights that veldt ships were made. Never imported by the running service."""
