// The check of a block's pipes begins and ends with the block.
#ifndef ASCENDC_RUNTIME_PIPE_ORDER_H
#define ASCENDC_RUNTIME_PIPE_ORDER_H

#include "ascendc_host/internal/runtime.h"

namespace ascendc_host {

// The bytes of local memory that nothing wrote, as of a kernel's variables: no number that a kernel can count
// on.
constexpr int unset_byte = 0xfe;

// What the largest architecture has of a local memory.
size_t most_bytes(Memory memory);

// Of a block that has its memory, where pipes are checked: what is in its unified buffer nothing wrote.
void begin_pipes(Block& block);
// Of a block whose kernel returned. Warns of flags that are set still.
void end_pipes(const Block& block);

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_PIPE_ORDER_H
