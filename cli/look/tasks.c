/* probing tasks: the tasks of asyncio, each with its stack, what it awaits and who awaits it. */
#include <inttypes.h>
#include <string.h>

#include "cli/fleet/stacks.h"
#include "cli/look/many.h"
#include "cli/look/stacks.h"
#include "cli/print/out.h"

#define NAMES_SHOWN 4 /* of the tasks that one waits for, or that wait for it */
#define EQUAL_SHOWN 3 /* of neighbouring tasks with equal stacks */
#define DEPTH_MAX 100 /* of the tree; deeper tasks are left out */

PRB_DEFINE_AUTO_PTR(prb_async_tasks, struct prb_async_tasks, prb_async_tasks_free)

enum { TREE, JSON, RANKS, SUBPROCESSES };

static const struct prb_option options[] = {
    [TREE] = {0, "tree", NULL, "below each task those that it waits for; equal ones are folded",
              NULL},
    [JSON] = {'j', "json", NULL, "JSON", NULL},
    [RANKS] = PRB_OPTION_READ_RANKS,
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    {0},
};

struct view {
    const struct prb_async_tasks *tasks;
    bool verbose;
    FILE *out;
    unsigned char *drawn; /* one for each task */
};

/* ---- one task ---- */

static void print_name(const struct view *view, const struct prb_async_task *task)
{
    prb_out_style(view->out, PRB_STYLE_TITLE);
    if (task->name)
        prb_out_text(view->out, task->name);
    else
        fprintf(view->out, "Task 0x%" PRIx64, task->id);
    prb_out_style(view->out, PRB_STYLE_PLAIN);
}

static void print_names(const struct view *view, const size_t *indices, size_t count)
{
    size_t shown = view->verbose || count <= NAMES_SHOWN ? count : NAMES_SHOWN - 1;
    for (size_t i = 0; i < shown; i++) {
        fputs(i ? ", " : " ", view->out);
        print_name(view, &view->tasks->items[indices[i]]);
    }
    if (shown < count)
        fprintf(view->out, " and %zu more", count - shown);
}

static void print_state(const struct view *view, const struct prb_async_task *task, bool with_names)
{
    static const struct {
        const char *text;
        enum prb_style style;
    } states[] = {[PRB_ASYNC_RUNNING] = {"running", PRB_STYLE_GOOD},
                  [PRB_ASYNC_READY] = {"ready", PRB_STYLE_GOOD},
                  [PRB_ASYNC_WAITING] = {"waiting", PRB_STYLE_SUBTLE}};
    FILE *out = view->out;
    prb_out_style(out, states[task->state].style);
    fputs(states[task->state].text, out);
    prb_out_style(out, PRB_STYLE_PLAIN);
    if (with_names && task->awaits_count) {
        fputs(" for", out);
        print_names(view, task->awaits, task->awaits_count);
    } else if (task->waits_for) {
        fputs(" for a ", out);
        prb_out_text(out, task->waits_for);
    }
    if (task->cancels > 0)
        fputs(", being cancelled", out);
    if (task->unstable) {
        prb_out_style(out, PRB_STYLE_WARNING);
        fputs(", unstable (may mix two moments)", out);
        prb_out_style(out, PRB_STYLE_PLAIN);
    }
}

static void print_coroutine(const struct view *view, const struct prb_async_task *task)
{
    if (!task->coroutine)
        return;
    fputc(' ', view->out);
    prb_out_style(view->out, PRB_STYLE_FUNCTION);
    prb_out_text(view->out, task->coroutine);
    prb_out_style(view->out, PRB_STYLE_PLAIN);
}

static void print_frames(const struct view *view, const struct prb_async_task *task,
                         const char *indent)
{
    for (size_t i = 0; i < task->frame_count; i++)
        prb_stacks_print_frame(&task->frames[i], indent, view->verbose, view->out);
}

/* ---- the list ---- */

static void print_task(const struct view *view, const struct prb_async_task *task)
{
    fputc('\n', view->out);
    print_name(view, task);
    print_coroutine(view, task);
    fputs(": ", view->out);
    print_state(view, task, true);
    if (task->awaited_by_count) {
        fputs(", awaited by", view->out);
        print_names(view, task->awaited_by, task->awaited_by_count);
    }
    fputc('\n', view->out);
    print_frames(view, task, "    ");
}

/* ---- the tree ---- */

struct branch {
    const char *indent; /* of the lines below */
    unsigned depth;
};

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool alike(const struct prb_async_task *a, const struct prb_async_task *b)
{
    if (a->state != b->state || a->frame_count != b->frame_count || a->awaits_count ||
        b->awaits_count || a->cancels != b->cancels || !same_text(a->coroutine, b->coroutine) ||
        !same_text(a->waits_for, b->waits_for))
        return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (a->frames[i].code != b->frames[i].code || a->frames[i].line != b->frames[i].line ||
            !same_text(a->frames[i].name, b->frames[i].name))
            return false;
    return true;
}

static void print_branches(struct view *view, const size_t *indices, size_t count,
                           const struct branch *above);

static void print_branch(struct view *view, size_t index, bool last, const struct branch *above)
{
    const struct prb_async_task *task = &view->tasks->items[index];
    PRB_AUTO_FREE char *below = NULL, *rows = NULL;
    bool again = view->drawn[index];
    fprintf(view->out, "%s%s ", above->indent, last ? "└──" : "├──");
    print_name(view, task);
    print_coroutine(view, task);
    fputs(": ", view->out);
    print_state(view, task, false);
    fputs(again && task->awaits_count ? " (see above)\n" : "\n", view->out);
    view->drawn[index] = 1;
    if (again || asprintf(&below, "%s%s ", above->indent, last ? "   " : "│  ") < 0 ||
        asprintf(&rows, "%s%s   ", below, task->awaits_count ? "│" : " ") < 0)
        return;
    print_frames(view, task, rows);
    const struct branch branch = {below, above->depth + 1};
    if (branch.depth < DEPTH_MAX)
        print_branches(view, task->awaits, task->awaits_count, &branch);
    else if (task->awaits_count)
        fprintf(view->out, "%s└── … %zu more below\n", below, task->awaits_count);
}

static void print_branches(struct view *view, const size_t *indices, size_t count,
                           const struct branch *above)
{
    const struct prb_async_task *items = view->tasks->items;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && alike(&items[indices[i]], &items[indices[end]]))
            end++;
        size_t shown = view->verbose || end - i <= EQUAL_SHOWN ? end - i : EQUAL_SHOWN - 1;
        for (size_t k = i; k < i + shown; k++)
            print_branch(view, indices[k], k + 1 == count, above);
        for (size_t k = i + shown; k < end; k++)
            view->drawn[indices[k]] = 1;
        if (shown < end - i) {
            prb_out_style(view->out, PRB_STYLE_SUBTLE);
            fprintf(view->out, "%s%s … %zu more with the same stack\n", above->indent,
                    end == count ? "└──" : "├──", end - i - shown);
            prb_out_style(view->out, PRB_STYLE_PLAIN);
        }
        i = end;
    }
}

/* Mark what is below a task, itself included; room: for as many as there are tasks. */
static void mark_below(const struct prb_async_tasks *tasks, size_t from, unsigned char *marked,
                       size_t *room)
{
    size_t open = 0;
    marked[from] = 1;
    room[open++] = from;
    while (open) {
        const struct prb_async_task *task = &tasks->items[room[--open]];
        for (size_t i = 0; i < task->awaits_count; i++) {
            if (marked[task->awaits[i]])
                continue;
            marked[task->awaits[i]] = 1;
            room[open++] = task->awaits[i];
        }
    }
}

/* Those that nobody waits for; and of a ring of tasks that wait for each other, one. */
static void print_tree(struct view *view, const size_t *members, size_t count)
{
    const struct prb_async_tasks *tasks = view->tasks;
    PRB_AUTO_FREE size_t *roots = calloc(count + 1, sizeof *roots);
    PRB_AUTO_FREE size_t *room = calloc(tasks->count + 1, sizeof *room);
    PRB_AUTO_FREE unsigned char *marked = calloc(tasks->count + 1, 1);
    const struct branch trunk = {"", 0};
    size_t root_count = 0;
    if (!roots || !room || !marked)
        return;
    for (int rings = 0; rings < 2; rings++)
        for (size_t i = 0; i < count; i++) {
            if (rings ? marked[members[i]] : tasks->items[members[i]].awaited_by_count > 0)
                continue;
            roots[root_count++] = members[i];
            mark_below(tasks, members[i], marked, room);
        }
    print_branches(view, roots, root_count, &trunk);
    for (size_t i = 0; i < count; i++) /* below what is drawn of a deep tree */
        if (!view->drawn[members[i]])
            print_branch(view, members[i], true, &trunk);
}

/* ---- loops ---- */

static void print_loop(const struct view *view, const struct prb_async_task *task, size_t count)
{
    FILE *out = view->out;
    prb_out_style(out, PRB_STYLE_TITLE);
    fputs("\nEvent loop ", out);
    prb_out_text(out, task->loop_type ? task->loop_type : "?");
    prb_out_style(out, PRB_STYLE_PLAIN);
    if (view->verbose)
        fprintf(out, " at 0x%" PRIx64, task->loop);
    if (task->os_thread_id)
        fprintf(out, ", thread %d", (int)task->os_thread_id);
    if (task->thread_name) {
        fputs(" \"", out);
        prb_out_text(out, task->thread_name);
        fputc('"', out);
    }
    if (task->interpreter > 0)
        fprintf(out, ", interpreter %" PRId64, task->interpreter);
    fprintf(out, ": %zu task%s\n", count, count == 1 ? "" : "s");
}

static void print_all(struct view *view, bool tree)
{
    const struct prb_async_tasks *tasks = view->tasks;
    PRB_AUTO_FREE size_t *members = calloc(tasks->count + 1, sizeof *members);
    if (!members)
        return;
    for (size_t i = 0; i < tasks->count;) {
        size_t count = 0, first = i;
        for (; i < tasks->count && tasks->items[i].loop == tasks->items[first].loop &&
               tasks->items[i].interpreter == tasks->items[first].interpreter;
             i++)
            members[count++] = i;
        print_loop(view, &tasks->items[first], count);
        if (tree)
            print_tree(view, members, count);
        for (size_t k = 0; k < count && !tree; k++)
            print_task(view, &tasks->items[members[k]]);
    }
    if (!tasks->count)
        fputs(tasks->imported ? "\nNo tasks: asyncio is loaded, but has no unfinished task.\n"
                              : "\nNo tasks: the process has not loaded asyncio.\n",
              view->out);
}

static bool print(const struct prb_run *run, const struct prb_async_tasks *tasks,
                  struct prb_error *err)
{
    PRB_AUTO_FREE unsigned char *drawn = calloc(tasks->count + 1, 1);
    if (!drawn)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    struct view view = {tasks, run->verbose, stdout, drawn};
    prb_stacks_print_process(&tasks->target, run->verbose, stdout);
    print_all(&view, run->options[TREE].count);
    return true;
}

static bool print_json(char *json)
{
    PRB_AUTO_FREE char *text = json;
    if (!text)
        return false;
    prb_out_json(stdout, text, strlen(text));
    fputc('\n', stdout);
    return true;
}

static bool of_one(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    if (!target)
        return false;
    PRB_AUTO(prb_async_tasks)
    struct prb_async_tasks *tasks = prb_async_tasks_take(target, err);
    if (!tasks)
        return false;
    if (tasks->warning)
        prb_out_note(tasks->warning);
    return run->options[JSON].count ? print_json(prb_async_tasks_json(tasks, err))
                                    : print(run, tasks, err);
}

/* All are read before any is printed, so that their moments lie close together. */
struct readings {
    struct prb_async_tasks **tasks;
    int *ranks;
    size_t count;
};

static void readings_deinit(struct readings *readings)
{
    for (size_t i = 0; i < readings->count; i++)
        prb_async_tasks_free(readings->tasks[i]);
    free(readings->tasks);
    free(readings->ranks);
}
PRB_DEFINE_AUTO(readings, struct readings, readings_deinit)

static bool read_all(const struct prb_many *many, struct readings *out, struct prb_error *err)
{
    struct prb_error why = {0};
    out->tasks = calloc(many->count + 1, sizeof *out->tasks);
    out->ranks = calloc(many->count + 1, sizeof *out->ranks);
    if (!out->tasks || !out->ranks)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < many->count; i++) {
        const struct prb_one *one = &many->items[i];
        out->ranks[out->count] = one->rank;
        out->tasks[out->count] = prb_async_tasks_take(one->target, &why);
        if (out->tasks[out->count])
            out->count++;
        else
            prb_many_left_out(one, &why);
    }
    if (!out->count)
        *err = why;
    return out->count;
}

static bool of_many(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_many)
    struct prb_many *many =
        prb_many_open(run, run->options[RANKS].count, run->options[SUBPROCESSES].count, err);
    PRB_AUTO(readings) struct readings all = {0};
    if (!many || !read_all(many, &all, err))
        return false;
    for (size_t i = 0; i < all.count; i++)
        if (all.tasks[i]->warning)
            prb_out_note(all.tasks[i]->warning);
    if (run->options[JSON].count)
        return print_json(prb_async_tasks_json_all((const struct prb_async_tasks *const *)all.tasks,
                                                   all.ranks, all.count, err));
    for (size_t i = 0; i < all.count; i++) {
        if (i)
            fputc('\n', stdout);
        if (all.ranks[i] >= 0)
            printf("Rank %d\n", all.ranks[i]);
        if (!print(run, all.tasks[i], err))
            return false;
    }
    return true;
}

static bool run_tasks(const struct prb_run *run, struct prb_error *err)
{
    if (run->options[TREE].count && run->options[JSON].count)
        return prb_usage(run, err, "--tree folds text; --json lists every task with its links");
    bool several = run->options[RANKS].count || run->options[SUBPROCESSES].count;
    if (prb_run_job(run) && !several && !run->options[TREE].count)
        return prb_job_tasks(run, run->options[JSON].count, err);
    return several ? of_many(run, err) : of_one(run, err);
}

const struct prb_command prb_command_tasks = {
    .name = "tasks",
    .aliases = "async",
    .summary = "show the asyncio tasks and who waits for whom",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Reads the tasks of every event loop from outside, on CPython 3.7 and later: nothing runs "
        "in "
        "the target and no thread is stopped. Each task comes with the stack of its coroutines, "
        "the "
        "innermost first; what it waits for; and the tasks that wait for it, also through gather, "
        "shield, wait, wait_for or a TaskGroup.\n\n"
        "A task is running when it is on its thread's stack, ready when its loop will run it, "
        "or "
        "waiting. One that went on in every reading is marked unstable.",
    .options = options,
    .examples = "probing 12345 tasks  # every task with its stack\n"
                "probing 12345 tasks --tree  # below each task those it waits for\n"
                "probing 12345 tasks --json  # for scripts\n"
                "probing -t @ tasks  # of all ranks of the job, equal ones together\n",
    .run = run_tasks,
};
