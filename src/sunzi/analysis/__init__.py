"""What an attacker learns or breaks: reconstruction, an audit of the shipped client, poisoning and its detection."""
