// libophost_comm_legacy.so: what operators of matrix products open next to their own library, or in CANN's
// directory of operators. The host runtime keeps no cache of tilings, so there is nothing to prepare. The
// tilings of TBE's kernels, which are in the same library, are not there: who asks for one is told so by the
// operator.
#include "acl/abi.h"

namespace gert {
class TilingContext;
class TilingParseContext;
}  // namespace gert

ACL_EXPORT bool LegacyTilingPrepareForOpCache(gert::TilingContext*) { return true; }
ACL_EXPORT bool LegacyTilingParsePrepareForOpCache(gert::TilingParseContext*) { return true; }
