// Programs that the host runtime starts, such as the compiler of a kernel that is first launched.
#ifndef ASCEND_GRAPH_PROGRAM_OUTPUT_H
#define ASCEND_GRAPH_PROGRAM_OUTPUT_H

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace ascend_graph::host {

// What a program writes to its standard output until it ends; empty if it does not start.
inline std::string output_of(const char* const* arguments) {
    std::string said;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return said;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t child = 0;
    const bool started = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                      const_cast<char* const*>(arguments), environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::array<char, 4096> part;
    for (ssize_t size = 0; started;) {
        size = read(ends[0], part.data(), part.size());
        if (size > 0) said.append(part.data(), static_cast<size_t>(size));
        if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
    close(ends[0]);
    while (started && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return said;
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_PROGRAM_OUTPUT_H
