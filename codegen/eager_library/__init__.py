"""Generated C++ of an eager library."""
