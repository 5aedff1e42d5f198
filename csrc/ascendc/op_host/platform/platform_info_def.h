// The header of CANN that brings map, string and vector into every source that reads the platform's
// description; sources of op_host write the names without std:: for it.
#ifndef PLATFORM_INFO_DEF_H
#define PLATFORM_INFO_DEF_H

#include <map>
#include <string>
#include <vector>

#include "ascend_graph/platform_infos.h"

using std::map;
using std::string;
using std::vector;

#endif  // PLATFORM_INFO_DEF_H
