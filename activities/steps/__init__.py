"""The activities, one module per name in Temporal's history.

`call_refs` is shared by two of them.
"""
