#include "toolchain/slog.h"
