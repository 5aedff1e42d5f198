"""Operations of Triton's IR, each as a function of arrays or of a frame."""
