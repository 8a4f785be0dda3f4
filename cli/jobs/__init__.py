"""A job as Temporal and the job itself report it, and how a terminal shows it."""
