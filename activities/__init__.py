"""Everything that touches the world. Each activity goes from one checkpoint to the next."""
