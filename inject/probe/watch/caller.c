/* "loss@": whose variable it is, where no function is named.  See watch.h. */
#include <string.h>

#include "inject/probe/watch/watch.h"

/* PyTorch's own files that lie between a training loop and the end of a backward or of a step: its
 * optimizers have a local "loss", too. */
static const char *const folders[] = {
    "/torch/optim/", "/torch/autograd/",    "/torch/utils/",
    "/torch/amp/",   "/torch/cuda/amp/",    "/torch/_",
    "/torch/nn/",    "/torch/distributed/", "/torch/overrides.",
};

bool prb_watch_is_torch(const char *code)
{
    static const struct prb_watch_reader direct = {.direct = true};
    char file[PRB_WATCH_TEXT_MAX + 1];
    uint64_t at;
    if (!PRB_WATCH_FIELD(&direct, code, code, filename, &at))
        return false;
    size_t len = prb_watch_str(&direct, (const char *)(uintptr_t)at, file, sizeof file - 1);
    file[len] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]))
            return true;
    return false;
}

void prb_watch_function_name(const char *code, char out[PRB_WATCHED_TEXT_MAX])
{
    static const struct prb_watch_reader direct = {.direct = true};
    uint64_t name = 0;
    size_t len = 0;
    if (PRB_WATCH_FIELD(&direct, code, code, name, &name))
        len = prb_watch_str(&direct, (const char *)(uintptr_t)name, out, PRB_WATCHED_TEXT_MAX - 1);
    out[len] = '\0';
}
