// Tiling data in kernels: read from the memory that the host filled.
#ifndef ASCENDC_HOST_BASIC_API_TILING_H
#define ASCENDC_HOST_BASIC_API_TILING_H

#include "ascendc_host/basic_api/tensor.h"

namespace AscendC {

// Where a tiling structure lies in global memory, checked against its allocation.
template <typename Tiling>
__tiling_data_ptr__ Tiling* find_tiling(const void* tiling, const Where& where) {
    static_assert(std::is_trivially_copyable<Tiling>::value, "tiling data is copied as bytes");
    const auto& block = ascendc_host::enter(where);
    if (tiling == nullptr) {
        ascendc_host::fail(
            block, where,
            "GET_TILING_DATA: the tiling address is null; write the data (SaveToBuffer) and their size "
            "(SetDataSize) in the tiling function, or pass their address at the launch");
    }
    const size_t rest = ascendc_host::allocation_rest(tiling);
    if (rest < sizeof(Tiling)) {
        ascendc_host::fail(
            block, where,
            ascendc_host::format(
                "GET_TILING_DATA: the tiling structure has %zu bytes, its memory %zu; let the tiling "
                "function write the same structure, and SetDataSize say all of it",
                sizeof(Tiling), rest));
    }
    return static_cast<__tiling_data_ptr__ Tiling*>(tiling);
}

template <typename Tiling>
Tiling read_tiling(const void* tiling, const Where& where) {
    Tiling data;
    std::memcpy(static_cast<void*>(&data), find_tiling<Tiling>(tiling, where), sizeof data);
    return data;
}

template <typename Tiling>
Tiling read_default_tiling(const void* tiling, const Where& where) {
    ascendc_host::enter(where).require_default_tiling(where);
    return read_tiling<Tiling>(tiling, where);
}

// An operator's kernel is given the kernel's own part of its workspace, the last of its arguments' memory,
// and the system's part is set before it begins.
inline void SetSysWorkspaceForce(__gm__ uint8_t* workspace) { ascendc_host::current().workspace = workspace; }
inline void SetSysWorkspace(__gm__ uint8_t* workspace) {
    if (ascendc_host::current().argument_count == 0) SetSysWorkspaceForce(workspace);
}
inline __gm__ uint8_t* GetSysWorkSpacePtr() {
    const auto& block = ascendc_host::current();
    if (block.workspace != nullptr || block.argument_count == 0) return block.workspace;
    return static_cast<uint8_t*>(const_cast<void*>(block.arguments[block.argument_count - 1].data));
}
// The argument counts only in a launch that neither knows its workspace nor sets it.
inline __gm__ uint8_t* GetUserWorkspace(__gm__ uint8_t* workspace) {
    const auto& block = ascendc_host::current();
    uint8_t* const whole = GetSysWorkSpacePtr();
    if (block.workspace == nullptr && block.argument_count != 0)
        return ascendc_host::user_workspace(whole, block.arguments[block.argument_count - 1].bytes);
    const size_t rest = whole == nullptr ? SIZE_MAX : ascendc_host::allocation_rest(whole);
    return rest == SIZE_MAX ? workspace : ascendc_host::user_workspace(whole, rest);
}

}  // namespace AscendC

using AscendC::GetSysWorkSpacePtr;
using AscendC::GetUserWorkspace;
using AscendC::SetSysWorkspace;

// A kernel that asks the preprocessor for its key is compiled for each one, with TILING_KEY_VAR defined: the
// keys are those that it names here (ascend_graph/host/projects/tiling_keys.py). Any other asks when it runs.
#ifdef ASCEND_GRAPH_LIST_TILING_KEYS
#define TILING_KEY_IS(key) ASCEND_GRAPH_TILING_KEY(key)
#define TILING_KEY_VAR 0
#else
#define TILING_KEY_IS(key) (::ascendc_host::current().is_tiling_key(static_cast<uint64_t>(key)))
#endif
#ifndef TILING_KEY_VAR
#define TILING_KEY_VAR (::ascendc_host::current().tiling_key)
#endif
#define GET_TILING_DATA_WITH_STRUCT(Tiling, name, address) \
    [[maybe_unused]] Tiling name = ::AscendC::read_tiling<Tiling>(address, ::AscendC::Where())
#define GET_TILING_DATA_MEMBER(Tiling, member, name, address)                                          \
    [[maybe_unused]] Tiling name##_all_ = ::AscendC::read_tiling<Tiling>(address, ::AscendC::Where()); \
    [[maybe_unused]] auto& name = name##_all_.member
#define GET_TILING_DATA_PTR_WITH_STRUCT(Tiling, name, address) \
    [[maybe_unused]] __tiling_data_ptr__ Tiling* name =        \
        ::AscendC::find_tiling<Tiling>(address, ::AscendC::Where())
// A kernel that names each structure as it reads it says so to CANN's build; here nothing depends on it.
#define REGISTER_NONE_TILING
// The structure that GET_TILING_DATA reads: named in the kernel, or by the operator project's build.
#define REGISTER_TILING_DEFAULT(Tiling) using ascendc_default_tiling = Tiling
// The structure of some keys, by a text such as "TILING_KEY_VAR == 1": kernels name it where they read it.
#define REGISTER_TILING_FOR_TILINGKEY(expression, Tiling) \
    ::ascendc_host::current().register_tiling(expression, #Tiling)
#define GET_TILING_DATA(name, address)             \
    [[maybe_unused]] ascendc_default_tiling name = \
        ::AscendC::read_default_tiling<ascendc_default_tiling>(address, ::AscendC::Where())

#endif  // ASCENDC_HOST_BASIC_API_TILING_H
