"""The acceptance of a job: what it owes, what a reviewer is shown, and what its quotes prove."""
