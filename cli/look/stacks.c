/* Stacks as text: the process, then each thread (or group of threads with one stack), innermost
 * frame first. */
#include "cli/look/stacks.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/print/out.h"

#define REPEATS_SHOWN 3     /* of equal frames in a row; deep recursion folds */
#define COMMAND_COLUMNS 160 /* of the command line */
#define NAME_COLUMNS 120    /* of a function; C++ templates run to thousands */
#define NAMES_SHOWN 8       /* of the threads of a group */

PRB_DEFINE_AUTO_PTR(prb_stack_groups, struct prb_stack_groups, prb_stack_groups_free)

static void print_time(FILE *out, double seconds)
{
    char text[40];
    time_t whole = (time_t)seconds;
    struct tm parts;
    if (localtime_r(&whole, &parts) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts))
        fputs(text, out);
}

/* What the kernel ended it by, or NULL; a core that a debugger wrote names what it stopped for. */
static const char *fatal_signal(const struct prb_target_info *info)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGQUIT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (info->kind == PRB_TARGET_CORE && info->signal == fatal[i])
            return strsignal(info->signal);
    return NULL;
}

static void print_signal(const struct prb_target_info *info, FILE *out)
{
    const char *signal = fatal_signal(info);
    if (signal)
        fprintf(out, ", %s in thread %d", signal, (int)info->signalled);
}

void prb_stacks_print_process(const struct prb_target_info *info, bool verbose, FILE *out)
{
    static const char *const kinds[] = {
        [PRB_TARGET_PROCESS] = "Process",
        [PRB_TARGET_CORE] = "Core of process",
        [PRB_TARGET_SNAPSHOT] = "Snapshot of process",
        [PRB_TARGET_CALLBACK] = "Process",
    };
    prb_out_style(out, PRB_STYLE_TITLE);
    fprintf(out, "%s %d", kinds[info->kind], (int)info->pid);
    prb_out_style(out, PRB_STYLE_PLAIN);
    print_signal(info, out);
    if (info->time > 0) {
        fputs(", taken ", out);
        print_time(out, info->time);
    }
    if (info->command) {
        fputs(": ", out);
        prb_out_cut(out, info->command, strlen(info->command), verbose ? 0 : COMMAND_COLUMNS);
    }
    fputs("\nPython ", out);
    prb_out_text(out, info->python ? info->python : "(version unknown)");
    if (info->executable) {
        fputs(" (", out);
        prb_out_text(out, info->executable);
        fputc(')', out);
    }
    fputc('\n', out);
    if (verbose && info->layout) {
        fputs("Layout: ", out);
        prb_out_text(out, info->layout);
        fputc('\n', out);
    }
}

struct view {
    const struct prb_stacks *stacks;
    const struct prb_stacks_style *style;
    FILE *out;
};

/* What the thread crashed of, or NULL. */
static const char *crash_of(const struct view *view, const struct prb_thread *thread)
{
    const struct prb_target_info *info = &view->stacks->target;
    const struct prb_crash *crash = view->style->crash;
    if (thread->os_thread_id == 0)
        return NULL;
    if (crash && crash->tid != thread->os_thread_id)
        return NULL;
    if (crash) /* others than these are dumps of a process that goes on, or was asked to end */
        return strcmp(crash->kind, "signal") == 0      ? crash->signal_name
               : strcmp(crash->kind, "exception") == 0 ? crash->exception
                                                       : NULL;
    return info->signalled == thread->os_thread_id ? fatal_signal(info) : NULL;
}

static void print_state(const struct view *view, const struct prb_thread *thread)
{
    FILE *out = view->out;
    bool verbose = view->style->verbose;
    const char *crash = crash_of(view, thread);
    prb_out_style(out, crash            ? PRB_STYLE_WARNING
                       : thread->active ? PRB_STYLE_GOOD
                                        : PRB_STYLE_SUBTLE);
    if (crash)
        fprintf(out, " crashed here (%s)", crash);
    else
        fprintf(out, " %s", thread->active ? "active" : "idle");
    const char *gil = crash ? ", with the GIL" : "+gil", *gc = crash ? ", in a collection" : "+gc";
    fprintf(out, "%s%s%s", thread->gil == PRB_GIL_HOLDING ? gil : "", thread->gc ? gc : "",
            thread->has_python || crash ? "" : "+native");
    if (thread->gil == PRB_GIL_WAITING)
        fputs(", waiting for the GIL", out);
    prb_out_style(out, PRB_STYLE_PLAIN);
    if (thread->interpreter > 0)
        fprintf(out, ", interpreter %" PRId64, thread->interpreter);
    if (verbose && thread->os_state)
        fprintf(out, ", state %c", thread->os_state);
    if (thread->raised)
        fputs(", where the exception was raised", out);
    if (thread->unstable) {
        prb_out_style(out, PRB_STYLE_WARNING);
        fputs(", unstable (may mix two moments)", out);
        prb_out_style(out, PRB_STYLE_PLAIN);
    }
}

static void print_thread_name(const struct prb_thread *thread, FILE *out)
{
    if (thread->os_thread_id)
        fprintf(out, "%d", (int)thread->os_thread_id);
    else
        fprintf(out, "0x%" PRIx64, thread->thread_id);
    if (thread->name) {
        fputs(" \"", out);
        prb_out_text(out, thread->name);
        fputc('"', out);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_frame(const struct prb_frame *a, const struct prb_frame *b)
{
    return a->kind == b->kind && a->line == b->line && a->local_count == 0 && b->local_count == 0 &&
           same_text(a->qualname, b->qualname) && same_text(a->filename, b->filename) &&
           same_text(a->module, b->module);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_place(const struct prb_frame *frame, bool verbose, FILE *out)
{
    const char *file = !verbose && frame->short_filename ? frame->short_filename : frame->filename;
    if (!file && !frame->module)
        return;
    fputs(" (", out);
    if (frame->kind == PRB_FRAME_PYTHON)
        prb_out_style(out, PRB_STYLE_PLACE);
    if (file) {
        prb_out_text(out, frame->kind == PRB_FRAME_NATIVE && !verbose ? base_name(file) : file);
        if (frame->line > 0)
            fprintf(out, ":%d", frame->line);
        if (frame->line > 0 && verbose && frame->column >= 0)
            fprintf(out, ":%d", frame->column + 1);
    }
    if (frame->module && (!file || verbose)) {
        fputs(file ? ", " : "", out);
        prb_out_text(out, verbose ? frame->module : base_name(frame->module));
    }
    if (frame->kind == PRB_FRAME_PYTHON) {
        prb_out_style(out, PRB_STYLE_PLAIN);
    }
    fputc(')', out);
}

/* What a module's code defines and imports, which says little of where it is. */
static bool is_definition(const struct prb_local *local)
{
    static const char *const types[] = {"module", "type", "function", "builtin_function_or_method"};
    for (size_t i = 0; local->type && i < sizeof types / sizeof *types; i++)
        if (strcmp(local->type, types[i]) == 0)
            return true;
    /* of a metaclass */
    return local->repr &&
           (strncmp(local->repr, "<class '", 8) == 0 || strncmp(local->repr, "<enum '", 7) == 0);
}

static void print_locals(const struct prb_frame *frame, const char *indent, bool verbose, FILE *out)
{
    bool fold = !verbose && frame->name && strcmp(frame->name, "<module>") == 0;
    size_t folded = 0;
    for (size_t i = 0; i < frame->local_count; i++) {
        const struct prb_local *local = &frame->locals[i];
        if (fold && is_definition(local)) {
            folded++;
            continue;
        }
        fprintf(out, "%s    ", indent);
        prb_out_text(out, local->name);
        fputs(" = ", out);
        prb_out_text(out, local->repr ? local->repr : "(unset)");
        fputc('\n', out);
    }
    if (folded)
        fprintf(out, "%s    … and %zu more: modules, classes, functions (-v)\n", indent, folded);
}

void prb_stacks_print_frame(const struct prb_frame *frame, const char *indent, bool verbose,
                            FILE *out)
{
    const char *name = frame->qualname ? frame->qualname : frame->name;
    fputs(indent, out);
    if (frame->kind == PRB_FRAME_BROKEN) {
        prb_out_style(out, PRB_STYLE_WARNING);
        fputs("… the walk ended here: ", out);
        prb_out_text(out, name ? name : "unknown reason");
        prb_out_style(out, PRB_STYLE_PLAIN);
        fputc('\n', out);
        return;
    }
    if (frame->kind == PRB_FRAME_TASK) {
        prb_out_style(out, PRB_STYLE_SUBTLE);
        fputs("── ", out);
        prb_out_text(out, name);
        fputs("\n", out);
        prb_out_style(out, PRB_STYLE_PLAIN);
        return;
    }
    prb_out_style(out, frame->kind == PRB_FRAME_PYTHON ? PRB_STYLE_FUNCTION : PRB_STYLE_SUBTLE);
    name = name ? name : "?";
    prb_out_cut(out, name, strlen(name), verbose ? 0 : NAME_COLUMNS);
    if (frame->kind == PRB_FRAME_PYTHON)
        prb_out_style(out, PRB_STYLE_PLAIN);
    print_place(frame, verbose, out);
    if (frame->guessed)
        fputs(" [guessed]", out);
    prb_out_style(out, PRB_STYLE_PLAIN);
    fputc('\n', out);
    print_locals(frame, indent, verbose, out);
}

static void print_frames(const struct prb_thread *thread, bool verbose, FILE *out)
{
    if (thread->frame_count == 0)
        fputs("    (no frames)\n", out);
    for (size_t i = 0; i < thread->frame_count;) {
        size_t end = i + 1;
        while (end < thread->frame_count && same_frame(&thread->frames[i], &thread->frames[end]))
            end++;
        size_t shown = end - i > REPEATS_SHOWN ? 1 : end - i;
        for (size_t k = 0; k < shown; k++)
            prb_stacks_print_frame(&thread->frames[i], "    ", verbose, out);
        if (shown < end - i) {
            prb_out_style(out, PRB_STYLE_SUBTLE);
            fprintf(out, "    … the same frame %zu times more\n", end - i - shown);
            prb_out_style(out, PRB_STYLE_PLAIN);
        }
        i = end;
    }
}

static void print_threads(const struct view *view)
{
    const struct prb_stacks *stacks = view->stacks;
    FILE *out = view->out;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        prb_out_style(out, PRB_STYLE_TITLE);
        fputs("\nThread ", out);
        print_thread_name(thread, out);
        prb_out_style(out, PRB_STYLE_PLAIN);
        print_state(view, thread);
        fputc('\n', out);
        print_frames(thread, view->style->verbose, out);
    }
}

static void print_names(const struct prb_thread *const *threads,
                        const struct prb_stack_group *group, bool verbose, FILE *out)
{
    size_t shown = verbose || group->count <= NAMES_SHOWN ? group->count : NAMES_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        fputs(i ? ", " : "", out);
        print_thread_name(threads[group->threads[i]], out);
    }
    if (shown < group->count)
        fprintf(out, " and %zu more", group->count - shown);
}

static bool print_groups(const struct view *view, struct prb_error *err)
{
    const struct prb_stacks *stacks = view->stacks;
    bool verbose = view->style->verbose;
    FILE *out = view->out;
    PRB_AUTO(prb_stack_groups) struct prb_stack_groups *groups = prb_stacks_group(stacks, err);
    PRB_AUTO_FREE const struct prb_thread **threads =
        calloc(stacks->thread_count + 1, sizeof *threads);
    if (!groups || !threads)
        return groups ? prb_cli_fail(err, PRB_NOMEM, "", "out of memory") : false;
    for (size_t i = 0; i < stacks->thread_count; i++)
        threads[i] = &stacks->threads[i];
    for (size_t g = 0; g < groups->count; g++) {
        const struct prb_stack_group *group = &groups->items[g];
        const struct prb_thread *first = threads[group->threads[0]];
        prb_out_style(out, PRB_STYLE_TITLE);
        fprintf(out, "\n%zu thread%s: ", group->count, group->count == 1 ? "" : "s");
        print_names(threads, group, verbose, out);
        prb_out_style(out, PRB_STYLE_PLAIN);
        if (group->count == 1)
            print_state(view, first);
        fputc('\n', out);
        print_frames(first, verbose, out);
    }
    return true;
}

/* ---- of several processes ---- */

/* "0, 2-7" of ascending numbers, which may repeat; "rank" or "process" before it. */
static void print_numbers(const int *numbers, size_t count, const char *one, const char *many,
                          FILE *out)
{
    fputs(numbers[0] == numbers[count - 1] ? one : many, out);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && numbers[end] - numbers[end - 1] <= 1)
            end++;
        fprintf(out, i ? ", %d" : " %d", numbers[i]);
        if (numbers[end - 1] > numbers[i])
            fprintf(out, "-%d", numbers[end - 1]);
        i = end;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* "Ranks 0, 2-7", and "Processes 12, 14" of those that have no rank. */
static bool print_who(const struct prb_process_stacks *all, const size_t *process_of,
                      const struct prb_stack_group *group, FILE *out)
{
    PRB_AUTO_FREE int *ranks = calloc(group->count, sizeof *ranks);
    PRB_AUTO_FREE int *pids = calloc(group->count, sizeof *pids);
    size_t rank_count = 0, pid_count = 0;
    if (!ranks || !pids)
        return false;
    for (size_t i = 0; i < group->count; i++) {
        const struct prb_process_stacks *one = &all[process_of[group->threads[i]]];
        if (one->rank >= 0)
            ranks[rank_count++] = one->rank;
        else
            pids[pid_count++] = (int)one->stacks->target.pid;
    }
    qsort(ranks, rank_count, sizeof *ranks, compare_numbers);
    qsort(pids, pid_count, sizeof *pids, compare_numbers);
    if (rank_count)
        print_numbers(ranks, rank_count, "Rank", "Ranks", out);
    if (pid_count)
        print_numbers(pids, pid_count, rank_count ? ", process" : "Process",
                      rank_count ? ", processes" : "Processes", out);
    return true;
}

static bool print_merged(const struct prb_process_stacks *all, const size_t *process_of,
                         const struct prb_thread *const *threads,
                         const struct prb_stack_groups *groups, bool verbose, FILE *out)
{
    for (size_t g = 0; g < groups->count; g++) {
        const struct prb_stack_group *group = &groups->items[g];
        const struct prb_thread *first = threads[group->threads[0]];
        prb_out_style(out, PRB_STYLE_TITLE);
        fputc('\n', out);
        if (!print_who(all, process_of, group, out))
            return false;
        if (group->count == 1)
            fputs(": thread ", out);
        else
            fprintf(out, ": %zu threads: ", group->count);
        print_names(threads, group, verbose, out);
        prb_out_style(out, PRB_STYLE_PLAIN);
        const struct prb_stacks_style style = {.verbose = verbose};
        const struct view view = {all[process_of[group->threads[0]]].stacks, &style, out};
        if (group->count == 1)
            print_state(&view, first);
        fputc('\n', out);
        print_frames(first, verbose, out);
    }
    return true;
}

bool prb_stacks_print_merged(const struct prb_process_stacks *all, size_t count, bool verbose,
                             FILE *out, struct prb_error *err)
{
    size_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        total += all[i].stacks->thread_count;
    PRB_AUTO_FREE const struct prb_thread **threads = calloc(total + 1, sizeof *threads);
    PRB_AUTO_FREE size_t *process_of = calloc(total + 1, sizeof *process_of);
    if (!threads || !process_of)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < all[i].stacks->thread_count; k++) {
            process_of[at] = i;
            threads[at++] = &all[i].stacks->threads[k];
        }
    PRB_AUTO(prb_stack_groups)
    struct prb_stack_groups *groups = prb_threads_group(threads, total, err);
    if (!groups)
        return false;
    fprintf(out, "%zu process%s, %zu thread%s, %zu different stack%s\n", count,
            count == 1 ? "" : "es", total, total == 1 ? "" : "s", groups->count,
            groups->count == 1 ? "" : "s");
    return print_merged(all, process_of, threads, groups, verbose, out) ||
           prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
}

bool prb_stacks_print(const struct prb_stacks *stacks, const struct prb_stacks_style *style,
                      FILE *out, struct prb_error *err)
{
    prb_stacks_print_process(&stacks->target, style->verbose, out);
    if (style->verbose) {
        fprintf(out, "Read: %" PRIu64 " thread readings, %" PRIu64 " rejected", stacks->tries,
                stacks->rejected);
        if (stacks->longest_stop > 0)
            fprintf(out, "; a thread was stopped for %.3f ms at most", stacks->longest_stop * 1e3);
        fputc('\n', out);
    }
    if (style->verbose && stacks->warning) {
        fputs("Note: ", out);
        prb_out_text(out, stacks->warning);
        fputc('\n', out);
    }
    if (stacks->thread_count == 0)
        fputs("\nNo thread runs Python now.\n", out);
    const struct view view = {stacks, style, out};
    if (style->group)
        return print_groups(&view, err);
    print_threads(&view);
    return true;
}
