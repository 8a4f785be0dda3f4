"""General tools; `activities.tool_catalogue` lists them with the requirement tools."""
