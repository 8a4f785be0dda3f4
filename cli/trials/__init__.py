"""A trial's figures, and how a terminal shows a trial."""
