"""Start of a job, anew or from a phase of another; everything is checked before it is created."""
