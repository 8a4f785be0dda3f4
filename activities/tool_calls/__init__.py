"""One call of a tool: run under its guards, recorded, and described for workflow code."""
