// Names that the device's compiler knows without an include. The driver includes them before a source, so
// that macros of these names (`#define EVENT_ID0 0`) come after them, as on the device.
#ifndef ASCENDC_HOST_INTERNAL_COMPILER_NAMES_H
#define ASCENDC_HOST_INTERNAL_COMPILER_NAMES_H

enum pipe_t {
    PIPE_S = 0,
    PIPE_V,
    PIPE_M,
    PIPE_MTE1,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_ALL,
    PIPE_MTE4,
    PIPE_MTE5,
    PIPE_V2,
    PIPE_FIX
};
enum event_t { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum pad_t {
    PAD_NONE = 0,
    PAD_MODE1,
    PAD_MODE2,
    PAD_MODE3,
    PAD_MODE4,
    PAD_MODE5,
    PAD_MODE6,
    PAD_MODE7,
    PAD_MODE8
};
// Whether Mmad and Fixpipe wait for each other fractal by fractal, as their unitFlag says it.
enum unit_flag_t { UFMode0 = 0, UFMode2 = 2, UFMode3 = 3 };
// In which direction LoadData goes on.
enum addr_cal_mode_t { inc = 0, dec };
enum cache_line_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum dcci_dst_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum QuantMode_t {
    NoQuant = 0,
    F322F16,
    F322BF16,
    DEQF16,
    VDEQF16,
    QF322B8_PRE,
    VQF322B8_PRE,
    REQ8,
    VREQ8,
    QS322BF16_PRE,
    VQS322BF16_PRE,
    QF322F32_PRE,
    VQF322F32_PRE,
    QF322F16_PRE,
    VQF322F16_PRE,
    QF322BF16_PRE,
    VQF322BF16_PRE
};

#endif  // ASCENDC_HOST_INTERNAL_COMPILER_NAMES_H
