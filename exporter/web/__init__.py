"""The HTTP surface. Knows snapshots, never SQL."""
