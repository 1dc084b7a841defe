"""Who may ask, and over which connection: the web config file, users, TLS."""
