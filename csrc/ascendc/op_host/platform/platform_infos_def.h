// fe::PlatFormInfos: what tiling functions hand to platform_ascendc::PlatformAscendC, which describes the
// device.
#ifndef ASCEND_GRAPH_PLATFORM_INFOS_DEF_H
#define ASCEND_GRAPH_PLATFORM_INFOS_DEF_H

namespace fe {

class PlatFormInfos {
  public:
    static PlatFormInfos* get() {
        static PlatFormInfos infos;
        return &infos;
    }
};

}  // namespace fe

#endif  // ASCEND_GRAPH_PLATFORM_INFOS_DEF_H
