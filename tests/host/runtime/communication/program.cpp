// The ranks of a program without PyTorch, as threads: what each of them gets of Communicate, or is told.
//
//   program <ranks> <first way> <last way> <launches>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../op_kernel/communicate_tiling.h"
#include "acl/acl.h"
#include "aclnn_communicate.h"
#include "hccl/hccl.h"

namespace {

constexpr uint32_t kPart = 192;

float given(uint32_t rank, uint32_t i) { return static_cast<float>(1000 * (rank + 1) + i); }

// What a rank gets for an element; -7 is what was there.
float expected(int way, uint32_t ranks, uint32_t rank, uint32_t i) {
    const uint32_t of = i / kPart, at = i % kPart;
    float sum = 0, sum_of_part = 0;
    for (uint32_t r = 0; r < ranks; ++r) sum += given(r, i), sum_of_part += given(r, rank * kPart + i);
    switch (way) {
        case ALL_REDUCE:
            return sum;
        case ALL_REDUCE_MAX:
            return given(ranks - 1, i);
        case ALL_GATHER:
        case QUERY:
        case GLOBAL_TILING:
        case OLD:
            return given(of, at);
        case REDUCE_SCATTER:
            return i < kPart ? sum_of_part : -7;
        case ALL_TO_ALL:
        case BATCH_WRITE:
        case WRITE:
            return given(of, rank * kPart + at);
        case ALL_TO_ALL_V:
            return at < rank + of + 1 ? given(of, rank * kPart + at) : -7;
        case STEPS:
        case STEPS_BEFORE:
            return 2 * given(of, rank * kPart + at);
        case COMPUTE_FIRST:
            return 2 * sum;
        case WINDOWS:
            return given((rank + ranks - 1) % ranks, i);
        case TWO_GROUPS:
            return static_cast<float>(ranks) * given(of, at);
        case TWO_OBJECTS:
            return static_cast<float>(ranks) * sum;
        case SILENT:
            return 2 * given(rank, i);
        default:
            return -7;
    }
}

std::string error() {
    const char* text = aclGetRecentErrMsg();
    return text == nullptr ? "an error without a text" : text;
}

std::string run(int way, uint32_t ranks, uint32_t rank, HcclComm comm, HcclComm second, aclrtStream stream) {
    char group[128], other[128];
    HcclGetCommName(comm, group);
    HcclGetCommName(second, other);
    const int64_t size = ranks * kPart, stride = 1;
    std::vector<float> x(size), y(size, -7);
    for (uint32_t i = 0; i < x.size(); ++i) x[i] = given(rank, i);
    const size_t bytes = x.size() * sizeof(float);
    void *at_x = nullptr, *at_y = nullptr, *workspace = nullptr;
    aclrtMalloc(&at_x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&at_y, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(at_x, bytes, x.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(at_y, bytes, y.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclTensor* in = aclCreateTensor(&size, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &size, 1, at_x);
    aclTensor* out = aclCreateTensor(&size, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &size, 1, at_y);
    uint64_t needed = 0;
    aclOpExecutor* executor = nullptr;
    if (aclnnCommunicateGetWorkspaceSize(in, group, other, way, out, &needed, &executor) != 0) return error();
    aclrtMalloc(&workspace, needed, ACL_MEM_MALLOC_HUGE_FIRST);
    if (aclnnCommunicate(workspace, needed, executor, stream) != 0) return error();
    if (aclrtSynchronizeStream(stream) != 0) return error();
    aclrtMemcpy(y.data(), bytes, at_y, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    aclDestroyTensor(in);
    aclDestroyTensor(out);
    for (void* memory : {at_x, at_y, workspace}) aclrtFree(memory);
    for (uint32_t i = 0; i < y.size(); ++i) {
        if (y[i] != expected(way, ranks, rank, i))
            return "element " + std::to_string(i) + " is " + std::to_string(y[i]) + ", not " +
                   std::to_string(expected(way, ranks, rank, i));
    }
    return "equal";
}

}  // namespace

int main(int, char** argv) {
    const auto ranks = static_cast<uint32_t>(std::atoi(argv[1]));
    const int first = std::atoi(argv[2]), last = std::atoi(argv[3]), launches = std::atoi(argv[4]);
    if (aclInit(nullptr) != 0) return 2;
    std::vector<int32_t> devices;
    for (uint32_t rank = 0; rank < ranks; ++rank) devices.push_back(static_cast<int32_t>(rank));
    std::vector<HcclComm> comms(ranks), seconds(ranks);
    if (HcclCommInitAll(ranks, devices.data(), comms.data()) != 0 ||
        HcclCommInitAll(ranks, devices.data(), seconds.data()) != 0) {
        std::printf("%s\n", error().c_str());
        return 2;
    }
    std::vector<std::string> said(ranks);
    for (int way = first; way <= last; ++way) {
        for (int launch = 0; launch < launches; ++launch) {
            std::vector<std::thread> threads;
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                threads.emplace_back([&, rank] {
                    aclrtStream stream = nullptr;
                    aclrtSetDevice(devices[rank]);
                    aclrtCreateStream(&stream);
                    said[rank] = run(way, ranks, rank, comms[rank], seconds[rank], stream);
                    aclrtDestroyStream(stream);
                });
            }
            for (std::thread& thread : threads) thread.join();
            for (uint32_t rank = 0; rank < ranks; ++rank)
                std::printf("%d %u %s\n", way, rank, said[rank].c_str());
        }
    }
    for (HcclComm comm : comms) HcclCommDestroy(comm);
    for (HcclComm comm : seconds) HcclCommDestroy(comm);
    return 0;
}
