/* Who asks for progress (progress.h). */
#include "base/progress.h"

prb_progress_fn *prb_progress_told;

void prb_progress_to(prb_progress_fn *told) { prb_progress_told = told; }
