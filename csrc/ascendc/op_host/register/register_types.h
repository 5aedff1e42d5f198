// What registries of op_host declare their classes with.
#ifndef INC_EXTERNAL_REGISTER_REGISTER_TYPES_H_
#define INC_EXTERNAL_REGISTER_REGISTER_TYPES_H_

#define FMK_FUNC_HOST_VISIBILITY __attribute__((visibility("default")))
#define FMK_FUNC_DEV_VISIBILITY __attribute__((visibility("default")))

#endif  // INC_EXTERNAL_REGISTER_REGISTER_TYPES_H_
