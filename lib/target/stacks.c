/*
 * The stacks of a target: raw chains and native frames made into the rows of probing.h.
 */
#include <string.h>
#include <time.h>

#include "py/locals.h"
#include "target/target.h"

#define LOCALS_TRIES 4 /* readings of a thread's locals before it is called unstable */
#define FOLDERS_MAX 256

struct stacks_box {
    struct prb_stacks stacks; /* first */
    struct prb_arena arena;
    size_t thread_cap;
};

/* What one look at one runtime shares. */
struct look {
    struct prb_target *target;
    const struct prb_runtime *runtime;
    const struct prb_stack_options *options;
    const struct prb_raw_stacks *raw;
    const struct prb_tasks *tasks;
    struct prb_thread_facts *facts;
    struct stacks_box *box;
    const char *folders[FOLDERS_MAX]; /* sys.path */
    size_t folder_count;
};

void prb_stacks_free(struct prb_stacks *stacks)
{
    if (!stacks)
        return;
    struct stacks_box *box = (struct stacks_box *)stacks;
    free(stacks->threads);
    prb_arena_deinit(&box->arena);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- short file names ---- */

static bool add_folder(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct look *look = context;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (prb_object_str(look->runtime->objects, value, 4096, &text, NULL) && text.len &&
        text.data[0] == '/')
        look->folders[look->folder_count++] = prb_arena_strdup(&look->box->arena, text.data);
    return look->folder_count < FOLDERS_MAX;
}

static void read_folders(struct look *look)
{
    struct prb_objects *objects = look->runtime->objects;
    uint64_t sysdict;
    prb_addr path = 0;
    if (look->raw->interpreter_count &&
        PRB_FIELD_OF(look->runtime->py, look->raw->interpreters[0].addr, interp, sysdict, &sysdict,
                     NULL) &&
        prb_dict_get(objects, sysdict, "path", &path, NULL) && path)
        prb_sequence_each(objects, path, add_folder, look, NULL);
}

/* Without the longest folder of sys.path that it lies in; of others the last part. */
static const char *shorten(const struct look *look, const char *filename)
{
    size_t best = 0;
    for (size_t i = 0; i < look->folder_count; i++) {
        size_t n = strlen(look->folders[i]);
        while (n > 1 && look->folders[i][n - 1] == '/')
            n--;
        if (n > best && strncmp(filename, look->folders[i], n) == 0 && filename[n] == '/')
            best = n + 1;
    }
    if (!best) {
        const char *slash = strrchr(filename, '/');
        best = slash && slash[1] ? (size_t)(slash + 1 - filename) : 0;
    }
    return filename + best;
}

/* ---- locals ---- */

struct collecting {
    const struct look *look;
    struct prb_frame *frame;
    size_t cap;
};

static const char *type_of(const struct look *look, const struct prb_variable *variable)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (variable->is_number)
        return "int";
    if (!prb_object_type_name(look->runtime->objects, variable->object, &text, NULL) || !text.data)
        return NULL;
    return prb_arena_strdup(&look->box->arena, text.data);
}

static const char *repr_of(const struct look *look, const struct prb_variable *variable)
{
    struct prb_arena *arena = &look->box->arena;
    if (variable->is_number)
        return prb_arena_printf(arena, "%lld", (long long)variable->number);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct prb_repr_limits limits = {.characters = look->options->repr_limit};
    struct prb_error err = {0};
    if (!prb_object_repr(look->runtime->objects, variable->object, &limits, &text, &err))
        return prb_arena_printf(arena, "<unreadable: %s>", err.text);
    return prb_arena_strndup(arena, text.data ? text.data : "", text.len);
}

static bool collect(void *context, const struct prb_variable *variable)
{
    struct collecting *c = context;
    struct prb_frame *frame = c->frame;
    if (frame->local_count >= c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 16;
        struct prb_local *grown = prb_arena_alloc(&c->look->box->arena, cap * sizeof *grown);
        if (!grown)
            return false;
        memcpy(grown, frame->locals, frame->local_count * sizeof *grown);
        frame->locals = grown;
        c->cap = cap;
    }
    frame->locals[frame->local_count++] = (struct prb_local){
        .name = prb_arena_strdup(&c->look->box->arena, variable->name),
        .repr = repr_of(c->look, variable),
        .type = type_of(c->look, variable),
        .addr = variable->object,
        .arg = variable->arg,
    };
    return true;
}

static void fill_locals(const struct look *look, const struct prb_raw_frame *raw,
                        const struct prb_code_object *code, struct prb_frame *frame)
{
    struct collecting collecting = {look, frame, 8};
    frame->local_count = 0;
    frame->locals = prb_arena_alloc(&look->box->arena, 8 * sizeof *frame->locals);
    if (frame->locals)
        prb_locals_each(look->runtime->objects, raw, code, collect, &collecting, NULL);
}

/* ---- rows ---- */

static struct prb_frame broken_row(struct look *look, const struct prb_error *err)
{
    return (struct prb_frame){
        .kind = PRB_FRAME_BROKEN,
        .name = prb_arena_strdup(&look->box->arena, err->text),
        .column = -1,
        .end_column = -1,
        .instruction = -1,
        .addr = err->addr,
    };
}

static struct prb_frame python_row(struct look *look, const struct prb_raw_frame *raw)
{
    struct prb_py *py = look->runtime->py;
    struct prb_error err = {0};
    const struct prb_code_object *code = prb_code_get(py, raw->code, look->options->locals, &err);
    if (!code && look->options->locals)
        code = prb_code_get(py, raw->code, false, &err);
    if (!code)
        return broken_row(look, &err);
    struct prb_position at = prb_code_position(py, code, raw->instruction);
    struct prb_frame row = {
        .kind = PRB_FRAME_PYTHON,
        .name = prb_arena_strdup(&look->box->arena, code->name),
        .filename = prb_arena_strdup(&look->box->arena, code->filename),
        .line = at.line,
        .column = at.column,
        .end_line = at.end_line,
        .end_column = at.end_column,
        .first_line = code->first_line,
        .addr = raw->frame,
        .code = raw->code,
        .instruction = raw->instruction,
        .is_entry = raw->entry,
        .is_shim_entry = raw->entry && PRB_IS(&py->layout, entry, SHIM),
    };
    row.qualname = code->qualname ? prb_arena_strdup(&look->box->arena, code->qualname) : row.name;
    row.short_filename = row.filename ? shorten(look, row.filename) : NULL;
    if (look->options->locals && code->variables)
        fill_locals(look, raw, code, &row);
    return row;
}

static struct prb_frame native_row(struct look *look, const struct prb_native_frame *native)
{
    struct prb_arena *arena = &look->box->arena;
    struct prb_frame row = {
        .kind = PRB_FRAME_NATIVE,
        .module = native->module ? prb_arena_strdup(arena, native->module->path) : NULL,
        .line = native->line,
        .end_line = native->line,
        .column = -1,
        .end_column = -1,
        .addr = native->cfa,
        .code = native->pc,
        .instruction = -1,
        .guessed = native->guessed,
    };
    row.name = native->symbol ? prb_arena_strdup(arena, native->symbol)
                              : prb_arena_printf(arena, "%#llx", (unsigned long long)native->pc);
    row.qualname = row.name;
    row.filename = native->file ? prb_arena_strdup(arena, native->file) : NULL;
    const char *path = row.filename ? row.filename : row.module;
    const char *slash = path ? strrchr(path, '/') : NULL;
    row.short_filename = slash ? slash + 1 : path;
    return row;
}

static struct prb_frame *rows_room(struct look *look, size_t count)
{
    return prb_arena_alloc(&look->box->arena, (count + 2) * sizeof(struct prb_frame));
}

static bool fill_python_rows(struct look *look, const struct prb_raw_thread *raw,
                             struct prb_thread *thread, struct prb_error *err)
{
    thread->frames = rows_room(look, raw->frame_count);
    if (!thread->frames)
        return prb_fail(err, PRB_NOMEM, "stacks");
    thread->frame_count = 0;
    for (size_t i = 0; i < raw->frame_count; i++)
        thread->frames[thread->frame_count++] = python_row(look, &raw->frames[i]);
    if (raw->broken)
        thread->frames[thread->frame_count++] = broken_row(look, &raw->error);
    return true;
}

static bool same_chain(const struct prb_raw_thread *now, const struct prb_raw_frame *before,
                       size_t count)
{
    if (now->frame_count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (now->frames[i].frame != before[i].frame || now->frames[i].code != before[i].code ||
            (i && now->frames[i].instruction != before[i].instruction))
            return false;
    return true;
}

/* Locals are read after the chain: believed only when the chain is still the same behind them. */
static bool fill_stable_rows(struct look *look, size_t i, struct prb_thread *thread,
                             struct prb_error *err)
{
    const struct prb_raw_thread *raw = &look->raw->threads[i];
    bool moving =
        look->options->locals && prb_proc_live(look->target->proc) && !look->options->stop;
    for (int tries = 0;; tries++) {
        PRB_AUTO_FREE struct prb_raw_frame *before =
            malloc((raw->frame_count + 1) * sizeof *before);
        if (!before)
            return prb_fail(err, PRB_NOMEM, "stacks");
        size_t count = raw->frame_count;
        if (count)
            memcpy(before, raw->frames, count * sizeof *before);
        if (!fill_python_rows(look, raw, thread, err))
            return false;
        if (!moving || !count)
            return true;
        if (!prb_sampler_again(look->runtime->sampler, i, err))
            return false;
        if (same_chain(raw, before, count))
            return true;
        if (tries >= LOCALS_TRIES) {
            thread->unstable = true;
            return true;
        }
        prb_objects_clear(look->runtime->objects);
    }
}

/* ---- threads ---- */

static bool wanted(const struct prb_stack_options *options, uint64_t thread_id, pid_t os_thread_id)
{
    return !options->only_thread || options->only_thread == thread_id ||
           options->only_thread == (uint64_t)os_thread_id;
}

static struct prb_thread *new_thread(struct look *look, struct prb_error *err)
{
    struct prb_stacks *stacks = &look->box->stacks;
    if (!PRB_GROW(stacks->threads, stacks->thread_count, look->box->thread_cap))
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "stacks"));
    struct prb_thread *thread = &stacks->threads[stacks->thread_count];
    *thread = (struct prb_thread){.interpreter = -1};
    return thread;
}

static void fill_task(struct look *look, const struct prb_task *task, struct prb_thread *thread)
{
    if (!task)
        return;
    thread->os_thread_id = task->tid;
    thread->os_state = task->state;
    thread->comm = task->comm[0] ? prb_arena_strdup(&look->box->arena, task->comm) : NULL;
    thread->active = task->state == 'R';
}

static void fill_python_side(struct look *look, size_t i, struct prb_thread *thread)
{
    const struct prb_raw_thread *raw = &look->raw->threads[i];
    const struct prb_interpreter *interpreter = &look->raw->interpreters[raw->interpreter];
    fill_task(look, look->facts[i].task, thread);
    thread->interpreter = interpreter->id;
    thread->thread_id = raw->thread_id;
    thread->name = look->facts[i].name;
    thread->unstable = raw->unstable;
    thread->has_python = true;
    if (interpreter->gil_holder == raw->tstate) {
        thread->gil = PRB_GIL_HOLDING;
        thread->gc = interpreter->gc;
        thread->active = true;
    } else if (prb_thread_waits_for_gil(look->target, look->runtime, interpreter,
                                        look->facts[i].task)) {
        thread->gil = PRB_GIL_WAITING;
    }
}

static bool add_python_threads(struct look *look, struct prb_error *err)
{
    for (size_t k = look->raw->thread_count; k-- > 0;) { /* CPython lists the newest first */
        const struct prb_raw_thread *raw = &look->raw->threads[k];
        if (raw->interpreter != 0 && !look->options->all_interpreters)
            continue;
        pid_t os = look->facts[k].task ? look->facts[k].task->tid : 0;
        if (!wanted(look->options, raw->thread_id, os))
            continue;
        struct prb_thread *thread = new_thread(look, err);
        if (!thread)
            return false;
        fill_python_side(look, k, thread);
        if (!fill_stable_rows(look, k, thread, err))
            return false;
        look->box->stacks.thread_count++;
    }
    return true;
}

/* ---- one look ---- */

static bool take_runtime(struct look *look, struct prb_error *err)
{
    struct prb_target *target = look->target;
    bool live = prb_proc_live(target->proc);
    prb_codes_renew(look->runtime->py);
    prb_objects_clear(look->runtime->objects);
    prb_sampler_want_anchors(look->runtime->sampler, look->options->native);
    look->raw = prb_sampler_take(look->runtime->sampler, live ? 0 : 1, err);
    if (!look->raw)
        return false;
    look->box->stacks.tries += look->raw->tries;
    look->box->stacks.rejected += look->raw->rejected;
    PRB_AUTO_FREE struct prb_thread_facts *facts =
        calloc(look->raw->thread_count + 1, sizeof *facts);
    if (!facts)
        return prb_fail(err, PRB_NOMEM, "stacks");
    look->facts = facts;
    if (!prb_threads_identify(target, look->runtime, look->raw, look->tasks, &look->box->arena,
                              facts, err))
        return false;
    read_folders(look);
    return add_python_threads(look, err);
}

static void copy_info(struct stacks_box *box, const struct prb_target_info *info)
{
    struct prb_target_info *copy = &box->stacks.target;
    *copy = *info;
    copy->command = info->command ? prb_arena_strdup(&box->arena, info->command) : NULL;
    copy->executable = info->executable ? prb_arena_strdup(&box->arena, info->executable) : NULL;
    copy->python = info->python ? prb_arena_strdup(&box->arena, info->python) : NULL;
    copy->layout = info->layout ? prb_arena_strdup(&box->arena, info->layout) : NULL;
}

/* A read that failed because the target ended, or became another program, says so and nothing else.
 */
static struct prb_stacks *blame_the_end(struct prb_target *target, struct prb_error *err)
{
    struct prb_error gone = {0};
    if (err && !prb_proc_check(target->proc, &gone))
        *err = gone;
    return NULL;
}

struct prb_stacks *prb_stacks_take(struct prb_target *target,
                                   const struct prb_stack_options *options, struct prb_error *err)
{
    static const struct prb_stack_options defaults;
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    struct stacks_box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "stacks"));
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = &box->stacks;
    options = options ? options : &defaults;
    stacks->time = prb_proc_time(target->proc);
    if (stacks->time == 0)
        stacks->time = now_seconds();
    copy_info(box, &target->info);
    if (!prb_proc_tasks(target->proc, &tasks, err))
        return blame_the_end(target, err);
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct look look = {.target = target,
                            .runtime = &target->runtimes[i],
                            .options = options,
                            .tasks = &tasks,
                            .box = box};
        if (!take_runtime(&look, err))
            return blame_the_end(target, err);
    }
    if (prb_proc_live(target->proc) && !prb_proc_check(target->proc, err))
        return NULL;
    if (options->only_thread && !stacks->thread_count)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "no thread %llu in process %d",
                                 (unsigned long long)options->only_thread, (int)target->info.pid));
    return PRB_STEAL(stacks);
}
