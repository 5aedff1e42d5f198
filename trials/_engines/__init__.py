"""Programs of the field's stock wheels: tiny models with random weights, each computed on the CPU and on the device."""
