"""A device that reports repeatedly: consent, memoised noise, a lifetime budget, an outbox, and sending."""
