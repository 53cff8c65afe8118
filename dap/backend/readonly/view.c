/* What was read of the target, its threads, and the handles into it: see readonly.h. */
#include <stdlib.h>

#include "dap/backend/readonly/readonly.h"

/* ---- handles ---- */

json_int_t prb_dap_readonly_handle(struct prb_dap_readonly *readonly,
                                   struct prb_dap_readonly_handle handle)
{
    if (readonly->handle_count == readonly->handle_cap) {
        size_t cap = readonly->handle_cap ? readonly->handle_cap * 2 : 256;
        struct prb_dap_readonly_handle *grown =
            cap <= 2 * PRB_DAP_READONLY_HANDLES_MAX
                ? realloc(readonly->handles, cap * sizeof *readonly->handles)
                : NULL;
        if (!grown) {
            free(handle.expression);
            return 0;
        }
        readonly->handles = grown;
        readonly->handle_cap = cap;
    }
    readonly->handles[readonly->handle_count] = handle;
    return readonly->first_handle + (json_int_t)readonly->handle_count++;
}

const struct prb_dap_readonly_handle *
prb_dap_readonly_find(struct prb_dap_readonly *readonly, json_int_t number, struct prb_error *err)
{
    if (number < readonly->first_handle ||
        number >= readonly->first_handle + (json_int_t)readonly->handle_count)
        return PRB_NULL(
            prb_fail(err, PRB_NOT_FOUND, "%lld belongs to an earlier stop", (long long)number));
    return &readonly->handles[number - readonly->first_handle];
}

/* Numbers go on where they were, so that an old number never means a new object.  Object references
 * of DAP end at 2^31 - 1; native frames begin at PRB_DAP_NATIVE_ID. */
static void drop_handles(struct prb_dap_readonly *readonly)
{
    for (size_t i = 0; i < readonly->handle_count; i++)
        free(readonly->handles[i].expression);
    readonly->first_handle += (json_int_t)readonly->handle_count;
    if (readonly->first_handle > PRB_DAP_NATIVE_ID - 2 * PRB_DAP_READONLY_HANDLES_MAX)
        readonly->first_handle = 1;
    readonly->handle_count = 0;
}

/* ---- the view ---- */

void prb_dap_readonly_drop(struct prb_dap_readonly *readonly)
{
    drop_handles(readonly);
    prb_stacks_free(readonly->view);
    readonly->view = NULL;
}

bool prb_dap_readonly_take(struct prb_dap_readonly *readonly, struct prb_error *err)
{
    const struct prb_stack_options options = {
        .native = !readonly->still,
        .locals = true,
        .all_interpreters = true,
        .untouched = true,
        .stop = readonly->still,
        .source_lines = !readonly->live,
        .repr_limit = PRB_DAP_READONLY_VALUE,
    };
    struct prb_stacks *stacks = prb_stacks_take(readonly->target, &options, err);
    if (!stacks)
        return false;
    prb_dap_readonly_drop(readonly);
    readonly->view = stacks;
    return true;
}

const struct prb_stacks *prb_dap_readonly_view(struct prb_dap_readonly *readonly,
                                               struct prb_error *err)
{
    if (readonly->view)
        return readonly->view;
    if (readonly->live)
        return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "the process runs: pause reads it"));
    return prb_dap_readonly_take(readonly, err) ? readonly->view : NULL;
}

json_int_t prb_dap_readonly_thread_id(const struct prb_stacks *stacks, size_t i)
{
    pid_t tid = stacks->threads[i].os_thread_id;
    return tid ? tid : PRB_DAP_READONLY_THREAD + (json_int_t)i;
}

const struct prb_thread *prb_dap_readonly_thread_of(const struct prb_stacks *stacks, json_int_t id,
                                                    size_t *index_out)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (prb_dap_readonly_thread_id(stacks, i) == id) {
            *index_out = i;
            return &stacks->threads[i];
        }
    return NULL;
}

const struct prb_thread *prb_dap_readonly_thread_asked(struct prb_dap_readonly *readonly,
                                                       const json_t *arguments, size_t *index_out,
                                                       struct prb_error *err)
{
    json_int_t id = prb_dap_readonly_integer(arguments, "threadId", 0);
    const struct prb_stacks *stacks = prb_dap_readonly_view(readonly, err);
    if (!stacks)
        return NULL;
    const struct prb_thread *thread = prb_dap_readonly_thread_of(stacks, id, index_out);
    return thread
               ? thread
               : PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "there is no thread %lld", (long long)id));
}
