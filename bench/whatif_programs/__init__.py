"""Real programs whose changes bench/whatif_real.py predicts and makes."""
