// What the aclnn functions that CANN's generator writes call: a call is collected argument by argument, in
// any order, and becomes an executor when its workspace is asked for.
//
// The kernels of such an operator package are binaries for a device. A call runs the kernel that another
// package registered for the operator's type, one that was built for the host, or that of the package's
// companion (companion.h); without one it is refused.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "acl/abi.h"
#include "ascendc_host/internal/processors.h"
#include "opapi/companion.h"
#include "opapi/executor.h"

using namespace ascend_graph::host;

namespace {

constexpr aclnnStatus kInner = 561000;  // ACLNN_ERR_INNER

// Kinds of attrs that NnopbaseAddAttrWithDtype names.
enum AttrType : uint32_t { kBoolAttr = 0, kFloatAttr, kIntAttr, kStringAttr };

// One argument of a call, until it is copied into the executor. The caller's objects live as long as the
// function that collects them.
struct Slot {
    enum Kind { kAbsent, kTensorSlot, kListSlot, kValueSlot, kTextSlot, kIntsSlot, kFloatsSlot, kBoolsSlot };
    Kind kind = kAbsent;
    bool as_tensor = false;  // an array that the kernel sees as a tensor
    bool is_input = false;   // an output that is an input, too
    const void* object = nullptr;
    Value value;
    std::string text;
    aclIntArray ints;
    aclFloatArray floats;
    aclBoolArray bools;
};

// The lists of dtypes that a generated function passes.
struct TensorDesc {
    int32_t dtype, format;
};
struct SupportInfo {
    const TensorDesc* inputs;
    size_t input_count;
    const TensorDesc* outputs;
    size_t output_count;
};
struct SocSupport {
    const SupportInfo* infos;
    size_t count;
};
struct SupportList {
    const SocSupport* socs;
    size_t count;
};

struct Call {
    aclOpExecutor* executor = nullptr;
    std::string op_type;
    std::vector<Slot> inputs, outputs, attrs;
    aclnnStatus refused = 0;

    void begin(aclOpExecutor* created, const char* type) {
        if (executor != nullptr) ascendgraphDestroyExecutor(executor);  // the last one was not completed
        *this = Call{};
        executor = created;
        executor->never_keep();  // equal calls are not told from its arguments, which come later
        op_type = type;
    }
};

Call& call_of_thread() {
    static thread_local struct Owned : Call {
        ~Owned() {
            if (executor != nullptr) ascendgraphDestroyExecutor(executor);
        }
    } call;
    return call;
}

int fail(aclnnStatus code, const std::string& message) { return ascendgraphFail(code, message.c_str()); }

// The call that an executor belongs to; null, with an error, where it is not the one that is being collected.
Call* collected(const void* executor) {
    Call& call = call_of_thread();
    if (executor != nullptr && call.executor == executor) return &call;
    fail(kParamNullptr,
         "Nnopbase: expected the executor that NnopbaseGetExecutor returned last on this thread");
    return nullptr;
}

aclnnStatus add(void* executor, std::vector<Slot> Call::* group, const char* what, size_t index, Slot slot) {
    Call* const call = collected(executor);
    if (call == nullptr) return kParamNullptr;
    std::vector<Slot>& slots = call->*group;
    if (index >= slots.size()) {
        return fail(kParamInvalid, call->op_type + ": " + what + " " + std::to_string(index) +
                                       " was added; expected an index below " + std::to_string(slots.size()));
    }
    slot.is_input = slots[index].is_input;
    slots[index] = std::move(slot);
    return 0;
}

Slot of_object(Slot::Kind kind, const void* object, bool as_tensor = false) {
    Slot slot;
    slot.kind = object == nullptr ? Slot::kAbsent : kind;
    slot.object = object;
    slot.as_tensor = as_tensor;
    return slot;
}

template <typename T>
T read(const void* address) {
    T value;
    std::memcpy(&value, address, sizeof value);
    return value;
}

// An attr's value by its type and length; absent where they do not go together.
Slot of_attr(const void* address, size_t length, uint32_t type) {
    Slot slot;
    slot.kind = Slot::kValueSlot;
    if (type == kBoolAttr && length == sizeof(bool)) {
        slot.value.kind = ValueKind::kBool;
        slot.value.b = read<uint8_t>(address) != 0;
    } else if (type == kFloatAttr && (length == sizeof(float) || length == sizeof(double))) {
        slot.value.kind = ValueKind::kFloat;
        slot.value.f = length == sizeof(float) ? read<float>(address) : read<double>(address);
    } else if (type == kIntAttr && (length == sizeof(int32_t) || length == sizeof(int64_t))) {
        slot.value.kind = ValueKind::kInt;
        slot.value.i = length == sizeof(int32_t) ? read<int32_t>(address) : read<int64_t>(address);
    } else if (type == kStringAttr) {
        slot.kind = Slot::kTextSlot;
        const char* text = static_cast<const char*>(address);
        slot.text.assign(text, strnlen(text, length));
    } else {
        slot.kind = Slot::kAbsent;
    }
    return slot;
}

aclnnStatus copy(aclOpExecutor* executor, const Slot& slot) {
    switch (slot.kind) {
        case Slot::kTensorSlot:
            return ascendgraphAddTensor(executor, static_cast<const aclTensor*>(slot.object), nullptr);
        case Slot::kListSlot:
            return ascendgraphAddTensorList(executor, static_cast<const aclTensorList*>(slot.object),
                                            nullptr);
        case Slot::kValueSlot:
            executor->add(slot.value.kind) = slot.value;
            return 0;
        case Slot::kTextSlot:
            return ascendgraphAddString(executor, slot.text.c_str());
        case Slot::kIntsSlot:
            return slot.as_tensor ? ascendgraphAddIntArrayTensor(executor, &slot.ints, nullptr)
                                  : ascendgraphAddIntArray(executor, &slot.ints);
        case Slot::kFloatsSlot:
            return slot.as_tensor ? ascendgraphAddFloatArrayTensor(executor, &slot.floats, nullptr)
                                  : ascendgraphAddFloatArray(executor, &slot.floats);
        case Slot::kBoolsSlot:
            return slot.as_tensor ? ascendgraphAddBoolArrayTensor(executor, &slot.bools, nullptr)
                                  : ascendgraphAddBoolArray(executor, &slot.bools);
        case Slot::kAbsent:
            break;
    }
    executor->add(ValueKind::kAbsent);
    return 0;
}

Slot of_array(const aclIntArray* array, bool as_tensor) {
    Slot slot = of_object(Slot::kIntsSlot, array, as_tensor);
    if (array != nullptr) slot.ints = *array;
    return slot;
}
Slot of_array(const aclFloatArray* array, bool as_tensor) {
    Slot slot = of_object(Slot::kFloatsSlot, array, as_tensor);
    if (array != nullptr) slot.floats = *array;
    return slot;
}
Slot of_array(const aclBoolArray* array, bool as_tensor) {
    Slot slot = of_object(Slot::kBoolsSlot, array, as_tensor);
    if (array != nullptr) slot.bools = *array;
    return slot;
}

// Whether all tensors of a slot have a dtype.
bool has_dtype(const Slot& slot, int32_t dtype) {
    if (slot.kind == Slot::kTensorSlot) return static_cast<const aclTensor*>(slot.object)->dtype == dtype;
    if (slot.kind != Slot::kListSlot) return true;
    for (const aclTensor* one : static_cast<const aclTensorList*>(slot.object)->tensors) {
        if (one != nullptr && one->dtype != dtype) return false;
    }
    return true;
}
bool have_dtypes(const std::vector<Slot>& slots, const TensorDesc* listed, size_t count) {
    for (size_t n = 0; n < slots.size() && n < count; ++n) {
        if (!has_dtype(slots[n], listed[n].dtype)) return false;
    }
    return true;
}

std::string dtypes_of(const std::vector<Slot>& slots) {
    std::string text;
    for (const Slot& slot : slots) {
        if (slot.kind != Slot::kTensorSlot) continue;
        text +=
            (text.empty() ? "" : ", ") + std::to_string(static_cast<const aclTensor*>(slot.object)->dtype);
    }
    return "(" + text + ")";
}

// The number that CANN's generator gives to the processor of this process; 0 where it has none.
uint32_t soc_number(const ascendc_host::Processor* processor) {
    static constexpr std::pair<const char*, uint32_t> kNumbers[] = {
        {"Ascend910B", 2}, {"Ascend910_93", 3}, {"Ascend950", 4}};
    for (const auto& [name, number] : kNumbers) {
        if (ascendc_host::is_named(processor, name)) return number;
    }
    return 0;
}

aclnnStatus check_support(const Call& call, const SupportList& list, const uint32_t* socs, size_t soc_count) {
    const ascendc_host::Processor* const processor = ascendc_host::processor_of_process();
    const std::string name = processor == nullptr ? "the selected SoC" : processor->name;
    for (size_t n = 0; n < soc_count && n < list.count; ++n) {
        if (socs[n] != soc_number(processor)) continue;
        for (size_t k = 0; k < list.socs[n].count; ++k) {
            const SupportInfo& info = list.socs[n].infos[k];
            if (have_dtypes(call.inputs, info.inputs, info.input_count) &&
                have_dtypes(call.outputs, info.outputs, info.output_count))
                return 0;
        }
        return fail(kParamInvalid, call.op_type + ": inputs of aclDataType " + dtypes_of(call.inputs) +
                                       " with outputs of " + dtypes_of(call.outputs) +
                                       " are not supported; expected a combination that the operator package "
                                       "lists for " +
                                       name);
    }
    return fail(kParamInvalid,
                call.op_type + ": the operator package does not support " + name +
                    "; expected a package for it. Select another SoC with ASCEND_GRAPH_HOST_SOC");
}

aclnnStatus complete(Call& call, const void* caller, uint64_t* workspace_size) {
    if (call.refused != 0) return call.refused;
    std::string why;
    const KernelEntry kernel = kernel_of_package(call.op_type, caller, why);
    if (kernel == nullptr && !why.empty())
        return fail(kFindKernel,
                    call.op_type + ": its kernel is not there: " + why + "; build the package anew");
    if (kernel == nullptr) {
        return fail(kFindKernel,
                    call.op_type +
                        ": a kernel for the host was not found; the kernels of a package that CANN "
                        "built are binaries for a device. Build the kernel's sources with "
                        "ascend-graph build, or give register_op a function as eager=");
    }
    aclOpExecutor* const executor = call.executor;
    executor->entry = kernel;
    for (const std::vector<Slot>* group : {&call.inputs, &call.attrs, &call.outputs}) {
        for (const Slot& slot : *group) {
            if (slot.is_input) continue;  // the kernel's entry takes it once
            if (const aclnnStatus error = copy(executor, slot)) return error;
        }
    }
    *workspace_size = 0;
    if (const ascendgraphPrepare prepare = ascendgraphFindPreparer(call.op_type.c_str()))
        return ascendgraphPrepareExecutor(executor, prepare, workspace_size);
    return 0;
}

}  // namespace

namespace ascend_graph::host {

void forget_collected(const void* executor) {
    Call& call = call_of_thread();
    if (call.executor == executor) call.executor = nullptr;
}

}  // namespace ascend_graph::host

ACL_EXPORT void* NnopbaseGetExecutor(void* space, const char* op_type, char*, uint32_t input_count, char*,
                                     uint32_t output_count, char*, uint32_t attr_count) {
    if (space == nullptr || op_type == nullptr) {
        fail(kParamNullptr, "NnopbaseGetExecutor: space and opType must not be null");
        return nullptr;
    }
    Call& call = call_of_thread();
    call.begin(ascendgraphCreateExecutor(op_type, nullptr), op_type);
    call.inputs.resize(input_count);
    call.outputs.resize(output_count);
    call.attrs.resize(attr_count);
    return call.executor;
}

ACL_EXPORT aclnnStatus NnopbaseAddInput(void* executor, const aclTensor* tensor, uint32_t index) {
    return add(executor, &Call::inputs, "input", index, of_object(Slot::kTensorSlot, tensor));
}
// An output that is an input: the function passes the tensor for both, in any order.
ACL_EXPORT aclnnStatus NnopbaseSetRef(void* executor, size_t, size_t output) {
    Slot slot;
    const aclnnStatus error = add(executor, &Call::outputs, "output", output, slot);
    if (error == 0) call_of_thread().outputs[output].is_input = true;
    return error;
}
// Kernels of the host are given strides in either case.
ACL_EXPORT aclnnStatus NnopbaseAddIgnoreContinuesInput(void* executor, const aclTensor* tensor,
                                                       uint32_t index) {
    return NnopbaseAddInput(executor, tensor, index);
}
ACL_EXPORT aclnnStatus NnopbaseAddOutput(void* executor, const aclTensor* tensor, uint32_t index) {
    return add(executor, &Call::outputs, "output", index, of_object(Slot::kTensorSlot, tensor));
}
ACL_EXPORT aclnnStatus NnopbaseAddDynamicInput(void* executor, const aclTensorList* list, uint32_t index) {
    return add(executor, &Call::inputs, "input", index, of_object(Slot::kListSlot, list));
}
ACL_EXPORT aclnnStatus NnopbaseAddDynamicOutput(void* executor, const aclTensorList* list, uint32_t index) {
    return add(executor, &Call::outputs, "output", index, of_object(Slot::kListSlot, list));
}
ACL_EXPORT aclnnStatus NnopbaseAddIntArrayInput(void* executor, const aclIntArray* array, uint32_t index) {
    return add(executor, &Call::inputs, "input", index, of_array(array, true));
}
ACL_EXPORT aclnnStatus NnopbaseAddFloatArrayInput(void* executor, const aclFloatArray* array,
                                                  uint32_t index) {
    return add(executor, &Call::inputs, "input", index, of_array(array, true));
}
ACL_EXPORT aclnnStatus NnopbaseAddBoolArrayInput(void* executor, const aclBoolArray* array, uint32_t index) {
    return add(executor, &Call::inputs, "input", index, of_array(array, true));
}

ACL_EXPORT aclnnStatus NnopbaseAddAttrWithDtype(void* executor, void* address, size_t length, size_t index,
                                                uint32_t type) {
    if (address == nullptr) return fail(kParamNullptr, "NnopbaseAddAttrWithDtype: attrAddr must not be null");
    Slot slot = of_attr(address, length, type);
    if (slot.kind == Slot::kAbsent) {
        return fail(kParamInvalid, "NnopbaseAddAttrWithDtype: attr " + std::to_string(index) +
                                       " has the type " + std::to_string(type) + " and " +
                                       std::to_string(length) +
                                       " bytes; expected a bool, float, int or string of its own length");
    }
    return add(executor, &Call::attrs, "attr", index, std::move(slot));
}
ACL_EXPORT aclnnStatus NnopbaseAddIntArrayAttr(void* executor, const aclIntArray* array, size_t index) {
    return add(executor, &Call::attrs, "attr", index, of_array(array, false));
}
ACL_EXPORT aclnnStatus NnopbaseAddFloatArrayAttr(void* executor, const aclFloatArray* array, size_t index) {
    return add(executor, &Call::attrs, "attr", index, of_array(array, false));
}
ACL_EXPORT aclnnStatus NnopbaseAddBoolArrayAttr(void* executor, const aclBoolArray* array, size_t index) {
    return add(executor, &Call::attrs, "attr", index, of_array(array, false));
}

// The ids of profiles and of operators' types: there is no profiler's record of them here.
ACL_EXPORT aclnnStatus NnopbaseAddTilingId(void* executor, const void* id) {
    if (id == nullptr) return fail(kParamNullptr, "NnopbaseAddTilingId: tilingId must not be null");
    return collected(executor) == nullptr ? kParamNullptr : 0;
}

ACL_EXPORT aclnnStatus NnopbaseAddSupportList(void* executor, const SupportList* list, const uint32_t* socs,
                                              size_t soc_count) {
    Call* const call = collected(executor);
    if (call == nullptr) return kParamNullptr;
    if (list == nullptr || socs == nullptr)
        return fail(kParamNullptr, "NnopbaseAddSupportList: list and socSupportList must not be null");
    // As with CANN, the call is refused when its workspace is asked for.
    call->refused = check_support(*call, *list, socs, soc_count);
    return 0;
}

ACL_EXPORT aclnnStatus NnopbaseRunForWorkspace(void* executor, uint64_t* workspace_size) {
    Call* const call = collected(executor);
    if (call == nullptr) return kParamNullptr;
    if (workspace_size == nullptr)
        return fail(kParamNullptr, call->op_type + ": workspaceSize must not be null");
    const aclnnStatus error = complete(*call, __builtin_return_address(0), workspace_size);
    if (error == 0) call->executor = nullptr;  // it is the caller's
    return error;
}

ACL_EXPORT aclnnStatus NnopbaseRunWithWorkspace(void* executor, void* stream, void* workspace,
                                                uint64_t workspace_size) {
    if (executor != nullptr && executor == call_of_thread().executor) {
        return fail(kInner, call_of_thread().op_type +
                                ": the call was refused or its workspace was not asked for; call "
                                "GetWorkspaceSize again and check its result");
    }
    return ascendgraphRunPrepared(static_cast<aclOpExecutor*>(executor), workspace, workspace_size, stream);
}

// A condition of a generated function that does not hold; what fails itself has said why.
__attribute__((visibility("default"))) void NnopbaseOpLogE(aclnnStatus code, const char* expression) {
    if (code == kParamNullptr && expression != nullptr && std::strstr(expression, "!= nullptr") != nullptr)
        fail(code, std::string("an aclnn function expected ") + expression);
}
