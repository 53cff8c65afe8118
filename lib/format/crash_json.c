/* A crash dump as JSON (format.h). */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/format.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* What a dump is read with. */
static const struct prb_stack_options whole = {.native = true,
                                               .locals = true,
                                               .all_interpreters = true,
                                               .repr_limit = 120,
                                               .hide_secrets = true};

static void add_text(FILE *out, const char *key, const char *value)
{
    fprintf(out, "\"%s\": ", key);
    prb_out_json_text(out, value, value ? strlen(value) : 0);
    fputs(", ", out);
}

static void add_crash(const struct prb_crash *crash, FILE *out)
{
    fputc('{', out);
    add_text(out, "kind", crash->kind);
    add_text(out, "title", crash->title);
    add_text(out, "signal_name", crash->signal_name);
    add_text(out, "reason", crash->reason);
    add_text(out, "thread", crash->thread);
    add_text(out, "exception", crash->exception);
    add_text(out, "message", crash->message);
    add_text(out, "function", crash->function);
    add_text(out, "file", crash->file);
    add_text(out, "native", crash->native);
    add_text(out, "place", crash->place);
    add_text(out, "group", crash->group);
    fprintf(out,
            "\"time\": %.6f, \"pid\": %d, \"tid\": %d, \"signal\": %d, \"code\": %d, \"line\": %d, "
            "\"rank\": %d, \"local_rank\": %d, \"world_size\": %d, \"address\": ",
            crash->time, (int)crash->pid, (int)crash->tid, crash->signal, crash->code, crash->line,
            crash->rank, crash->local_rank, crash->world_size);
    if (crash->has_address)
        fprintf(out, "%" PRIu64 "}", (uint64_t)crash->address);
    else
        fputs("null}", out);
}

static void add_frames(const struct prb_exception *exception, FILE *out)
{
    fputs("\"frames\": [", out);
    for (size_t i = 0; i < exception->frame_count; i++) {
        fputs(i ? ", {" : "{", out);
        add_text(out, "function", exception->frames[i].qualname);
        add_text(out, "file", exception->frames[i].filename);
        fprintf(out, "\"line\": %d}", exception->frames[i].line);
    }
    fputc(']', out);
}

static void add_exceptions(struct prb_target *target, const struct prb_stacks *stacks, FILE *out)
{
    struct prb_exceptions **all = prb_exceptions_all(target, stacks, NULL);
    bool any = false;
    fputc('[', out);
    for (size_t t = 0; all && t < stacks->thread_count; t++)
        for (size_t i = 0; all[t] && i < all[t]->count; i++) {
            const struct prb_exception *one = &all[t]->items[i];
            fprintf(out, "%s{\"os_thread_id\": %d, ", any ? ", " : "",
                    (int)stacks->threads[t].os_thread_id);
            add_text(out, "type", one->type);
            add_text(out, "message", one->message);
            add_text(out, "link", one->link);
            add_frames(one, out);
            fputc('}', out);
            any = true;
        }
    prb_exceptions_all_free(all, stacks->thread_count);
    fputc(']', out);
}

bool prb_crash_json(struct prb_target *target, const char *path, FILE *out, struct prb_error *err)
{
    const struct prb_crash *crash = prb_target_crash(target);
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = prb_stacks_take(target, &whole, err);
    PRB_AUTO_FREE char *json = stacks ? prb_stacks_json(stacks, err) : NULL;
    if (!json)
        return false;
    fputs("{\"file\": ", out);
    prb_out_json_text(out, path, strlen(path));
    fputs(", \"crash\": ", out);
    if (crash)
        add_crash(crash, out);
    else
        fputs("null", out);
    fputs(", \"exceptions\": ", out);
    add_exceptions(target, stacks, out);
    fputs(", \"backtrace\": ", out);
    prb_out_json(out, json, strlen(json));
    fputs("}\n", out);
    return true;
}
