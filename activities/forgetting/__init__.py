"""Remove what a closed job left on the workspaces root and, on request, in the stores."""
