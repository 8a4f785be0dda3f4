"""The activities, one module per name in Temporal's history."""
