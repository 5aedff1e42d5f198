// The check of a block's pipes begins and ends with the block.
#ifndef ASCENDC_RUNTIME_PIPE_ORDER_H
#define ASCENDC_RUNTIME_PIPE_ORDER_H

#include <memory>
#include <string>

#include "ascendc_host/internal/pipes.h"

namespace ascendc_host {

// The bytes of local memory that nothing wrote, as of a kernel's variables: no number that a kernel can count
// on.
constexpr int unset_byte = 0xfe;

const char* pipe_name(Pipe pipe);

// What the largest architecture has of a local memory.
size_t most_bytes(Memory memory);

// Of a block that has its memory, where pipes are checked: what is in its unified buffer nothing wrote.
void begin_pipes(Block& block);
// What the blocks of a launch used of global memory, of those that ended; null where pipes are not checked.
class LaunchMemory;
std::shared_ptr<LaunchMemory> launch_memory();
// Of a block whose kernel returned. Warns of flags that are set still, and raises where another block wrote
// the same global memory and neither waited for the other.
void end_pipes(const Block& block, LaunchMemory* memory);
// Of a launch whose blocks have ended. Raises where a block read what another wrote and neither waited.
void check_reads(const LaunchMemory* memory);
// The block in messages, and a Violation of it.
std::string name_of(const Block& block);
[[noreturn]] void fail(const std::string& block, const Where& where, const std::string& rule);
// The block waited for all blocks, or for some that the check does not follow.
void wait_for_all_blocks();
void wait_for_a_block();
// Other blocks are told of all that the block wrote, by something that is not a flag of a pipe.
void tell_blocks_all();

}  // namespace ascendc_host

#endif  // ASCENDC_RUNTIME_PIPE_ORDER_H
