#include "tensor/torch_places.h"

const struct prb_torch_place prb_torch_places[PRB_TORCH_PLACES] = {
    {0, false}, /* 2.10+ */
    {8, true},  /* until 2.9 */
};

const struct prb_torch_form prb_torch_forms[PRB_TORCH_FORMS] = {
    {56, 16, 48, 8, 31},  /* 2.13 */
    {64, 16, 56, 16, 32}, /* 2.3 to 2.12 */
    {72, 24, 64, 16, 33}, /* 1.13 to 2.2 */
};
