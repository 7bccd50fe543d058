"""What any process needs: telemetry, background tasks, time slices, fail points."""
