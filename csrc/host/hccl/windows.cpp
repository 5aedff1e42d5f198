#include "hccl/windows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ascend_graph::host {

Windows::Windows(uint64_t bytes)
    : bytes_(bytes), descriptor_(memfd_create("ascend_graph windows", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(all())) != 0) {
        const std::string why = std::strerror(errno);
        if (descriptor_ >= 0) close(descriptor_);
        throw std::runtime_error("the windows of a communicator (" + std::to_string(bytes / kMiB) +
                                 " MiB each): " + why + "; set a smaller HCCL_BUFFSIZE");
    }
}

Windows::~Windows() {
    for (uint8_t* memory : in) munmap(memory, all());
    close(descriptor_);
}

void Windows::map(const std::vector<Member>& members) {
    if (!in.empty()) return;
    std::vector<uint8_t*> mapped;
    std::string failure;
    for (size_t rank = 0; rank < members.size() && failure.empty(); ++rank) {
        const Member& member = members[rank];
        const std::string path =
            "/proc/" + std::to_string(member.process) + "/fd/" + std::to_string(member.window);
        const std::string whose = "the windows of rank " + std::to_string(rank) + " (process " +
                                  std::to_string(member.process) + ")";
        const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
        struct stat status{};
        if (file < 0 || fstat(file, &status) != 0) {
            failure = whose + " cannot be reached: " + std::strerror(errno);
        } else if (static_cast<uint64_t>(status.st_size) != all()) {
            failure = whose + " have " +
                      std::to_string((static_cast<uint64_t>(status.st_size) - kStateBytes) / 2 / kMiB) +
                      " MiB, and those of this rank " + std::to_string(bytes_ / kMiB) +
                      "; give all ranks the same HCCL_BUFFSIZE";
        } else {
            void* memory = mmap(nullptr, all(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (memory == MAP_FAILED)
                failure = whose + " cannot be mapped: " + std::strerror(errno);
            else
                mapped.push_back(static_cast<uint8_t*>(memory));
        }
        if (file >= 0) close(file);
    }
    if (!failure.empty()) {
        for (uint8_t* memory : mapped) munmap(memory, all());
        throw std::runtime_error(failure);
    }
    for (uint8_t* memory : mapped) {
        in.push_back(memory);
        out.push_back(memory + bytes_);
        states.push_back(memory + 2 * bytes_);
    }
}

}  // namespace ascend_graph::host
