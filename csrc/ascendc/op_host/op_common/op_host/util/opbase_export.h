#ifndef OPBASE_API
#define OPBASE_API
#endif
