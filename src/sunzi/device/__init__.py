"""Reporting again and again: noise that is drawn once, a budget for a lifetime, and uploads that survive a crash."""
