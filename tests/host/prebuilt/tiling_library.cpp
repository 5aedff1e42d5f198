// A library of tiling functions as CANN's build makes it, and the package's aclnn function: y = 2 * x.
// Contexts are read in the layout of its own header, by offsets. The old ABI of std::string, as CANN has it.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gert {
class RuntimeAttrs {
  public:
    const void* GetPointerByIndex(size_t index) const;
};
}  // namespace gert

namespace optiling {
struct FieldInfo {
    const char *dtype, *name;
    size_t length;
    const char* structure;
    size_t structure_size;
    const char* kind;
};
class TilingDef {
  public:
    virtual ~TilingDef() = delete;
};
}  // namespace optiling

// The layout of optiling::TilingDef.
struct Structure {
    std::vector<optiling::FieldInfo> fields;
    uint8_t* data = nullptr;
    size_t size = 0;
    const char* name = nullptr;
    std::vector<std::pair<void*, size_t>> structures;
    size_t structure_size = 0;
    bool elsewhere = false;
    uint32_t features = 0;
    uint8_t reserved[128] = {};
};

namespace optiling {
class CTilingDataClassFactory {
  public:
    static CTilingDataClassFactory& GetInstance();
    void RegisterTilingData(const char* op_type, std::shared_ptr<TilingDef> (*create)());
};
}  // namespace optiling

namespace {

constexpr uint32_t kFailed = 0xFFFFFFFF;

std::shared_ptr<optiling::TilingDef> make_structure() {
    auto* one = new Structure;
    one->name = "DoubledTilingData";
    one->size = 16;
    one->fields = {{"uint32_t", "blocks", 0, nullptr, 0, "0"},
                   {"uint8_t", "totalPH", 4, nullptr, 0, "1"},
                   {"int64_t", "total", 0, nullptr, 0, "0"}};
    return std::shared_ptr<optiling::TilingDef>(reinterpret_cast<optiling::TilingDef*>(one),
                                                [](optiling::TilingDef*) {});
}
const bool registered = [] {
    for (const char* type : {"Doubled", "DoubledInPlace"})
        optiling::CTilingDataClassFactory::GetInstance().RegisterTilingData(type, make_structure);
    return true;
}();

template <typename T>
T& at(void* base, size_t offset) {
    return *reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

// The words of a context: its inputs, then its outputs.
void* word(void* context, size_t index) { return at<void*>(context, 40 + 8 * index); }

// A node's sides: x and y; then what the compiler noted, the platform, the function, two numbers.
constexpr size_t kInputs = 2 + 5;
enum Output { kKey, kBlocks, kZeroes, kData, kWorkspaces };

enum Mode { kGood, kFails, kFaults, kNeverEnds, kWritesBeyond, kSaysMore, kManyWorkspaces };

uint32_t tile(void* context) {
    char* node = at<char*>(context, 16);
    const size_t inputs = at<size_t>(node, 16), tensors = at<size_t>(node, 24) + at<size_t>(node, 32);
    const auto* attrs = reinterpret_cast<const gert::RuntimeAttrs*>(node + 80 + 48 * inputs + 144 * tensors);
    const int64_t mode = *static_cast<const int64_t*>(attrs->GetPointerByIndex(0));
    const auto* x = static_cast<const int64_t*>(*static_cast<void**>(word(context, 0)));
    const auto* y = static_cast<const int64_t*>(*static_cast<void**>(word(context, 1)));
    void* platform = *static_cast<void**>(word(context, 3));
    if (at<size_t>(context, 0) != kInputs || platform == nullptr) return 17;
    const auto output = [&](size_t index) { return word(context, kInputs + index); };
    void* data = *static_cast<void**>(output(kData));
    auto* workspaces = static_cast<size_t*>(*static_cast<void**>(output(kWorkspaces)));
    if (mode == kFails || x[0] != 1 || y[0] != 1) return kFailed;
    if (mode == kFaults) return *static_cast<volatile uint32_t*>(nullptr);
    if (mode == kNeverEnds)
        for (volatile bool forever = true; forever;) usleep(1000);
    auto* bytes = static_cast<char*>(at<void*>(data, 16));
    if (mode == kWritesBeyond) std::memset(bytes, 1, at<size_t>(data, 0) + 1);
    at<uint32_t>(bytes, 0) = 2;
    at<int64_t>(bytes, 8) = x[1];
    at<size_t>(data, 8) = mode == kSaysMore ? 24 : 16;
    at<uint64_t>(output(kKey), 0) = 3;
    at<uint32_t>(output(kBlocks), 0) = 2;
    workspaces[1] = mode == kManyWorkspaces ? 17 : 1;
    workspaces[7] = 64;
    return 0;
}

}  // namespace

struct Entry {
    const char* type;
    void *shape, *range, *dtype, *tiling, *words[3];
    uint64_t capacity, data_inputs;
    std::vector<uint64_t> list;
    std::unordered_set<std::string> names;
    uint64_t words_of_inputs[4];
    uint8_t placements;
    uint64_t outputs;
    void* symbols[2];
    uint32_t bytes, version;
    uint64_t rest[510];
};
static_assert(sizeof(Entry) == 0x10d8, "as in libraries of CANN 8.5");

namespace {
uint32_t infer_shape(void* context) {
    std::memcpy(*static_cast<void**>(word(context, 2)), *static_cast<void**>(word(context, 0)), 2 * 8);
    return 0;
}
uint32_t infer_dtype(void* context) {
    at<int32_t>(word(context, 1), 0) = at<int32_t>(word(context, 0), 0);
    return 0;
}
}  // namespace

extern "C" size_t GetRegisteredOpNum() { return 2; }
extern "C" int32_t GetOpImplFunctionsV2(Entry* entries, size_t) {
    for (const char* type : {"Doubled", "DoubledInPlace"}) {
        entries->type = type;
        entries->shape = reinterpret_cast<void*>(infer_shape);
        entries->dtype = reinterpret_cast<void*>(infer_dtype);
        entries->tiling = reinterpret_cast<void*>(tile);
        entries->bytes = sizeof(Entry) - sizeof(void*);
        entries++->version = 2;
    }
    return 0;
}
