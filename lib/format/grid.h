/* Grids inside the library (format.h). */
#ifndef PRB_FORMAT_GRID_H
#define PRB_FORMAT_GRID_H

#include "base/cleanup.h"
#include "format/format.h"

PRB_DEFINE_AUTO_PTR(prb_grid, struct prb_grid, prb_grid_free)

#endif
