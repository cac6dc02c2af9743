"""The values of a collection: labels, numbers and dates, records, texts."""
