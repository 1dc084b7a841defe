"""Per-workspace fairness: who used how many worker-seconds, who is capped, with which admission probability."""
