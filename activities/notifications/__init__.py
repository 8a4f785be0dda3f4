"""Notifications: whom a job notifies, and the delivery by HTTP or by a hook."""
