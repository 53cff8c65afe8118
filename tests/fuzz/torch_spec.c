/* The spec of torch tracing.  What is taken has values within bounds and variables that parse. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/torch/spec.h"
#include "training/watched.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prb_torch_spec spec, again;
    struct prb_error err = {0};
    char *text = strndup((const char *)data, size);
    if (!text)
        return 0;
    if (!prb_torch_spec_parse(text, &spec, &err)) {
        if (err.code != PRB_USAGE || !err.text[0])
            abort();
    } else {
        struct prb_watched *watched = calloc(PRB_WATCHED_MAX, sizeof *watched);
        size_t count;
        if (spec.rate > 1 || spec.layer_rate > 1 || spec.layer_rate < 0 || spec.depth < 0 ||
            spec.depth > PRB_TORCH_DEPTH_MAX || spec.shadow_steps > PRB_TORCH_SHADOW_MAX)
            abort();
        if (watched && spec.exprs[0] && !prb_watched_parse(spec.exprs, watched, &count, &err))
            abort();
        if (!prb_torch_spec_both("", spec.exprs, &again, &err) || strcmp(again.exprs, spec.exprs))
            abort();
        free(watched);
    }
    free(text);
    return 0;
}
