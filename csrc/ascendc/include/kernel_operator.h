// The Ascend C kernel API on the host: what a kernel includes.
//
// The headers are in ascendc_host, in the chapters of CANN's documentation of the API:
//
//   basic_api    tensors, queues, copies, vector and cube instructions, synchronization
//   adv_api      high-level API: activation, filter, hccl, index, math, matmul, normalization, pad,
//                quantization, reduce, select, sort, transpose
//   reg_compute  instructions on the vector registers of dav-3510
//   simt_api     functions in SIMT form, which run in threads of dav-3510
//   c_api        C API
//   utils        output and assertions of kernels, and AscendC::Std
//   internal     what the chapters share, and functions under the API that CANN's own sources call
//
// matmul, simt_api and c_api have umbrellas of their own, as CANN's have: lib/matmul_intf.h,
// simt_api/asc_simt.h and c_api/asc_simd.h.
#ifndef KERNEL_OPERATOR_H
#define KERNEL_OPERATOR_H

#include "ascendc_host/adv_api/activation/activation.h"
#include "ascendc_host/adv_api/activation/softmax.h"
#include "ascendc_host/adv_api/filter/dropout.h"
#include "ascendc_host/adv_api/hccl/hccl.h"
#include "ascendc_host/adv_api/index/arithprogression.h"
#include "ascendc_host/adv_api/math/cumsum.h"
#include "ascendc_host/adv_api/math/elements.h"
#include "ascendc_host/adv_api/math/math.h"
#include "ascendc_host/adv_api/normalization/normalization.h"
#include "ascendc_host/adv_api/normalization/welford.h"
#include "ascendc_host/adv_api/pad/broadcast.h"
#include "ascendc_host/adv_api/pad/pad.h"
#include "ascendc_host/adv_api/quantization/antiquantization.h"
#include "ascendc_host/adv_api/quantization/quantization.h"
#include "ascendc_host/adv_api/reduce/reduce.h"
#include "ascendc_host/adv_api/reduce/reduce_pattern.h"
#include "ascendc_host/adv_api/select/select.h"
#include "ascendc_host/adv_api/sort/sort.h"
#include "ascendc_host/adv_api/transpose/confusion_transpose.h"
#include "ascendc_host/adv_api/transpose/transdata.h"
#include "ascendc_host/basic_api/arithmetic.h"
#include "ascendc_host/basic_api/atomic.h"
#include "ascendc_host/basic_api/cast.h"
#include "ascendc_host/basic_api/compare.h"
#include "ascendc_host/basic_api/copy.h"
#include "ascendc_host/basic_api/copy_dimensions.h"
#include "ascendc_host/basic_api/copy_pad.h"
#include "ascendc_host/basic_api/cube.h"
#include "ascendc_host/basic_api/cube_dav3510.h"
#include "ascendc_host/basic_api/enums.h"
#include "ascendc_host/basic_api/feature_map.h"
#include "ascendc_host/basic_api/fused_cast.h"
#include "ascendc_host/basic_api/layout.h"
#include "ascendc_host/basic_api/limits.h"
#include "ascendc_host/basic_api/list.h"
#include "ascendc_host/basic_api/mask.h"
#include "ascendc_host/basic_api/pipe.h"
#include "ascendc_host/basic_api/reduce.h"
#include "ascendc_host/basic_api/reshape.h"
#include "ascendc_host/basic_api/scalar.h"
#include "ascendc_host/basic_api/sort.h"
#include "ascendc_host/basic_api/sparse.h"
#include "ascendc_host/basic_api/sync.h"
#include "ascendc_host/basic_api/tensor.h"
#include "ascendc_host/basic_api/tiling.h"
#include "ascendc_host/internal/cube_instructions.h"
#include "ascendc_host/internal/impl_functions.h"
#include "ascendc_host/internal/instruction_copies.h"
#include "ascendc_host/internal/instructions.h"
#include "ascendc_host/internal/tik2.h"
#include "ascendc_host/internal/unsupported.h"
#include "ascendc_host/reg_compute/reg_compute.h"
#if __NPU_ARCH__ == 3510
#include "ascendc_host/simt_api/older_names.h"
#endif
#include "ascendc_host/utils/debug.h"

#endif  // KERNEL_OPERATOR_H
