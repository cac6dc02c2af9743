"""The collector as an HTTP service: uploading, reading, and the live page."""
