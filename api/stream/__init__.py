"""A tournament's events as they are committed: encoded once, handed out to all who listen, each at its own pace."""
