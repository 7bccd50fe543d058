"""The desk: commands are judged, recorded and answered. Knows nothing of HTTP."""
