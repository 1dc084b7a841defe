"""Queue metrics: every tag's backlog and head delay, sampled into few rows of Windmill's table `metrics`."""
