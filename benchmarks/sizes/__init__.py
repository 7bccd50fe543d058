"""Any size: what every operation costs in tournaments of different sizes, and how long others wait meanwhile."""
