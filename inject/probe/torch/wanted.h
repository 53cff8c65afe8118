/* What the settings have torch tracing be. */
#ifndef PRB_PROBE_TORCH_WANTED_H
#define PRB_PROBE_TORCH_WANTED_H

#include "inject/probe/torch/spec.h"

/* Both settings as one spec; off when the environment had one that could not be parsed. */
void prb_torch_wanted(struct prb_torch_spec *out);

#endif
