// How the ranks of a communicator are connected.
#ifndef HCCL_RANK_GRAPH_H_
#define HCCL_RANK_GRAPH_H_

#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    COMM_TOPO_RESERVED = -1,
    COMM_TOPO_CLOS = 0,
    COMM_TOPO_1DMESH = 1,
    COMM_TOPO_910_93 = 2,
    COMM_TOPO_310P = 3,
    COMM_TOPO_A2AXSERVER = 4,
    COMM_TOPO_CUSTOM = 5
} CommTopo;

HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** netLayers, uint32_t* netLayerNum);
HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t netLayer, uint32_t* rankNum);
HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t netLayer, CommTopo* topoType);

#ifdef __cplusplus
}
#endif

#endif  // HCCL_RANK_GRAPH_H_
