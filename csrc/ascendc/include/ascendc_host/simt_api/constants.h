// Numbers that functions in SIMT form name, rounded to the nearest of their type.
#ifndef ASCENDC_HOST_SIMT_API_CONSTANTS_H
#define ASCENDC_HOST_SIMT_API_CONSTANTS_H

#include "ascendc_host/basic_api/limits.h"

#define ASCRT_INF_F (::AscendC::NumericLimits<float>::Infinity())
#define ASCRT_NAN_F (::ascendc_host::bits_as<float>(0x7fffffffu))
#define ASCRT_MIN_DENORM_F (::AscendC::NumericLimits<float>::DeNormMin())
#define ASCRT_MAX_NORMAL_F (::AscendC::NumericLimits<float>::Max())
#define ASCRT_NORM_HUGE_F ASCRT_MAX_NORMAL_F
#define ASCRT_NEG_ZERO_F (-0.0f)
#define ASCRT_ZERO_F 0.0f
#define ASCRT_ONE_F 1.0f
#define ASCRT_SQRT_HALF_F 0x1.6a09e6p-1f
#define ASCRT_SQRT_HALF_HI_F ASCRT_SQRT_HALF_F
#define ASCRT_SQRT_HALF_LO_F (static_cast<float>(0.70710678118654752440 - ASCRT_SQRT_HALF_HI_F))
#define ASCRT_SQRT_TWO_F (static_cast<float>(1.41421356237309504880))
#define ASCRT_THIRD_F (static_cast<float>(1.0 / 3))
#define ASCRT_PI_F (static_cast<float>(3.14159265358979323846))
#define ASCRT_PIO2_F (ASCRT_PI_F / 2)
#define ASCRT_PIO4_F (ASCRT_PI_F / 4)
#define ASCRT_3PIO4_F (static_cast<float>(2.35619449019234492885))
#define ASCRT_2_OVER_PI_F (static_cast<float>(0.63661977236758134308))
#define ASCRT_SQRT_2_OVER_PI_F (static_cast<float>(0.79788456080286535588))
#define ASCRT_L2E_F (static_cast<float>(1.44269504088896340736))
#define ASCRT_L2T_F (static_cast<float>(3.32192809488736234787))
#define ASCRT_LG2_F (static_cast<float>(0.30102999566398119521))
#define ASCRT_LGE_F (static_cast<float>(0.43429448190325182765))
#define ASCRT_LN2_F (static_cast<float>(0.69314718055994530942))
#define ASCRT_LNT_F (static_cast<float>(2.30258509299404568402))
#define ASCRT_LNPI_F (static_cast<float>(1.14472988584940017414))
#define ASCRT_TWO_TO_M126_F 0x1p-126f
#define ASCRT_TWO_TO_126_F 0x1p126f
#define ASCRT_TWO_TO_23_F 0x1p23f
#define ASCRT_TWO_TO_24_F 0x1p24f
#define ASCRT_TWO_TO_31_F 0x1p31f
#define ASCRT_TWO_TO_32_F 0x1p32f
#define ASCRT_REMQUO_BITS_F 3u
#define ASCRT_REMQUO_MASK_F 7u
#define ASCRT_TRIG_PLOSS_F 105615.0f
#define ASCRT_MIN_VAL_S 0x80000000
#define ASCRT_MAX_VAL_S 0x7fffffff

#define ASCRT_INF_FP16 (::AscendC::NumericLimits<half>::Infinity())
#define ASCRT_MAX_NORMAL_FP16 (::AscendC::NumericLimits<half>::Max())
#define ASCRT_MIN_DENORM_FP16 (::AscendC::NumericLimits<half>::DeNormMin())
#define ASCRT_NAN_FP16 (::ascendc_host::bits_as<half>(uint16_t(0x7fff)))
#define ASCRT_NEG_ZERO_FP16 (::ascendc_host::bits_as<half>(uint16_t(0x8000)))
#define ASCRT_ZERO_FP16 (::ascendc_host::bits_as<half>(uint16_t(0x0000)))
#define ASCRT_ONE_FP16 (::ascendc_host::bits_as<half>(uint16_t(0x3c00)))
#define ASCRT_INF_BF16 (::AscendC::NumericLimits<bfloat16_t>::Infinity())
#define ASCRT_MAX_NORMAL_BF16 (::AscendC::NumericLimits<bfloat16_t>::Max())
#define ASCRT_MIN_DENORM_BF16 (::AscendC::NumericLimits<bfloat16_t>::DeNormMin())
#define ASCRT_NAN_BF16 (::ascendc_host::bits_as<bfloat16_t>(uint16_t(0x7fff)))
#define ASCRT_NEG_ZERO_BF16 (::ascendc_host::bits_as<bfloat16_t>(uint16_t(0x8000)))
#define ASCRT_ZERO_BF16 (::ascendc_host::bits_as<bfloat16_t>(uint16_t(0x0000)))
#define ASCRT_ONE_BF16 (::ascendc_host::bits_as<bfloat16_t>(uint16_t(0x3f80)))

#endif  // ASCENDC_HOST_SIMT_API_CONSTANTS_H
