"""Trials: programs that run third-party code, given a checkout of it; each ends with a line of JSON."""
