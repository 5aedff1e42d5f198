#pragma once
#include "ascendc/host_api/tiling/template_argument.h"
#include "graph/c_types.h"

ASCENDC_TPL_ARGS_DECL(Pick, ASCENDC_TPL_DATATYPE_DECL(T, C_DT_FLOAT16, C_DT_FLOAT),
                      ASCENDC_TPL_UINT_DECL(factor, ASCENDC_TPL_8_BW, ASCENDC_TPL_UI_MIX, 1, 2, 4, 10, 7),
                      ASCENDC_TPL_BOOL_DECL(negative, 0, 1), );

ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_DATATYPE_SEL(T, C_DT_FLOAT16, C_DT_FLOAT),
                                     ASCENDC_TPL_UINT_SEL(factor, ASCENDC_TPL_UI_LIST, 10, 3,
                                                          NOBODY_DEFINES_IT),
                                     ASCENDC_TPL_BOOL_SEL(negative, 0, 1), ), );
