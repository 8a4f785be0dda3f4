"""The general tools; `activities.tool_catalogue` lists them with those of the requirements."""
