// Functions that torch_npu, torchair and programs link to and that the host runtime does not implement. Names
// that torch_npu looks up at run time and can do without are absent on purpose, so that its own fallback or
// error applies.
#include "acl/refused.h"

extern "C" void ascendgraphSetError(int code, const char* message);

using namespace ascend_graph::host;

#define UNIMPLEMENTED(name) REFUSED("run this on a device", aclError, name)
#define UNIMPLEMENTED_POINTER(name) REFUSED("run this on a device", Pointer, name)

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
UNIMPLEMENTED(aclrtBinaryGetFunctionByEntry)
UNIMPLEMENTED(aclrtGetFunctionAddr)
UNIMPLEMENTED(rtDevBinaryRegister)
UNIMPLEMENTED(rtDevBinaryUnRegister)
UNIMPLEMENTED(rtFunctionGetMetaInfo)
UNIMPLEMENTED(rtFunctionGetMetaInfoSize)
UNIMPLEMENTED(rtFunctionRegister)
UNIMPLEMENTED(rtGetC2cCtrlAddr)
UNIMPLEMENTED(rtRegisterAllKernel)
// Launchers that CANN's build links into libraries print the status of a launch and go on, so that the device
// fails with it: results that nothing computed are not taken for values.
#define UNIMPLEMENTED_LAUNCH(name)                                                                     \
    ACL_EXPORT aclError name() {                                                                       \
        const auto error = refused<aclError>(                                                          \
            #name, "a binary of a device does not run here; compile the kernel's sources by bisheng"); \
        ascendgraphSetError(error, ascendgraphRecentError());                                          \
        return error;                                                                                  \
    }
UNIMPLEMENTED_LAUNCH(rtKernelLaunch)
UNIMPLEMENTED_LAUNCH(rtKernelLaunchWithFlagV2)
UNIMPLEMENTED_LAUNCH(rtKernelLaunchWithHandle)
UNIMPLEMENTED_LAUNCH(rtKernelLaunchWithHandleV2)
UNIMPLEMENTED_LAUNCH(rtVectorCoreKernelLaunchWithHandle)

// Told of a stream's beginning and end, which only the memory of such kernels follows.
UNIMPLEMENTED(aclrtRegStreamStateCallback)
UNIMPLEMENTED(rtRegStreamStateCallback)

// Dumping of operator inputs and outputs.
UNIMPLEMENTED(aclmdlInitDump)
UNIMPLEMENTED(aclmdlSetDump)
UNIMPLEMENTED(aclmdlFinalizeDump)

// Control flow in captured models.
UNIMPLEMENTED(aclmdlRICondHandleCreate)
UNIMPLEMENTED(aclmdlRICondHandleGetCondPtr)
UNIMPLEMENTED(aclmdlRIAddCondTask)
UNIMPLEMENTED(aclmdlRIDebugJsonPrint)

// Fault handling and utilization of the hardware.
UNIMPLEMENTED(aclrtDeviceTaskAbort)
UNIMPLEMENTED(aclrtGetMemUceInfo)
UNIMPLEMENTED(aclrtMemUceRepair)
UNIMPLEMENTED(aclrtRepairError)
UNIMPLEMENTED(aclrtGetDeviceUtilizationRate)
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

// What only a device's code has.
static constexpr const char* kKernels =
    "code of the host has no place on a device, and no cores of its own; leave it out";
REFUSED(kKernels, aclError, aclrtBinaryGetDevAddress)
REFUSED(kKernels, aclError, aclrtBinarySetExceptionCallback)
REFUSED(kKernels, aclError, aclrtGetArgsFromExceptionInfo)
REFUSED(kKernels, aclError, aclrtGetFuncHandleFromExceptionInfo)
REFUSED(kKernels, aclError, aclrtGetFunctionAttribute)
REFUSED(kKernels, aclError, aclrtGetFunctionSize)
REFUSED(kKernels, aclError, aclrtKernelArgsGetHandleMemSize)
REFUSED(kKernels, aclError, aclrtKernelArgsGetMemSize)
REFUSED(kKernels, aclError, aclrtKernelArgsInitByUserMem)
REFUSED(kKernels, aclError, aclrtRegisterCpuFunc)

// Tasks of models: read and replaced one by one.
static constexpr const char* kTasks = "replace work of a capture by aclmdlRICaptureTaskUpdateBegin";
REFUSED(kTasks, aclError, aclmdlRIGetStreams)
REFUSED(kTasks, aclError, aclmdlRIGetTasksByStream)
REFUSED(kTasks, aclError, aclmdlRIKernelTaskGetAttribute)
REFUSED(kTasks, aclError, aclmdlRITaskDisable)
REFUSED(kTasks, aclError, aclmdlRITaskGetParams)
REFUSED(kTasks, aclError, aclmdlRITaskGetSeqId)
REFUSED(kTasks, aclError, aclmdlRITaskGetType)
REFUSED(kTasks, aclError, aclmdlRITaskSetParams)
REFUSED(kTasks, aclError, aclmdlRIUpdate)
REFUSED(kTasks, aclError, aclrtTaskUpdateAsync)

// What other processes open.
static constexpr const char* kProcesses =
    "pass what they need by a file, or by a collective of torch.distributed";
REFUSED(kProcesses, aclError, aclrtIpcMemImportPidInterServer)
REFUSED(kProcesses, aclError, aclrtIpcMemSetAttr)
REFUSED(kProcesses, aclError, aclrtMemExportToShareableHandleV2)
REFUSED(kProcesses, aclError, aclrtMemImportFromShareableHandleV2)
REFUSED(kProcesses, aclError, aclrtMemMapSelectedLink)
REFUSED(kProcesses, aclError, aclrtMemP2PMap)
REFUSED(kProcesses, aclError, aclrtMemSetPidToShareableHandleV2)
REFUSED(kProcesses, aclError, aclrtNotifyGetExportKey)
REFUSED(kProcesses, aclError, aclrtNotifyImportByKey)
REFUSED(kProcesses, aclError, aclrtNotifySetImportPid)
REFUSED(kProcesses, aclError, aclrtNotifySetImportPidInterServer)

// Queues between devices and processes, and their buffers.
static constexpr const char* kQueues = "hand memory to another thread by a queue of the program";
REFUSED(kQueues, aclError, aclrtAllocBuf)
REFUSED(kQueues, aclError, aclrtAppendBufChain)
REFUSED(kQueues, aclError, aclrtCopyBufRef)
REFUSED(kQueues, aclError, aclrtFreeBuf)
REFUSED(kQueues, aclError, aclrtGetBufChainNum)
REFUSED(kQueues, aclError, aclrtGetBufData)
REFUSED(kQueues, aclError, aclrtGetBufDataLen)
REFUSED(kQueues, aclError, aclrtGetBufFromChain)
REFUSED(kQueues, aclError, aclrtGetBufUserData)
REFUSED(kQueues, aclError, aclrtSetBufDataLen)
REFUSED(kQueues, aclError, aclrtSetBufUserData)
REFUSED(kQueues, aclError, acltdtAddQueueRoute)
REFUSED(kQueues, aclError, acltdtAllocBuf)
REFUSED(kQueues, aclError, acltdtAppendBufChain)
REFUSED(kQueues, aclError, acltdtAttachQueue)
REFUSED(kQueues, aclError, acltdtBindQueueRoutes)
REFUSED(kQueues, aclError, acltdtCopyBufRef)
REFUSED(kQueues, aclError, acltdtCreateQueue)
REFUSED(kQueues, Pointer, acltdtCreateQueueAttr)
REFUSED(kQueues, Pointer, acltdtCreateQueueRoute)
REFUSED(kQueues, Pointer, acltdtCreateQueueRouteList)
REFUSED(kQueues, Pointer, acltdtCreateQueueRouteQueryInfo)
REFUSED(kQueues, aclError, acltdtDequeue)
REFUSED(kQueues, aclError, acltdtDequeueData)
REFUSED(kQueues, aclError, acltdtDestroyQueue)
REFUSED(kQueues, aclError, acltdtDestroyQueueAttr)
REFUSED(kQueues, aclError, acltdtDestroyQueueRoute)
REFUSED(kQueues, aclError, acltdtDestroyQueueRouteList)
REFUSED(kQueues, aclError, acltdtDestroyQueueRouteQueryInfo)
REFUSED(kQueues, aclError, acltdtEnqueue)
REFUSED(kQueues, aclError, acltdtEnqueueData)
REFUSED(kQueues, aclError, acltdtFreeBuf)
REFUSED(kQueues, aclError, acltdtGetBufChainNum)
REFUSED(kQueues, aclError, acltdtGetBufData)
REFUSED(kQueues, aclError, acltdtGetBufDataLen)
REFUSED(kQueues, aclError, acltdtGetBufFromChain)
REFUSED(kQueues, aclError, acltdtGetBufUserData)
REFUSED(kQueues, aclError, acltdtGetQueueAttr)
REFUSED(kQueues, aclError, acltdtGetQueueRoute)
REFUSED(kQueues, size_t, acltdtGetQueueRouteNum)
REFUSED(kQueues, aclError, acltdtGetQueueRouteParam)
REFUSED(kQueues, aclError, acltdtGrantQueue)
REFUSED(kQueues, aclError, acltdtQueryQueueRoutes)
REFUSED(kQueues, aclError, acltdtSetBufDataLen)
REFUSED(kQueues, aclError, acltdtSetBufUserData)
REFUSED(kQueues, aclError, acltdtSetQueueAttr)
REFUSED(kQueues, aclError, acltdtSetQueueRouteQueryInfo)
REFUSED(kQueues, aclError, acltdtUnbindQueueRoutes)

// Groups of cores.
static constexpr const char* kGroups = "set a stream's cores by aclrtSetStreamResLimit";
REFUSED(kGroups, Pointer, aclrtCreateGroupInfo)
REFUSED(kGroups, aclError, aclrtDestroyGroupInfo)
REFUSED(kGroups, aclError, aclrtGetAllGroupInfo)
REFUSED(kGroups, aclError, aclrtGetGroupCount)
REFUSED(kGroups, aclError, aclrtGetGroupInfoDetail)
REFUSED(kGroups, aclError, aclrtSetGroup)

// Snapshots of a process.
static constexpr const char* kSnapshots = "save what the program needs, by torch.save";
REFUSED(kSnapshots, aclError, aclrtSnapShotCallbackRegister)
REFUSED(kSnapshots, aclError, aclrtSnapShotCallbackUnregister)
REFUSED(kSnapshots, aclError, aclrtSnapShotProcessBackup)
REFUSED(kSnapshots, aclError, aclrtSnapShotProcessLock)
REFUSED(kSnapshots, aclError, aclrtSnapShotProcessRestore)
REFUSED(kSnapshots, aclError, aclrtSnapShotProcessUnlock)

// Attributes of managed memory.
static constexpr const char* kManaged = "memory of the host has no places: leave it out";
REFUSED(kManaged, aclError, aclrtMemManagedGetAttr)
REFUSED(kManaged, aclError, aclrtMemManagedGetAttrs)
REFUSED(kManaged, aclError, aclrtMemManagedPrefetchBatchAsync)

// Notes for dumps and the profiler.
static constexpr const char* kReports = "name work by the mstx functions, or torch.profiler";
REFUSED(kReports, Pointer, acldumpGetPath)
REFUSED(kReports, aclError, aclrtCacheLastTaskExtendInfo)
REFUSED(kReports, aclError, aclrtCacheLastTaskOpInfo)
REFUSED(kReports, aclError, aclrtProfTrace)

// Told of faults of the hardware.
static constexpr const char* kFaults = "leave it out: a host has none";
REFUSED(kFaults, aclError, aclRecoverAllHcclTasks)
REFUSED(kFaults, aclError, aclrtRegDeviceStateCallback)
REFUSED(kFaults, aclError, aclrtSetDeviceTaskAbortCallback)

static constexpr const char* kOfADevice = "run this on a device";
REFUSED(kOfADevice, aclError, aclrtCmoAsyncWithBarrier)
REFUSED(kOfADevice, aclError, aclrtCmoWaitBarrier)
REFUSED(kOfADevice, aclError, aclrtCtxGetFloatOverflowAddr)
REFUSED(kOfADevice, aclError, aclrtDeviceGetHostAtomicCapabilities)
REFUSED(kOfADevice, aclError, aclrtDeviceGetP2PAtomicCapabilities)
REFUSED(kOfADevice, aclError, aclrtRandomNumAsync)
REFUSED(kOfADevice, aclError, aclrtReserveMemAddressNoUCMemory)

// Reports to the profiler: torch_npu sends them with every operator and reads no answer; with no profiler
// there is nobody to tell.
ACL_EXPORT uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
ACL_EXPORT int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
ACL_EXPORT int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }
ACL_EXPORT int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
ACL_EXPORT int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
ACL_EXPORT uint64_t MsprofStr2Id(const char*, size_t) { return 0; }
ACL_EXPORT uint64_t MsprofSysCycleTime() { return 0; }
