/* probing crash show: one dump as text. */
#include <string.h>
#include <time.h>

#include "cli/crash/crash.h"
#include "cli/look/stacks.h"
#include "cli/print/out.h"

static const struct prb_stack_options whole = {.native = true,
                                               .locals = true,
                                               .all_interpreters = true,
                                               .repr_limit = 120,
                                               .hide_secrets = true};

static void add_text(FILE *out, const char *before, const char *text)
{
    if (!text || !*text)
        return;
    fputs(before, out);
    prb_out_text(out, text);
}

static void print_head(const struct prb_crash *crash, const char *path, FILE *out)
{
    char when[40] = "?";
    time_t seconds = (time_t)crash->time;
    struct tm parts;
    if (gmtime_r(&seconds, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &parts);
    prb_out_style(out, PRB_STYLE_WARNING);
    prb_out_text(out, crash->title ? crash->title : "a crash");
    prb_out_style(out, PRB_STYLE_PLAIN);
    fprintf(out, "\nin thread %d", (int)crash->tid);
    add_text(out, " ", crash->thread);
    fprintf(out, " of process %d", (int)crash->pid);
    if (crash->rank >= 0)
        fprintf(out, ", rank %d", crash->rank);
    if (crash->rank >= 0 && crash->world_size > 0)
        fprintf(out, " of %d", crash->world_size);
    fprintf(out, ", %s", when);
    add_text(out, "\nat ", crash->place);
    if (crash->reason && (!crash->title || strcmp(crash->reason, crash->title) != 0))
        add_text(out, "\n", crash->reason);
    add_text(out, "\nfile ", path);
    fputs("\n\n", out);
}

static void print_exception(const struct prb_exception *exception, FILE *out)
{
    if (exception->link)
        fprintf(out, "  its %s:\n", exception->link);
    for (size_t i = 0; i < exception->frame_count; i++) {
        fputs("    ", out);
        prb_out_text(out, exception->frames[i].qualname);
        add_text(out, " (", exception->frames[i].filename);
        fprintf(out, ":%d)\n", exception->frames[i].line);
    }
    fputs("  ", out);
    prb_out_text(out, exception->type);
    add_text(out, ": ", exception->message);
    fputc('\n', out);
}

static void print_exceptions(struct prb_target *target, const struct prb_stacks *stacks, FILE *out)
{
    struct prb_exceptions **all = prb_exceptions_all(target, stacks, NULL);
    for (size_t t = 0; all && t < stacks->thread_count; t++) {
        if (!all[t])
            continue;
        fprintf(out, "Exception of thread %d", (int)stacks->threads[t].os_thread_id);
        add_text(out, " ", stacks->threads[t].name);
        fputs(":\n", out);
        for (size_t i = 0; i < all[t]->count; i++)
            print_exception(&all[t]->items[i], out);
        fputc('\n', out);
    }
    prb_exceptions_all_free(all, stacks->thread_count);
}

/* The thread that crashed is read first. */
static void put_first(struct prb_stacks *stacks, pid_t tid)
{
    for (size_t i = 1; i < stacks->thread_count; i++)
        if (stacks->threads[i].os_thread_id == tid) {
            struct prb_thread first = stacks->threads[i];
            memmove(stacks->threads + 1, stacks->threads, i * sizeof first);
            stacks->threads[0] = first;
            return;
        }
}

bool prb_crash_show(struct prb_target *target, const char *path, FILE *out, struct prb_error *err)
{
    const struct prb_crash *crash = prb_target_crash(target);
    if (!crash)
        return prb_cli_fail(err, PRB_USAGE, "`probing -t FILE backtrace` shows it all the same",
                            "%s is not a crash dump", path);
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = prb_stacks_take(target, &whole, err);
    if (!stacks)
        return false;
    const struct prb_stacks_style style = {.crash = crash};
    put_first(stacks, crash->tid);
    print_head(crash, path, out);
    print_exceptions(target, stacks, out);
    return prb_stacks_print(stacks, &style, out, err);
}
