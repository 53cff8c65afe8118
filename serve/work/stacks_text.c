/* cli/look/stacks.c into memory: 1 ms, where a program of its own takes 6. */
#include "serve/work/stacks_text.h"

#include "base/cleanup.h"
#include "cli/look/stacks.h"

bool prb_stacks_text(struct prb_serve_target *held, bool native, bool locals, bool group,
                     struct prb_buf *out)
{
    struct prb_target *target = prb_serve_target_open(held);
    const struct prb_stack_options options = {.native = native,
                                              .locals = locals,
                                              .hide_secrets = true,
                                              .repr_limit = PRB_STACKS_TEXT_REPR};
    const struct prb_stacks_style style = {.group = group, .crash = prb_target_crash(target)};
    struct prb_error err = {0};
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    struct prb_stacks *stacks = prb_stacks_take(target, &options, &err);
    FILE *file = stacks && !stacks->warning ? open_memstream(&text, &size) : NULL;
    bool ok = file && prb_stacks_print(stacks, &style, file, &err);
    if (file && fclose(file) != 0)
        ok = false;
    if (stacks)
        prb_stacks_free(stacks);
    if (ok)
        prb_buf_add(out, text, size);
    return ok && prb_buf_ok(out);
}
