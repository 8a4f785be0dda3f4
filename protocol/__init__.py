"""What workflows and activities share: data types, and nothing that touches I/O."""
