// The slice of ACL's C ABI that the host runtime implements: types, enumerators and error codes as CANN
// documents them.
//
// Declared here because the libraries are built where no CANN and no torch_npu is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#define ACL_EXPORT extern "C" __attribute__((visibility("default")))

using aclError = int;
using aclrtStream = void*;
using aclrtEvent = void*;
using aclrtContext = void*;
using aclmdlRI = void*;
using aclrtTaskGrp = void*;

inline constexpr aclError ACL_SUCCESS = 0;
inline constexpr aclError ACL_ERROR_INVALID_PARAM = 100000;
inline constexpr aclError ACL_ERROR_UNINITIALIZE = 100001;
inline constexpr aclError ACL_ERROR_REPEAT_INITIALIZE = 100002;
inline constexpr aclError ACL_ERROR_OP_NOT_FOUND = 100024;
inline constexpr aclError ACL_ERROR_BAD_ALLOC = 200000;
inline constexpr aclError ACL_ERROR_API_NOT_SUPPORT = 200001;
inline constexpr aclError ACL_ERROR_INVALID_DEVICE = 200002;
inline constexpr aclError ACL_ERROR_INVALID_RESOURCE_HANDLE = 200005;
inline constexpr aclError ACL_ERROR_INTERNAL_ERROR = 500000;
inline constexpr aclError ACL_ERROR_FAILURE = 500001;
inline constexpr aclError ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
inline constexpr aclError ACL_ERROR_RT_NO_DEVICE = 207004;
inline constexpr aclError ACL_ERROR_RT_PARAM_INVALID = 107000;
inline constexpr aclError ACL_ERROR_RT_CONTEXT_NULL = 107002;
inline constexpr aclError ACL_ERROR_RT_STREAM_SUBSCRIBE = 107011;
inline constexpr aclError ACL_ERROR_RT_THREAD_SUBSCRIBE = 107012;
inline constexpr aclError ACL_ERROR_RT_STREAM_NO_CB_REG = 107015;
inline constexpr aclError ACL_ERROR_RT_CAPTURE_DEPENDENCY = 107024;
inline constexpr aclError ACL_ERROR_RT_STREAM_UNJOINED = 107025;
inline constexpr aclError ACL_ERROR_RT_STREAM_CAPTURE_WRONG = 107030;
inline constexpr aclError ACL_ERROR_RT_REPORT_TIMEOUT = 507012;
inline constexpr aclError ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;

enum aclDataType : int {};
enum aclFormat : int {};
enum aclrtMemcpyKind : int {};
enum aclmdlRICaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
