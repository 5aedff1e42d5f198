// Function and address space qualifiers of Ascend C, which mean nothing to a host compiler.
#ifndef ASCENDC_HOST_INTERNAL_QUALIFIERS_H
#define ASCENDC_HOST_INTERNAL_QUALIFIERS_H

#include <cstdint>

#define __aicore__
#ifndef __global__
#define __global__
#endif
#define __host_aicore__
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
// The compiler driver keeps these, to declare the kernel's type in its body.
#ifndef __vector__
#define __vector__
#endif
#ifndef __cube__
#define __cube__
#endif
#ifndef __mix__
#define __mix__(...)
#endif
#define __schedmode__(...)
// These, too, to refuse arrays that threads would share.
#ifndef __simt_vf__
#define __simt_vf__
#endif
#ifndef __simt_callee__
#define __simt_callee__
#endif
#ifndef __ubuf__
#define __ubuf__
#endif
#ifndef __local_mem__
#define __local_mem__
#endif
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __check_sync_alias__
#define __sync_alias__
#define __sync_noalias__
#define __sync_in__
#define __sync_out__

#define __gm__
#define __tiling_data_ptr__ __gm__ const
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __kfc_workspace__

// One per core on the device; a block is a thread here.
#define __BLOCK_LOCAL__ thread_local

#ifndef GM_ADDR
#define GM_ADDR __gm__ uint8_t*
#endif

// The architecture whose rules are checked, which the compiler driver sets: dav-2201 (Atlas A2 training and
// inference) with split cube and vector cores, or dav-3510 (Ascend950) with vector registers.
#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#ifndef __CCE__
#define __CCE__ 1
#endif
#ifndef __CCE_AICORE__
#if __NPU_ARCH__ == 3510
#define __CCE_AICORE__ 310
#else
#define __CCE_AICORE__ 220
#endif
#endif

#endif  // ASCENDC_HOST_INTERNAL_QUALIFIERS_H
