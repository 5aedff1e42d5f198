"""Calls of aclnn functions: the source of each parameter."""
