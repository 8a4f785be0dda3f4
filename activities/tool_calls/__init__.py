"""Tool calls: carried out once, recorded, shown to people."""
