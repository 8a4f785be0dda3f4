"""The turn from one phase to the next, and what an attempt that failed teaches."""
