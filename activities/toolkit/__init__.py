"""What tools are made of and how an agent comes by them; the tools are in `activities.tools`."""

import activities.tools  # noqa: F401 - whoever looks into the registry finds every tool in it
