"""What any process needs: telemetry, background tasks, turns of the event loop, fail points."""
