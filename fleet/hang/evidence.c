/* Two views of one process, and what changed between them: evidence.h. */
#include "fleet/hang/evidence.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "format/format.h"
#include "inspect/holder.h"
#include "proc/stat.h"

#define FRAMES_MOST 64     /* that travel */
#define VALUE_MOST 120     /* characters of a local variable that are compared */
#define QUIET_SHARE 0.01   /* of the time: CPU that a thread may use and count as waiting */
#define QUIET_SWITCHES 1.0 /* and wake-ups, and ... */
#define SWITCHES_A_S 0.5   /* ... so many for each second: of waits with a timeout */
#define WORKS_SHARE 0.02   /* CPU of another thread that counts as work */
#define RECORDER_SECONDS 1.0
#define GLANCE_EVERY 0.001 /* s between glances at a thread that runs */

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* What a thread has used. */
struct use {
    pid_t tid;
    double cpu;       /* s */
    int64_t switches; /* voluntary */
};

struct view {
    double at; /* prb_clock_s */
    struct prb_stacks *stacks, *values;
    struct prb_stacks *inside; /* the main thread with its native frames, where it spins; or NULL */
    struct use *uses;          /* parallel to the threads of stacks */
    json_t *groups;            /* or NULL */
};

static void view_deinit(struct view *view)
{
    prb_stacks_free(view->stacks);
    prb_stacks_free(view->values);
    prb_stacks_free(view->inside);
    free(view->uses);
    json_decref(view->groups);
}
PRB_DEFINE_AUTO(view, struct view, view_deinit)

static void read_use(pid_t pid, pid_t tid, struct use *out)
{
    char path[64], text[64];
    PRB_AUTO(prb_buf) struct prb_buf status = {0};
    *out = (struct use){.tid = tid};
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (prb_read_text(path, text, sizeof text) > 0)
        out->cpu = (double)strtoull(text, NULL, 10) * 1e-9;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    if (file && prb_buf_read(&status, fileno(file), 1 << 16))
        prb_status_number(&status, "voluntary_ctxt_switches", &out->switches);
}

static bool take_view(struct prb_target *target, const struct prb_evidence_options *options,
                      struct view *out, struct prb_error *err)
{
    const pid_t pid = prb_target_info(target)->pid;
    /* Who waits is read as it is; who runs is not stopped for its native frames. */
    const struct prb_stack_options all = {.native = true, .untouched = true};
    const struct prb_stack_options values = {
        .locals = true, .only_thread = (uint64_t)pid, .repr_limit = VALUE_MOST};
    out->stacks = prb_stacks_take(target, &all, err);
    if (!out->stacks)
        return false;
    out->values = prb_stacks_take(target, &values, NULL);
    out->uses = calloc(out->stacks->thread_count + 1, sizeof *out->uses);
    if (!out->uses)
        return prb_nomem(err);
    for (size_t i = 0; i < out->stacks->thread_count; i++)
        read_use(pid, out->stacks->threads[i].os_thread_id, &out->uses[i]);
    out->groups = prb_evidence_groups(pid, options->deep, RECORDER_SECONDS);
    out->at = prb_clock_s();
    return true;
}

/* ---- which thread speaks for the process ---- */

static size_t main_of(const struct prb_stacks *stacks)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].os_thread_id == stacks->target.pid)
            return i;
    return 0;
}

/* A thread whose collectives belong to the training step. */
static bool may_communicate(const struct prb_thread *thread)
{
    return thread->has_python || (thread->comm && strncmp(thread->comm, "pt_autograd", 11) == 0);
}

/* The main thread, or, while that waits, another that is in a collective. */
static size_t speaker_of(const struct prb_stacks *stacks)
{
    bool spins;
    size_t main = main_of(stacks);
    enum prb_hang_kind kind = prb_hang_kind_of(&stacks->threads[main], &spins);
    if (kind == PRB_HANG_COLLECTIVE || stacks->threads[main].os_state == 'R')
        return main;
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (i != main && may_communicate(&stacks->threads[i]) &&
            prb_hang_kind_of(&stacks->threads[i], &spins) == PRB_HANG_COLLECTIVE)
            return i;
    return main;
}

static const struct prb_thread *same_thread(const struct prb_stacks *stacks, pid_t tid, size_t *at)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].os_thread_id == tid) {
            *at = i;
            return &stacks->threads[i];
        }
    return NULL;
}

/* ---- what changed ---- */

static bool same_place(const struct prb_frame *a, const struct prb_frame *b)
{
    return a->kind == b->kind && a->code == b->code &&
           (a->kind == PRB_FRAME_NATIVE || a->instruction == b->instruction);
}

static bool same_stack(const struct prb_thread *a, const struct prb_thread *b)
{
    if (a->frame_count != b->frame_count)
        return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (!same_place(&a->frames[i], &b->frames[i]))
            return false;
    return true;
}

/* Next Python frame from the outermost on; NULL: no more. */
static const struct prb_frame *next_python(const struct prb_thread *thread, size_t *left)
{
    while (*left > 0)
        if (thread->frames[--*left].kind == PRB_FRAME_PYTHON)
            return &thread->frames[*left];
    return NULL;
}

/* Who is woken has native frames in one view, and none in the next. */
static bool same_python(const struct prb_thread *a, const struct prb_thread *b)
{
    size_t left = a->frame_count, other = b->frame_count;
    for (;;) {
        const struct prb_frame *x = next_python(a, &left), *y = next_python(b, &other);
        if (!x || !y || !same_place(x, y))
            return x == y;
    }
}

/* Of two Python stacks all but one's innermost frame are equal, and that one's function is: a loop. */
static bool same_function(const struct prb_thread *a, const struct prb_thread *b)
{
    size_t left = a->frame_count, other = b->frame_count, equal = 0;
    for (;;) {
        const struct prb_frame *x = next_python(a, &left), *y = next_python(b, &other);
        if (!x && !y)
            return equal > 0;
        if (!x || !y)
            return equal > 1; /* the one calls a function, the other does not now */
        if (same_place(x, y)) {
            equal++;
            continue;
        }
        /* The innermost of at least one of them. */
        size_t rest = left, other_rest = other;
        return x->code == y->code && (!next_python(a, &rest) || !next_python(b, &other_rest));
    }
}

static bool same_value(const struct prb_local *a, const struct prb_local *b)
{
    bool both = a->repr && b->repr;
    return strcmp(a->name, b->name) == 0 &&
           (both ? strcmp(a->repr, b->repr) == 0 : a->repr == b->repr);
}

/* Values alone: an object's address may differ although nothing moved, and be equal although it did. */
static bool values_changed(const struct prb_stacks *before, const struct prb_stacks *after)
{
    if (!before || !after || before->thread_count != 1 || after->thread_count != 1 ||
        before->threads[0].frame_count != after->threads[0].frame_count)
        return false; /* the stacks themselves say more */
    for (size_t i = 0; i < before->threads[0].frame_count; i++) {
        const struct prb_frame *a = &before->threads[0].frames[i];
        const struct prb_frame *b = &after->threads[0].frames[i];
        if (a->code != b->code || a->local_count != b->local_count)
            return false;
        for (size_t k = 0; k < a->local_count; k++)
            if (!same_value(&a->locals[k], &b->locals[k]))
                return true;
    }
    return false;
}

static bool groups_changed(const json_t *before, const json_t *after)
{
    return before && after && !json_equal(before, after);
}

static bool others_work(const struct view *first, const struct view *last, size_t speaker)
{
    double span = last->at - first->at;
    for (size_t i = 0; i < last->stacks->thread_count; i++) {
        size_t at;
        const struct prb_thread *thread = &last->stacks->threads[i];
        if (i != speaker && thread->has_python &&
            same_thread(first->stacks, thread->os_thread_id, &at) &&
            last->uses[i].cpu - first->uses[at].cpu > WORKS_SHARE * span)
            return true;
    }
    return false;
}

/* ---- as JSON ---- */

static json_t *text_of(const char *text)
{
    json_t *value = text ? json_string(text) : json_string("");
    return value ? value : json_string("?"); /* not UTF-8 */
}

static const char *short_file(const struct prb_frame *frame)
{
    const char *file = frame->short_filename ? frame->short_filename : frame->filename;
    return file ? file : "";
}

static json_t *frames_of(const struct prb_thread *thread)
{
    json_t *list = json_array();
    for (size_t i = 0; i < thread->frame_count && json_array_size(list) < FRAMES_MOST; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        if (frame->kind == PRB_FRAME_PYTHON)
            json_array_append_new(
                list,
                json_pack("[o, o, i]", text_of(frame->qualname ? frame->qualname : frame->name),
                          text_of(short_file(frame)), frame->line));
    }
    return list;
}

/* "sync_grads (train.py:47)" */
static void site_of(const struct prb_thread *thread, char *out, size_t size)
{
    const struct prb_frame *frame = prb_hang_own_frame(thread);
    *out = '\0';
    if (frame)
        snprintf(out, size, "%s (%s:%d)", frame->name ? frame->name : "?",
                 prb_base_name(short_file(frame)), frame->line);
}

/* The innermost native function, where the stack ends in one that has a name. */
static const char *inside(const struct prb_thread *thread)
{
    const struct prb_frame *frame = thread->frame_count ? &thread->frames[0] : NULL;
    bool named = frame && frame->kind == PRB_FRAME_NATIVE && frame->name &&
                 strncmp(frame->name, "0x", 2) != 0;
    return named ? frame->name : "";
}

static void wait_channel(pid_t pid, pid_t tid, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    if (prb_read_text(path, out, size) <= 0 || strcmp(out, "0") == 0)
        *out = '\0';
}

/* kept: another thread kept the GIL that it waits for.  Else a thread that leaves a collective wants it for a moment. */
static enum prb_hang_kind kind_of(const struct prb_thread *thread, bool looped, bool ran, bool kept,
                                  bool *spins)
{
    enum prb_hang_kind kind = prb_hang_kind_of(thread, spins);
    if (thread->os_state == 'T' || thread->os_state == 't')
        return PRB_HANG_STOPPED;
    if (kept || (thread->gil == PRB_GIL_WAITING && kind != PRB_HANG_COLLECTIVE))
        return PRB_HANG_GIL;
    if (kind != PRB_HANG_RUNNING)
        return kind;
    if (thread->os_state == 'D')
        return PRB_HANG_DISK;
    if (ran)
        return looped ? PRB_HANG_LOOP : PRB_HANG_RUNNING;
    return thread->frame_count && thread->frames[0].kind == PRB_FRAME_NATIVE ? PRB_HANG_NATIVE
                                                                             : PRB_HANG_RUNNING;
}

/* Who has what it waits for, as text; "": nobody, or it cannot be said. */
static void holder_of(struct prb_target *target, const struct prb_stacks *stacks, size_t waiter,
                      enum prb_hang_kind kind, char *out, size_t size)
{
    *out = '\0';
    if (kind == PRB_HANG_GIL)
        prb_gil_holder_of(stacks, out, size);
    else if (kind == PRB_HANG_LOCK)
        prb_lock_holder_of(target, stacks, waiter, out, size);
}

static const struct prb_thread *keeper_of(const struct prb_stacks *stacks)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].gil == PRB_GIL_HOLDING)
            return &stacks->threads[i];
    return NULL;
}

/* Who acts for a thread that waits for the GIL: who kept it from view to view; else itself.  One view is enough: who waits
 * for the GIL is woken every 5 ms, and on a busy machine mostly seen as it is about to run. */
static size_t actor_of(const struct view *first, const struct view *last, size_t thread)
{
    const struct prb_thread *now = &last->stacks->threads[thread],
                            *keeper = keeper_of(last->stacks);
    const struct prb_thread *before = keeper_of(first->stacks);
    size_t at;
    const struct prb_thread *old = same_thread(first->stacks, now->os_thread_id, &at);
    bool wants = old && (now->gil == PRB_GIL_WAITING || old->gil == PRB_GIL_WAITING);
    return wants && keeper && before && keeper != now &&
                   keeper->os_thread_id == before->os_thread_id
               ? (size_t)(keeper - last->stacks->threads)
               : thread;
}

/* ---- who runs and is at one place: it may wait by spinning, as CUDA does for a device ---- */

static const struct prb_thread *running_main(const struct prb_stacks *stacks)
{
    const struct prb_thread *main = stacks->thread_count ? &stacks->threads[main_of(stacks)] : NULL;
    return main && main->os_state == 'R' && main->os_thread_id == stacks->target.pid ? main : NULL;
}

/* Whether a thread that runs is seen at another place until then: of Python alone, nothing is stopped, and
 * often enough that a loop is. */
static bool was_elsewhere(struct prb_target *target, const struct view *first, double until)
{
    const struct prb_thread *main = running_main(first->stacks);
    if (!main || !main->has_python)
        return false;
    const struct prb_stack_options glance = {.only_thread = (uint64_t)main->os_thread_id};
    for (double at = prb_clock_s() + GLANCE_EVERY; at < until; at += GLANCE_EVERY) {
        prb_clock_sleep_until(at);
        PRB_AUTO(prb_stacks) struct prb_stacks *now = prb_stacks_take(target, &glance, NULL);
        if (now && now->thread_count == 1 && !same_python(main, &now->threads[0]))
            return true;
    }
    return false;
}

/* What it spins in: its native frames are had by a stop of microseconds. */
static void look_inside(struct prb_target *target, const struct view *first, struct view *last)
{
    const struct prb_thread *before = running_main(first->stacks);
    const struct prb_thread *main = running_main(last->stacks);
    if (!before || !main || !main->has_python || !same_python(before, main))
        return;
    const struct prb_stack_options all = {.native = true,
                                          .only_thread = (uint64_t)main->os_thread_id};
    PRB_AUTO(prb_stacks) struct prb_stacks *now = prb_stacks_take(target, &all, NULL);
    if (now && now->thread_count == 1 && same_python(main, &now->threads[0]))
        last->inside = PRB_STEAL(now);
}

static json_t *compare(struct prb_target *target, const struct view *first, const struct view *last)
{
    size_t speaker = speaker_of(last->stacks), at = 0, before = 0;
    size_t main = main_of(last->stacks), main_before = 0;
    const struct prb_thread *thread = &last->stacks->threads[speaker];
    const struct prb_thread *old = same_thread(first->stacks, thread->os_thread_id, &at);
    const pid_t pid = last->stacks->target.pid;
    /* Who waits for the GIL is woken all the time: what counts is what its keeper does. */
    size_t acts = actor_of(first, last, speaker);
    const struct prb_thread *actor = &last->stacks->threads[acts];
    const struct prb_thread *acted = same_thread(first->stacks, actor->os_thread_id, &before);
    double span = last->at - first->at;
    double cpu = acted ? last->uses[acts].cpu - first->uses[before].cpu : 0;
    double woken = acted ? (double)(last->uses[acts].switches - first->uses[before].switches) : 0;
    bool known = same_thread(first->stacks, last->stacks->threads[main].os_thread_id, &main_before);
    bool spins, ran = cpu > QUIET_SHARE * span;
    bool looped = acted && same_function(acted, actor), kept = acts != speaker;
    const struct prb_thread *seen =
        last->inside && speaker == main ? &last->inside->threads[0] : thread;
    enum prb_hang_kind kind = kind_of(seen, looped, ran, kept, &spins);
    bool moved =
        !old || !known || !acted ||
        !(kept ? same_python(old, thread) && same_python(acted, actor) : same_stack(old, thread)) ||
        groups_changed(first->groups, last->groups) ||
        values_changed(first->values, last->values) ||
        (!spins && (ran || woken > QUIET_SWITCHES + SWITCHES_A_S * span));
    char operation[64] = "", site[160], channel[64], holder[200];
    if (kind == PRB_HANG_COLLECTIVE)
        prb_hang_operation(seen, operation, sizeof operation);
    holder_of(target, last->stacks, speaker, kind, holder, sizeof holder);
    site_of(prb_hang_own_frame(thread) ? thread : &last->stacks->threads[main], site, sizeof site);
    wait_channel(pid, thread->os_thread_id, channel, sizeof channel);
    char state[2] = {last->stacks->threads[main].os_state, '\0'};
    const struct prb_thread *shown =
        prb_hang_own_frame(thread) ? thread : &last->stacks->threads[main];
    return json_pack("{s:s, s:s, s:o, s:b, s:b, s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:O?}",
                     "kind", prb_hang_kind_name(kind), "state", state, "wchan", text_of(channel),
                     "moved", moved, "looped", looped, "works", others_work(first, last, speaker),
                     "span", span, "cpu", cpu, "operation", text_of(operation), "site",
                     text_of(site), "inside", text_of(inside(seen)), "holder", text_of(holder),
                     "frames", frames_of(shown), "groups", last->groups);
}

/* A view between the first and the last.  *moved: it, or one before it, shows movement. */
static bool look_between(struct prb_target *target, const struct prb_evidence_options *options,
                         const struct view *first, int number, bool *moved, struct prb_error *err)
{
    PRB_AUTO(view) struct view view = {0};
    const double at = first->at + number * options->every;
    *moved = *moved || was_elsewhere(target, first, at);
    prb_clock_sleep_until(at);
    if (!take_view(target, options, &view, err))
        return false;
    if (!*moved)
        look_inside(target, first, &view);
    PRB_AUTO(json_t)
    json_t *object = view.stacks->thread_count ? compare(target, first, &view) : NULL;
    *moved = *moved || json_is_true(json_object_get(object, "moved"));
    return true;
}

json_t *prb_evidence_take(struct prb_target *target, const struct prb_evidence_options *options,
                          struct prb_error *err)
{
    PRB_AUTO(view) struct view first = {0};
    PRB_AUTO(view) struct view last = {0};
    int views = options->views > 2 ? options->views : 2;
    bool moved = false;
    if (!take_view(target, options, &first, err))
        return NULL;
    for (int i = 1; i < views - 1 && first.stacks->thread_count; i++)
        if (!look_between(target, options, &first, i, &moved, err))
            return NULL;
    const double end = first.at + (views - 1) * options->every;
    moved = moved || was_elsewhere(target, &first, end);
    prb_clock_sleep_until(end);
    if (!take_view(target, options, &last, err))
        return NULL;
    if (!moved)
        look_inside(target, &first, &last);
    if (!first.stacks->thread_count || !last.stacks->thread_count)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "it has no threads any more"));
    json_t *object = compare(target, &first, &last);
    if (object && moved)
        json_object_set_new(object, "moved", json_true());
    return object ? object : PRB_NULL(prb_nomem(err));
}

/* ---- from JSON ---- */

static const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool read_frames(const json_t *list, struct prb_hang_rank *out)
{
    size_t count = json_array_size(list);
    out->frames = count <= FRAMES_MOST ? calloc(count + 1, sizeof *out->frames) : NULL;
    for (size_t i = 0; out->frames && i < count; i++) {
        const json_t *one = json_array_get(list, i);
        struct prb_hang_frame *frame = &out->frames[out->frame_count++];
        frame->name = json_string_value(json_array_get(one, 0));
        frame->file = json_string_value(json_array_get(one, 1));
        frame->line = (int)json_integer_value(json_array_get(one, 2));
        if (!frame->name || !frame->file)
            return false;
    }
    return out->frames;
}

#define GROUPS_MOST 10000

static bool read_groups(const json_t *list, struct prb_hang_rank *out)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list))
        return true;
    out->groups = count <= GROUPS_MOST ? calloc(count + 1, sizeof *out->groups) : NULL;
    for (size_t i = 0; out->groups && i < count; i++) {
        const json_t *one = json_array_get(list, i);
        struct prb_hang_group *group = &out->groups[out->group_count++];
        group->name = json_string_value(json_array_get(one, 0));
        group->sequence = json_integer_value(json_array_get(one, 1));
        group->open = json_is_true(json_array_get(one, 2));
        group->operation = json_string_value(json_array_get(one, 3));
        group->sizes = json_string_value(json_array_get(one, 4));
        group->begun = json_number_value(json_array_get(one, 5));
        if (!group->name || !group->operation || !group->sizes)
            return false;
    }
    return out->groups;
}

bool prb_evidence_read(const json_t *object, struct prb_hang_rank *out, struct prb_error *err)
{
    const char *kind = text_in(object, "kind");
    out->kind = PRB_HANG_KINDS;
    for (unsigned i = 0; i < PRB_HANG_KINDS; i++)
        if (strcmp(kind, prb_hang_kind_name((enum prb_hang_kind)i)) == 0)
            out->kind = (enum prb_hang_kind)i;
    out->os_state = text_in(object, "state")[0];
    out->wait_channel = text_in(object, "wchan");
    out->moved = json_is_true(json_object_get(object, "moved"));
    out->looped = json_is_true(json_object_get(object, "looped"));
    out->works = json_is_true(json_object_get(object, "works"));
    out->span = json_number_value(json_object_get(object, "span"));
    out->cpu = json_number_value(json_object_get(object, "cpu"));
    out->operation = text_in(object, "operation");
    out->site = text_in(object, "site");
    out->inside = text_in(object, "inside");
    out->holder = text_in(object, "holder");
    return (out->kind < PRB_HANG_KINDS && read_frames(json_object_get(object, "frames"), out) &&
            read_groups(json_object_get(object, "groups"), out)) ||
           prb_fail(err, PRB_CORRUPT, "what a rank says of itself cannot be parsed");
}
