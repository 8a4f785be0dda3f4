"""What gates are told before something may end, and the end of a job."""
