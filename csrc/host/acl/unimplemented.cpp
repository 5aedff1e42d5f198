// Functions that torch_npu and torchair link to and that the host runtime does not implement.
//
// Each fails with its name: a caller is never told that something happened which did not. Names that
// torch_npu looks up at run time and can do without are absent on purpose, so that its own fallback or error
// applies.
#include "acl/runtime.h"

namespace {
int unimplemented(const char* function) {
    return ascend_graph::host::fail(
        ACL_ERROR_API_NOT_SUPPORT,
        std::string(function) + " is not implemented by the host runtime; run this on a device");
}
}  // namespace

// A macro because a symbol's name and its text must come from one word. Arguments are not read, which the C
// calling convention permits.
#define UNIMPLEMENTED(name) \
    ACL_EXPORT int name() { return unimplemented(#name); }
#define UNIMPLEMENTED_POINTER(name) \
    ACL_EXPORT void* name() {       \
        unimplemented(#name);       \
        return nullptr;             \
    }

// Memory shared between processes.
UNIMPLEMENTED(aclrtMemExportToShareableHandle)
UNIMPLEMENTED(aclrtMemImportFromShareableHandle)
UNIMPLEMENTED(aclrtMemSetPidToShareableHandle)
UNIMPLEMENTED(aclrtIpcMemGetExportKey)
UNIMPLEMENTED(aclrtIpcMemSetImportPid)
UNIMPLEMENTED(aclrtIpcMemImportByKey)
UNIMPLEMENTED(aclrtIpcMemClose)
UNIMPLEMENTED(aclrtIpcGetEventHandle)
UNIMPLEMENTED(aclrtIpcOpenEventHandle)

// Device binaries: there is no device to load them.
UNIMPLEMENTED(aclrtBinaryGetFunction)
UNIMPLEMENTED(aclrtBinaryGetFunctionByEntry)
UNIMPLEMENTED(aclrtBinaryLoadFromData)
UNIMPLEMENTED(aclrtBinaryUnLoad)
UNIMPLEMENTED(aclrtGetFunctionAddr)
UNIMPLEMENTED(aclrtLaunchKernelWithHostArgs)
UNIMPLEMENTED(rtDevBinaryRegister)
UNIMPLEMENTED(rtDevBinaryUnRegister)
UNIMPLEMENTED(rtFunctionGetMetaInfo)
UNIMPLEMENTED(rtFunctionGetMetaInfoSize)
UNIMPLEMENTED(rtFunctionRegister)
UNIMPLEMENTED(rtGetC2cCtrlAddr)
UNIMPLEMENTED(rtKernelLaunch)
UNIMPLEMENTED(rtKernelLaunchWithFlagV2)
UNIMPLEMENTED(rtKernelLaunchWithHandle)
UNIMPLEMENTED(rtKernelLaunchWithHandleV2)
UNIMPLEMENTED(rtRegisterAllKernel)
UNIMPLEMENTED(rtVectorCoreKernelLaunchWithHandle)

// Told of a stream's beginning and end, which only the memory of such kernels follows.
UNIMPLEMENTED(aclrtRegStreamStateCallback)
UNIMPLEMENTED(rtRegStreamStateCallback)

// Dumping of operator inputs and outputs.
UNIMPLEMENTED(aclmdlInitDump)
UNIMPLEMENTED(aclmdlSetDump)
UNIMPLEMENTED(aclmdlFinalizeDump)
UNIMPLEMENTED(aclopStartDumpArgs)
UNIMPLEMENTED(aclopStopDumpArgs)

// Control flow in captured models.
UNIMPLEMENTED(aclmdlRICondHandleCreate)
UNIMPLEMENTED(aclmdlRICondHandleGetCondPtr)
UNIMPLEMENTED(aclmdlRIAddCondTask)
UNIMPLEMENTED(aclmdlRIDebugJsonPrint)

// Fault handling, utilization and limits of the hardware.
UNIMPLEMENTED(aclrtDeviceTaskAbort)
UNIMPLEMENTED(aclrtGetMemUceInfo)
UNIMPLEMENTED(aclrtMemUceRepair)
UNIMPLEMENTED(aclrtRepairError)
UNIMPLEMENTED(aclrtGetDeviceUtilizationRate)
UNIMPLEMENTED(aclrtSetDeviceResLimit)
UNIMPLEMENTED(aclrtResetDeviceResLimit)
UNIMPLEMENTED(aclrtMemcpyAsyncWithCondition)

// The profiler.
UNIMPLEMENTED(aclprofInit)
UNIMPLEMENTED(aclprofStart)
UNIMPLEMENTED(aclprofStop)
UNIMPLEMENTED(aclprofFinalize)
UNIMPLEMENTED_POINTER(aclprofCreateConfig)
UNIMPLEMENTED(aclprofDestroyConfig)
UNIMPLEMENTED_POINTER(aclprofCreateStepInfo)
UNIMPLEMENTED(aclprofGetStepTimestamp)
UNIMPLEMENTED(aclprofDestroyStepInfo)

// Reports to the profiler: torch_npu sends them with every operator and reads no answer; with no profiler
// there is nobody to tell.
ACL_EXPORT uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
ACL_EXPORT int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
ACL_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }
ACL_EXPORT int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
ACL_EXPORT int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
ACL_EXPORT uint64_t MsprofStr2Id(const char*, size_t) { return 0; }
ACL_EXPORT uint64_t MsprofSysCycleTime() { return 0; }
