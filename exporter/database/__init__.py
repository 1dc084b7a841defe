"""The only way to PostgreSQL: pooled connections, explicit transactions with limits, deadlines, capabilities."""
