// What tiling functions ask of the ranks of a group.
//
// Sources declare this class themselves, too, under the same guard: the members are where theirs are, and the
// functions are those that do not depend on how many levels a version knows.
#ifndef METADEF_CXX_INC_EXTERNAL_HCOM_HCOM_TOPO_INFO_H_
#define METADEF_CXX_INC_EXTERNAL_HCOM_HCOM_TOPO_INFO_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ge {

constexpr uint32_t COMM_MESH = 1;
constexpr uint32_t COMM_SWITCH = 2;
constexpr uint32_t COMM_RING = 4;
constexpr uint32_t COMM_PAIRWISE = 8;

class HcomTopoInfo {
  public:
    enum class TopoLevel { L0 = 0, L1, L2, MAX };
    struct TopoLevelDesc {
        uint32_t comm_sets;
        uint32_t rank_size;
    };
    using TopoDescs = TopoLevelDesc[static_cast<int32_t>(TopoLevel::MAX)];

    struct TopoInfo {
        int64_t rank_size;
        void* notify_handle;  // null: the host's collectives need none
        TopoDescs topo_level_descs;
        uint64_t local_window_size = 0;
    };

    static HcomTopoInfo& Instance();
    bool TopoInfoHasBeenSet(const char* group);
    // False where there is no such group.
    bool TryGetGroupTopoInfo(const char* group, TopoInfo& info);
    // 0, or another number where there is no such group.
    uint32_t GetGroupRankSize(const char* group, int64_t& rank_size);
    uint32_t GetGroupLocalWindowSize(const char* group, uint64_t& local_window_size);
    // Null where there is no such group.
    TopoDescs* GetGroupTopoDesc(const char* group);

  private:
    HcomTopoInfo() = default;
    ~HcomTopoInfo() = default;
    std::unordered_map<std::string, TopoInfo> rank_info_;
    std::mutex mutex_;
};

}  // namespace ge

#endif  // METADEF_CXX_INC_EXTERNAL_HCOM_HCOM_TOPO_INFO_H_
