"""Webhooks: events of a tournament sent to other servers, as they are committed."""
