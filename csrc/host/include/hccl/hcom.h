// What HCCL says of communicators by their names.
#ifndef HCCL_HCOM_H_
#define HCCL_HCOM_H_

#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcomGetCommHandleByGroup(const char* group, HcclComm* commHandle);
HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm);
HcclResult HcomGetRankSize(const char* group, uint32_t* rankSize);
HcclResult HcomGetRankId(const char* group, uint32_t* rankId);
HcclResult HcomGetLocalRankSize(const char* group, uint32_t* localRankSize);
HcclResult HcomGetLocalRankId(const char* group, uint32_t* localRankId);
HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* size);

#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCOM_H_
