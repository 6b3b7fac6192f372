"""Charts: what is drawn of a study, few enough points of it, and the drawing as SVG."""
