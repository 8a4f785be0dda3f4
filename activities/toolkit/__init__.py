"""What tools are made of and how an agent comes by them; the tools are in `activities.tools`."""
