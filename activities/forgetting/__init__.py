"""Forgetting: what a closed job left on the workspaces root, and in the stores if asked, goes."""
