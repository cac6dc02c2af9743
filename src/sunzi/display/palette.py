"""Okabe and Ito's palette: distinct under every common colour blindness, and in grey; its yellow is too pale."""

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
INK = "#333333"
LINES = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE)
"""In the order in which lines take them."""
