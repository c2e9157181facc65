"""The search over signs of units: for networks over many real features, where boxes of inputs do not end."""
