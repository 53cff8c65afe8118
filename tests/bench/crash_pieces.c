/*
 * A writer of crash dumps that says where its time went: probing.crash_program of a job that is to
 * crash.  It does what `probing crash write` does, up to the file; the text beside it and the line
 * on the terminal are the command's.
 *
 *     crash_pieces crash write PID ADDRESS
 *
 * appends one line of JSON to the file PIECES beside the dump, milliseconds of wall time, since the
 * whole process stands meanwhile: {"stop": …, "open": …}.  The linker puts the functions below
 * between the library's own (--wrap).  To add a piece: one line in WRAPPED, and its name in
 * local.mk.
 */
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crash/crash.h"

#define PIPE 3 /* inject/probe/crash/write.c */

/* The function, and the piece that its time belongs to. */
#define WRAPPED                                                                                    \
    W(prb_stop_process, "stop")                                                                    \
    W(prb_target_over_debugger, "open")                                                            \
    W(prb_crash_rings, "rings")                                                                    \
    W(prb_exceptions_all, "exceptions")                                                            \
    W(prb_crash_tensors, "tensors")                                                                \
    W(prb_secrets_find, "hide secrets")                                                            \
    W(prb_secrets_hide, "hide secrets")                                                            \
    W(prb_proc_save, "write")

#define NAMES_MAX 16
static struct {
    const char *name;
    double ms;
} pieces[NAMES_MAX];

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void add(const char *name, double ms)
{
    unsigned i = 0;
    while (i < NAMES_MAX - 1 && pieces[i].name && strcmp(pieces[i].name, name) != 0)
        i++;
    pieces[i].name = name;
    pieces[i].ms += ms;
}

/* Functions of pointers and integers. */
typedef long any;
#define W(function, piece)                                                                         \
    any __real_##function(any a, any b, any c, any d, any e, any f, any g);                        \
    any __wrap_##function(any a, any b, any c, any d, any e, any f, any g);                        \
    any __wrap_##function(any a, any b, any c, any d, any e, any f, any g)                         \
    {                                                                                              \
        double began = now_ms();                                                                   \
        any result = __real_##function(a, b, c, d, e, f, g);                                       \
        add(piece, now_ms() - began);                                                              \
        return result;                                                                             \
    }
WRAPPED
#undef W

struct prb_stacks *__real_prb_stacks_take(struct prb_target *target,
                                          const struct prb_stack_options *options,
                                          struct prb_error *err);
struct prb_stacks *__wrap_prb_stacks_take(struct prb_target *target,
                                          const struct prb_stack_options *options,
                                          struct prb_error *err);
struct prb_stacks *__wrap_prb_stacks_take(struct prb_target *target,
                                          const struct prb_stack_options *options,
                                          struct prb_error *err)
{
    double began = now_ms();
    struct prb_stacks *stacks = __real_prb_stacks_take(target, options, err);
    add(options->native   ? "native stacks"
        : options->locals ? "stacks with variables"
                          : "stacks",
        now_ms() - began);
    return stacks;
}

static void report(const char *dump, double whole)
{
    char path[PRB_CRASH_PATH_MAX + 16], folder[PRB_CRASH_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", dump);
    snprintf(path, sizeof path, "%s/PIECES", dirname(folder));
    PRB_AUTO(file) FILE *out = fopen(path, "ae");
    for (unsigned i = 0; out && i < NAMES_MAX && pieces[i].name; i++) {
        fprintf(out, "%s\"%s\": %.4f", i ? ", " : "{", pieces[i].name, pieces[i].ms);
        whole -= pieces[i].ms;
    }
    if (out)
        fprintf(out, ", \"between these\": %.4f}\n", whole);
}

int main(int count, char **words)
{
    struct prb_crash_written dump;
    if (count != 5)
        return 2;
    double began = now_ms();
    bool ok =
        prb_crash_dump_write((pid_t)atoi(words[3]), strtoull(words[4], NULL, 16), &dump, NULL);
    if (ok)
        report(dump.path, now_ms() - began);
    char word = ok ? 'w' : 'f';
    if (write(PIPE, &word, 1) != 1)
        return 1;
    if (ok)
        prb_crash_dump_told(&dump);
    return !ok;
}
