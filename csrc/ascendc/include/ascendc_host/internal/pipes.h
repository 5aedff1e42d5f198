// The order of a block's pipes: which of its instructions wait for one another.
//
// Here everything runs in program order. A device's pipes run side by side, and what one reads or writes
// after another must wait for it: by a flag, a queue or a barrier. ASCEND_GRAPH_KERNEL_PIPES=1 checks that,
// and that no instruction reads local memory that nothing wrote.
#ifndef ASCENDC_HOST_INTERNAL_PIPES_H
#define ASCENDC_HOST_INTERNAL_PIPES_H

#include "ascendc_host/internal/runtime.h"

namespace ascendc_host {

enum class Pipe : uint8_t { scalar, vector, cube, mte1, mte2, mte3, fixpipe, count };

// Flags between two pipes: their numbers are 0 to 7.
constexpr int most_events = 8;

// Whether this process checks the order of pipes.
extern bool pipes_are_checked;

// `bytes` of local or global memory are used by an argument of an API function. Raises where another pipe
// used them in a way that this use must wait for, and nothing waits.
void touch(const void* begin, uint64_t bytes, const char* api, const char* name, const Where& where);

// A flag of a SetFlag, or of a queue's buffer; `key` tells those of two pipes apart.
void set_pipe_flag(Pipe from, Pipe to, uint64_t key, const Where& where);
// Raises where nothing set it.
void wait_pipe_flag(Pipe from, Pipe to, uint64_t key, const Where& where);
// All pipes wait for all that was issued before.
void wait_for_all_pipes();
// A flag for other blocks is set when `from` has done what it was given; a wait for another block waits for
// that, too.
void set_flag_for_blocks(Pipe from);
// `to` waits for all that `from` was given before: what the processor does without a flag.
void wait_for_pipe(Pipe to, Pipe from);
// The scalar unit's data cache gives back the line at an address of global memory; all lines for null.
void clean_data_cache(const void* at);

// While it lives, what API functions touch is the work of one instruction of a pipe, row after row where
// `rows` says so.
class OnPipe {
  public:
    explicit OnPipe(Pipe pipe) {
        if (__builtin_expect(pipes_are_checked, 0)) begin(pipe);
    }
    ~OnPipe() {
        if (__builtin_expect(outer_ != nullptr, 0)) end();
    }
    OnPipe(const OnPipe&) = delete;
    OnPipe& operator=(const OnPipe&) = delete;
    // From here on, operands are rows of so many bytes, `stride` bytes from one to the next.
    void rows(uint64_t bytes, uint64_t stride) {
        if (__builtin_expect(outer_ != nullptr, 0)) set_rows(bytes, stride);
    }

  private:
    void begin(Pipe pipe);
    void end();
    void set_rows(uint64_t bytes, uint64_t stride);
    void* outer_ = nullptr;
    Pipe pipe_before_ = Pipe::vector;
};

// What a queue does with one of its buffers. On its way forth the consumer waits for the producer; on its way
// back the producer for the consumer.
struct QueuePipes {
    Pipe producer, consumer;

    void enqueue(const Buffer& buffer, const Where& where) const {
        set(producer, consumer, buffer, 0, where);
    }
    void dequeue(const Buffer& buffer, const Where& where) const {
        wait(producer, consumer, buffer, 0, where);
    }
    void release(const Buffer& buffer, const Where& where) const {
        set(consumer, producer, buffer, 1, where);
    }
    void take(const Buffer& buffer, const Where& where) const { wait(consumer, producer, buffer, 1, where); }

  private:
    static uint64_t key_of(const Buffer& buffer, uint64_t way) {
        return reinterpret_cast<uint64_t>(&buffer) | way;
    }
    static void set(Pipe from, Pipe to, const Buffer& buffer, uint64_t way, const Where& where) {
        if (__builtin_expect(pipes_are_checked, 0)) set_pipe_flag(from, to, key_of(buffer, way), where);
    }
    // A buffer's first taker has nothing to wait for.
    static void wait(Pipe from, Pipe to, const Buffer& buffer, uint64_t way, const Where& where) {
        if (__builtin_expect(pipes_are_checked, 0) && (way == 0 || buffer.generation != 0))
            wait_pipe_flag(from, to, key_of(buffer, way), where);
    }
};

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_PIPES_H
