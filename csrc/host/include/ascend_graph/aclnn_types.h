// The names of the objects of aclnn calls, without the enumerations of ACL.
#ifndef ASCEND_GRAPH_ACLNN_TYPES_H
#define ASCEND_GRAPH_ACLNN_TYPES_H

#include <stdint.h>

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

typedef int32_t aclnnStatus;
typedef void* aclrtStream;

#endif  // ASCEND_GRAPH_ACLNN_TYPES_H
