"""Everything with side effects. Each activity leads from one checkpoint to the next."""
