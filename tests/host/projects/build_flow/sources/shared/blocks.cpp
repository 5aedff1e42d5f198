#include "blocks.h"

#ifndef MOST_BLOCKS
#define MOST_BLOCKS 8
#endif

uint32_t BlocksFor(uint32_t elements) { return elements < MOST_BLOCKS ? elements : MOST_BLOCKS; }
