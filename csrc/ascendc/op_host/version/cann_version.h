// The versions of CANN's parts: all that of the release that the host runtime stands for.
#ifndef ASCENDC_HOST_CANN_VERSION_H
#define ASCENDC_HOST_CANN_VERSION_H

#define RUNTIME_VERSION_NUM 80500000
#define METADEF_VERSION_NUM 80500000
#define HCOMM_VERSION_NUM 80500000
#define ASC_DEVKIT_VERSION_NUM 80500000

#endif  // ASCENDC_HOST_CANN_VERSION_H
