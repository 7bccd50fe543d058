"""A tournament's events as they are committed: encoded once, and sent to each listener at its own pace."""
