#include "base/alog_pub.h"
