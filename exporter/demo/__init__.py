"""An embedded PostgreSQL with Windmill's tables and a simulated cluster, to see the exporter at work."""
