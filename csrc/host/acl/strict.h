// Device memory that only work on the device can touch, for a strict host runtime.
//
// Each allocation has pages of its own, between two that nobody may touch, and ends where the second begins.
// Fresh memory holds NaN. Pages are accessible while work runs (entering.h) and at no other time; those of
// freed memory never again, until 16,384 later allocations have been freed.
#pragma once

#include <cstddef>

namespace ascend_graph::host::strict {

// Whether ASCEND_GRAPH_STRICT is 1; read once.
bool enabled();

// `bytes` is a multiple of the alignment asked for; null where there is no memory.
void* allocate(size_t bytes);
void release(void* begin);

// What is between the two may touch device memory; calls may be nested, and made by several threads.
void let_in();
void keep_out();

// Writes a sentence on an address that a thread may not touch; false if it is not one of the device's. To be
// called by a signal handler.
bool explain(const void* address, char* text, size_t size);

}  // namespace ascend_graph::host::strict
