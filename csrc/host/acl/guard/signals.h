// What signals do to authors' code: how a thread is made to leave it, faults of the processor, Ctrl-C.
#pragma once

#include "acl/guard/thread.h"

namespace ascend_graph::host::guard {

// Once in a process, before a section is entered.
void handle_signals();

// See ascendgraphHandleDivisions.
using DivisionHandler = bool (*)(void* info, void* context);
void handle_divisions(DivisionHandler goes_on);

// See ascendgraphOnDivision.
extern __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread void (*on_division)();
constexpr uint64_t kNobodyKnows = 0xa5a5a5a5a5a5a5a5;

// Makes the thread leave `section` with `reason`, the number of a signal, as soon as that is harmless; asked
// for again and again until it has.
void make_leave(Thread& thread, uint64_t section, int reason);

// While authors' code runs for long, SIGINT is noted on its way to the handler that the process has for it.
// Where it has none, SIGINT ends it as ever.
void note_interrupts();
void forget_interrupts();
int64_t last_interrupt();

}  // namespace ascend_graph::host::guard
