"""How a job begins, anew or from a phase of another: all is checked before anything is made."""
