"""Authors' InferShape and InferDataType functions, of installed packages and of sources: found, compiled and called."""
