"""Facts that the unwinder learns from x86-64 instructions."""
