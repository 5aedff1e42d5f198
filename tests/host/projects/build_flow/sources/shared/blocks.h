#pragma once
#include <cstdint>

uint32_t BlocksFor(uint32_t elements);
