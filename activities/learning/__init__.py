"""Find patterns in traces, propose guards from them, and measure whether the guards are right."""
