"""Programs that call Python: tokens, callbacks, debugging and foreign calls."""
