// How authors mark the aclnn functions that they write.
#ifndef ASCEND_GRAPH_ACLNN_UTIL_H
#define ASCEND_GRAPH_ACLNN_UTIL_H
#define ACLNN_API __attribute__((visibility("default")))
#endif  // ASCEND_GRAPH_ACLNN_UTIL_H
