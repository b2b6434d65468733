"""Figures of a player at a real page: Chromium, a real server, loopback."""
