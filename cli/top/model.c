/* The shares that top shows, from a profile that grows: each update takes what came since the last
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"

#define DEPTH_MAX 100000   /* frames of a stack */
#define PROCESSES_MAX 1024 /* for which the function that is on most stacks is found */
#define ENDED_SECONDS 5    /* that a row remains after its thread or process ended */

void prb_top_deinit(struct prb_top *top)
{
    free(top->functions);
    free(top->threads);
    free(top->processes);
    free(top->spots);
    free(top->weight_before);
    free(top->thread_before);
    free(top->process_before);
    free(top->stamp);
    free(top->places);
    free(top->sums);
    prb_steps_free(top->steps);
    free(top->step_rows);
    *top = (struct prb_top){0};
}

/* Room for count elements, new ones zero. */
static bool widen(void **array, size_t size, size_t *cap, size_t count)
{
    if (count <= *cap)
        return true;
    size_t wanted = *cap * 2 > count ? *cap * 2 : count + 16;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return false;
    memset((char *)grown + *cap * size, 0, (wanted - *cap) * size);
    *array = grown;
    *cap = wanted;
    return true;
}

static bool make_room(struct prb_top *top, const struct prb_profile *profile)
{
    size_t stamps = top->function_cap, places = stamps, functions = stamps, sums = stamps;
    size_t threads = top->thread_cap, befores = top->thread_cap;
    size_t processes = top->process_cap, ends = top->process_cap;
    bool good =
        widen((void **)&top->weight_before, sizeof *top->weight_before, &top->weight_cap,
              profile->weight_count) &&
        widen((void **)&top->stamp, sizeof *top->stamp, &stamps, profile->function_count) &&
        widen((void **)&top->places, sizeof *top->places, &places, profile->function_count) &&
        widen((void **)&top->sums, sizeof *top->sums, &sums, profile->function_count) &&
        widen((void **)&top->functions, sizeof *top->functions, &functions,
              profile->function_count) &&
        widen((void **)&top->threads, sizeof *top->threads, &threads, profile->thread_count) &&
        widen((void **)&top->thread_before, sizeof *top->thread_before, &befores,
              profile->thread_count) &&
        widen((void **)&top->process_before, sizeof *top->process_before, &ends,
              profile->process_count + 1) &&
        widen((void **)&top->processes, sizeof *top->processes, &processes,
              profile->process_count + 1);
    if (good) {
        top->function_cap = functions;
        top->thread_cap = threads;
        top->process_cap = processes;
    }
    return good;
}

/* ---- what is there, or was a moment ago ---- */

static bool still_listed(const struct prb_top *top, double ended)
{
    return !ended || ended == top->seconds || top->seconds - ended < ENDED_SECONDS;
}

/* Note at which update a thread was missing first: 0 while it is there, or was not sampled. */
static void note_end(struct prb_top *top, const struct prb_profile *profile, size_t i)
{
    const struct prb_profile_thread *thread = &profile->threads[i];
    const struct prb_profile_process *process = &profile->processes[thread->process];
    double *ended = &top->thread_before[i].ended;
    bool sampled = process->end > top->seconds - top->interval;
    bool seen = thread->samples != top->thread_before[i].samples ||
                thread->dropped != top->thread_before[i].dropped;
    if (seen && !process->ended)
        *ended = 0;
    else if ((sampled || process->ended) && !*ended)
        *ended = top->seconds;
}

static void begin_process(struct prb_top *top, const struct prb_profile *profile, size_t i)
{
    if (profile->processes[i].ended && !top->process_before[i].ended)
        top->process_before[i].ended = top->seconds;
    top->ended += profile->processes[i].ended;
    top->processes[i] = (struct prb_top_process){
        .process = (uint32_t)i,
        .function = UINT32_MAX,
        .samples = profile->processes[i].samples - top->process_before[i].samples,
        .listed = still_listed(top, top->process_before[i].ended)};
    top->process_before[i].samples = profile->processes[i].samples;
}

/* ---- functions ---- */

static struct prb_top_function *row_of(struct prb_top *top, uint32_t function)
{
    if (!top->places[function]) {
        top->functions[top->function_count] = (struct prb_top_function){.function = function};
        top->places[function] = ++top->function_count;
    }
    return &top->functions[top->places[function] - 1];
}

static void add_weight(struct prb_top *top, const struct prb_profile *profile, size_t i)
{
    const struct prb_profile_weight *weight = &profile->weights[i];
    uint64_t recent = weight->ns - top->weight_before[i];
    bool there = still_listed(top, top->thread_before[weight->thread].ended);
    uint32_t node = weight->node;
    top->stamps++;
    for (size_t depth = 0; node && node < profile->node_count && depth < DEPTH_MAX; depth++) {
        uint32_t function = profile->frames[profile->nodes[node].frame].function;
        struct prb_top_function *row = row_of(top, function);
        row->there |= there;
        if (depth == 0) {
            row->own += recent;
            row->own_all += weight->ns;
            top->own += recent;
            top->own_all += weight->ns;
        }
        if (top->stamp[function] != top->stamps) { /* of a recursion once */
            row->total += recent;
            row->total_all += weight->ns;
            top->stamp[function] = top->stamps;
        }
        node = profile->nodes[node].parent;
    }
}

/* The function in which a process was the most. */
static void add_most(struct prb_top *top, const struct prb_profile *profile, size_t p)
{
    struct prb_top_process *process = &top->processes[p];
    top->stamps++;
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        if (profile->threads[weight->thread].process != p || !weight->node ||
            weight->node >= profile->node_count)
            continue;
        uint64_t recent = weight->ns - top->weight_before[i];
        uint32_t function = profile->frames[profile->nodes[weight->node].frame].function;
        if (top->stamp[function] != top->stamps)
            top->sums[function] = 0;
        top->stamp[function] = top->stamps;
        top->sums[function] += recent;
        process->own += recent;
        if (top->sums[function] > process->own_most) {
            process->own_most = top->sums[function];
            process->function = function;
        }
    }
}

/* ---- threads and processes ---- */

static void add_thread(struct prb_top *top, const struct prb_profile *profile, size_t i)
{
    const struct prb_profile_thread *thread = &profile->threads[i];
    bool stack_shown = top->view == PRB_TOP_STACK && top->chosen_thread == i;
    struct prb_top_process *process = &top->processes[thread->process];
    uint64_t samples = thread->samples - top->thread_before[i].samples;
    uint64_t cpu = thread->cpu_ns - top->thread_before[i].cpu_ns;
    uint64_t gil = thread->gil_samples - top->thread_before[i].gil;
    uint64_t idle = thread->idle_samples - top->thread_before[i].idle;
    /* Of all samples of the interval, also those before the thread began or after it ended. */
    double part = process->samples ? 1.0 / (double)process->samples : 0;
    double ended = top->thread_before[i].ended;
    struct prb_top_thread row = {
        .thread = (uint32_t)i,
        .node = thread->node,
        .state = thread->state,
        .waits = thread->waits,
        .gone = ended > 0,
        .cpu = top->interval > 0 ? (double)cpu * 1e-9 / top->interval : 0,
        .gil = (double)gil * part,
        .running = (double)(samples - idle) * part,
    };
    top->thread_before[i].samples = thread->samples;
    top->thread_before[i].cpu_ns = thread->cpu_ns;
    top->thread_before[i].gil = thread->gil_samples;
    top->thread_before[i].idle = thread->idle_samples;
    top->thread_before[i].dropped = thread->dropped;
    if (still_listed(top, ended) || stack_shown)
        top->threads[top->thread_count++] = row;
    process->cpu += row.cpu;
    process->gil += row.gil;
    if (row.gone)
        return;
    process->threads++;
    process->running += !(thread->state & PRB_SAMPLED_IDLE);
}

/* ---- orders ---- */

static uint64_t key_of(const struct prb_top_function *row, enum prb_top_sort sort)
{
    return sort == PRB_TOP_OWN       ? row->own
           : sort == PRB_TOP_TOTAL   ? row->total
           : sort == PRB_TOP_OWN_ALL ? row->own_all
                                     : row->total_all;
}

static int compare(const struct prb_top_function *x, const struct prb_top_function *y,
                   enum prb_top_sort sort)
{
    /* Where the wanted share says nothing, the others do. */
    static const enum prb_top_sort next[] = {PRB_TOP_OWN, PRB_TOP_TOTAL, PRB_TOP_OWN_ALL,
                                             PRB_TOP_TOTAL_ALL};
    uint64_t left = key_of(x, sort), right = key_of(y, sort);
    for (size_t i = 0; left == right && i < sizeof next / sizeof *next; i++) {
        left = key_of(x, next[i]);
        right = key_of(y, next[i]);
    }
    if (left != right)
        return left > right ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

#define BY(name, sort)                                                                             \
    static int by_##name(const void *a, const void *b) { return compare(a, b, sort); }
BY(own, PRB_TOP_OWN)
BY(total, PRB_TOP_TOTAL)
BY(own_all, PRB_TOP_OWN_ALL)
BY(total_all, PRB_TOP_TOTAL_ALL)

void prb_top_order(struct prb_top *top)
{
    static int (*const orders[])(const void *, const void *) = {
        [PRB_TOP_OWN] = by_own,
        [PRB_TOP_TOTAL] = by_total,
        [PRB_TOP_OWN_ALL] = by_own_all,
        [PRB_TOP_TOTAL_ALL] = by_total_all,
    };
    if (top->function_count)
        qsort(top->functions, top->function_count, sizeof *top->functions, orders[top->sort]);
}

/* Those that do most first; those that ended last. */
static int by_business(const void *a, const void *b)
{
    const struct prb_top_thread *x = a, *y = b;
    if (x->gone != y->gone)
        return x->gone ? 1 : -1;
    double left = x->cpu + x->running + x->gil, right = y->cpu + y->running + y->gil;
    if (left != right)
        return left > right ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* ---- one function ---- */

static struct prb_top_spot *spot_of(struct prb_top *top, uint32_t frame, bool caller)
{
    for (size_t i = 0; i < top->spot_count; i++)
        if (top->spots[i].frame == frame && top->spots[i].caller == caller)
            return &top->spots[i];
    if (!widen((void **)&top->spots, sizeof *top->spots, &top->spot_cap, top->spot_count + 1))
        return NULL;
    top->spots[top->spot_count] = (struct prb_top_spot){.frame = frame, .caller = caller};
    return &top->spots[top->spot_count++];
}

/* Of a recursion a place counts once. */
static bool add_spot(struct prb_top *top, size_t weight, uint32_t frame, bool caller, bool own)
{
    struct prb_top_spot *spot = spot_of(top, frame, caller);
    if (!spot)
        return false;
    if (own)
        spot->own += top->profile->weights[weight].ns;
    if (spot->stamp != weight + 1)
        spot->total += top->profile->weights[weight].ns;
    spot->stamp = weight + 1;
    return true;
}

static bool add_spots(struct prb_top *top, size_t weight)
{
    const struct prb_profile *profile = top->profile;
    uint32_t node = profile->weights[weight].node;
    for (size_t depth = 0; node && node < profile->node_count && depth < DEPTH_MAX; depth++) {
        uint32_t frame = profile->nodes[node].frame, parent = profile->nodes[node].parent;
        node = parent;
        if (profile->frames[frame].function != top->chosen_function)
            continue;
        if (!add_spot(top, weight, frame, false, depth == 0) ||
            (parent && !add_spot(top, weight, profile->nodes[parent].frame, true, false)))
            return false;
    }
    return true;
}

/* The lines first; each by what it took. */
static int by_cost(const void *a, const void *b)
{
    const struct prb_top_spot *x = a, *y = b;
    if (x->caller != y->caller)
        return x->caller ? 1 : -1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

bool prb_top_spots(struct prb_top *top)
{
    top->spot_count = top->spots_whole = 0;
    for (size_t i = 0; i < top->profile->weight_count; i++) {
        top->spots_whole += top->profile->weights[i].ns;
        if (!add_spots(top, i))
            return false;
    }
    if (top->spot_count)
        qsort(top->spots, top->spot_count, sizeof *top->spots, by_cost);
    return true;
}

/* ---- update ---- */

bool prb_top_update(struct prb_top *top, const struct prb_profile *profile)
{
    if (!make_room(top, profile))
        return false;
    top->profile = profile;
    top->interval = profile->seconds - top->seconds_before;
    top->seconds = top->seconds_before = profile->seconds;
    top->samples = profile->samples;
    top->dropped = profile->dropped;
    top->skipped = profile->skipped;
    top->late = profile->late;
    top->function_count = top->thread_count = top->own = top->own_all = top->ended = 0;
    top->process_count = profile->process_count;
    for (size_t i = 0; i < profile->function_count; i++)
        top->places[i] = 0;
    for (size_t i = 0; i < profile->process_count; i++)
        begin_process(top, profile, i);
    for (size_t i = 0; i < profile->thread_count; i++)
        note_end(top, profile, i);
    for (size_t i = 0; i < profile->weight_count; i++)
        add_weight(top, profile, i);
    for (size_t i = 0; i < profile->process_count && i < PROCESSES_MAX; i++)
        add_most(top, profile, i);
    for (size_t i = 0; i < profile->weight_count; i++)
        top->weight_before[i] = profile->weights[i].ns;
    for (size_t i = 0; i < profile->thread_count; i++)
        add_thread(top, profile, i);
    if (top->thread_count)
        qsort(top->threads, top->thread_count, sizeof *top->threads, by_business);
    prb_top_order(top);
    return top->view != PRB_TOP_FUNCTION || prb_top_spots(top);
}

static bool has(const char *text, const char *part) { return text && strcasestr(text, part); }

bool prb_top_passes(const struct prb_top *top, const struct prb_profile_function *function)
{
    return !top->filter[0] || has(function->qualname, top->filter) ||
           has(function->name, top->filter) || has(function->filename, top->filter);
}

void prb_top_stack_each(const struct prb_profile *profile, uint32_t node,
                        void (*each)(void *, uint32_t), void *context)
{
    for (size_t depth = 0; node && node < profile->node_count && depth < DEPTH_MAX; depth++) {
        each(context, profile->nodes[node].frame);
        node = profile->nodes[node].parent;
    }
}

/* ---- what has a row in its view ---- */

/* What is asked of its stack: the filter, if there is one. */
struct search {
    const struct prb_top *top;
    bool found;
};

static void look_for(void *context, uint32_t frame)
{
    struct search *search = context;
    const struct prb_profile *profile = search->top->profile;
    search->found |=
        prb_top_passes(search->top, &profile->functions[profile->frames[frame].function]);
}

void prb_top_process_label(const struct prb_top *top, uint32_t index, char text[32])
{
    const struct prb_profile_process *process = &top->profile->processes[index];
    if (process->rank >= 0)
        snprintf(text, 32, "rank %d", process->rank);
    else
        snprintf(text, 32, "%d", (int)process->pid);
}

bool prb_top_function_shown(const struct prb_top *top, const struct prb_top_function *row)
{
    bool all = top->sort == PRB_TOP_OWN_ALL || top->sort == PRB_TOP_TOTAL_ALL;
    return (all || row->there) && prb_top_passes(top, &top->profile->functions[row->function]);
}

bool prb_top_thread_shown(const struct prb_top *top, const struct prb_top_thread *row)
{
    const struct prb_profile_thread *thread = &top->profile->threads[row->thread];
    struct search search = {.top = top};
    char label[32];
    if (top->only && thread->process != top->only_process)
        return false;
    prb_top_process_label(top, thread->process, label);
    if (!top->filter[0] || (thread->name && strcasestr(thread->name, top->filter)) ||
        strcasestr(label, top->filter))
        return true;
    prb_top_stack_each(top->profile, row->node, look_for, &search);
    return search.found;
}

bool prb_top_process_shown(const struct prb_top *top, const struct prb_top_process *row)
{
    const struct prb_profile_process *process = &top->profile->processes[row->process];
    char label[32], pid[16];
    if (!row->listed)
        return false;
    prb_top_process_label(top, row->process, label);
    snprintf(pid, sizeof pid, "%d", (int)process->pid);
    return strcasestr(label, top->filter) || strcasestr(pid, top->filter) ||
           (process->command && strcasestr(process->command, top->filter)) ||
           (row->function != UINT32_MAX &&
            prb_top_passes(top, &top->profile->functions[row->function]));
}
