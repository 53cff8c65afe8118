/* A thread for each profile, and its pauses (runs.h). */
#include "serve/live/runs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "format/json.h"

#define SHARED_SECONDS 3600.0
#define SLOW_RATE 10.0 /* below it, who waits wakes the sampler */

struct weight {
    uint64_t samples;
    unsigned stamp;
};

struct prb_run {
    struct prb_runs *runs;
    char id[PRB_RUN_NAME]; /* "": the place is free; id and users: the list's lock */
    unsigned users;
    bool leaving; /* its thread is being waited for */
    struct prb_run_options options;
    pthread_t thread;
    int wake;
    atomic_uint waiting;
    atomic_bool ending;
    pthread_mutex_t lock; /* of all that follows; the sampler has it but in its pauses */
    pthread_cond_t changed;
    bool began, done;
    struct prb_error error; /* why nothing could be sampled */
    struct prb_profiler *profiler;
    struct prb_profile *profile; /* when done */
    struct weight *weights;
    size_t weight_count;
    unsigned stamp;
    double ended; /* s, monotonic */
};

struct prb_runs {
    pthread_mutex_t lock;
    unsigned number;
    struct prb_run items[PRB_RUNS_MAX];
};

/* ---- the sampler's thread ---- */

/* Let those who wait have it; with the lock. */
static bool pause_for_others(void *context, const struct prb_profile *profile)
{
    struct prb_run *run = context;
    while (atomic_load(&run->waiting) && !atomic_load(&run->ending))
        pthread_cond_wait(&run->changed, &run->lock);
    return !atomic_load(&run->ending) && (!profile || profile->node_count < PRB_RUN_NODES_MAX);
}

static bool begin(struct prb_run *run)
{
    const struct prb_profiler_options options = {.mode = run->options.mode,
                                                 .rate = run->options.rate,
                                                 .native = run->options.native,
                                                 .timeline = !run->options.shared};
    run->profiler = prb_profiler_new(&options, &run->error);
    return run->profiler && prb_profiler_add(run->profiler, run->options.pid, &run->error);
}

static void sample(struct prb_run *run)
{
    double until = prb_clock_s() + run->options.seconds;
    for (double now; (now = prb_clock_s()) < until;) {
        uint64_t woken;
        if (!prb_profiler_run(run->profiler, until - now, run->wake, pause_for_others, run,
                              &run->error) ||
            !prb_profiler_alive(run->profiler) ||
            !pause_for_others(run, prb_profiler_profile(run->profiler)))
            break;
        if (read(run->wake, &woken, sizeof woken) < 0)
            continue; /* it was not woken */
    }
}

static void *run_thread(void *context)
{
    struct prb_run *run = context;
    pthread_mutex_lock(&run->lock);
    bool ok = begin(run);
    run->began = true;
    pthread_cond_broadcast(&run->changed);
    if (ok)
        sample(run);
    run->profile = ok ? prb_profiler_finish(run->profiler) : NULL;
    prb_profiler_free(run->profiler);
    run->profiler = NULL;
    run->done = true;
    run->ended = prb_clock_s();
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* ---- the list ---- */

static const struct {
    const char *name;
    enum prb_profile_mode mode;
} modes[] = {{"active", PRB_PROFILE_ACTIVE},
             {"wall", PRB_PROFILE_WALL},
             {"cpu", PRB_PROFILE_CPU},
             {"gil", PRB_PROFILE_GIL}};

bool prb_run_mode(const char *name, enum prb_profile_mode *out)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0) {
            *out = modes[i].mode;
            return true;
        }
    return false;
}

static void wake(struct prb_run *run)
{
    uint64_t one = 1;
    prb_write_all(run->wake, &one, sizeof one);
}

/* With the list's lock, which is given up meanwhile: nobody else finds it then. */
static void discard(struct prb_run *run)
{
    struct prb_runs *runs = run->runs;
    run->leaving = true;
    atomic_store(&run->ending, true);
    wake(run);
    pthread_mutex_unlock(&runs->lock); /* who holds a run may ask for another one */
    pthread_mutex_lock(&run->lock);    /* the sampler waits for changed, or will see ending */
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
    pthread_join(run->thread, NULL);
    while (atomic_load(&run->waiting)) { /* who has found it before */
        pthread_mutex_lock(&run->lock);
        pthread_mutex_unlock(&run->lock);
    }
    pthread_mutex_lock(&runs->lock);
    if (run->profile)
        prb_profile_free(run->profile);
    free(run->weights);
    close(run->wake);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->changed);
    memset(run, 0, sizeof *run);
    run->runs = runs;
}

static struct prb_run *named(struct prb_runs *runs, const char *id)
{
    for (size_t i = 0; i < PRB_RUNS_MAX; i++)
        if (*id && strcmp(runs->items[i].id, id) == 0 && !runs->items[i].leaving)
            return runs->items + i;
    return NULL;
}

static bool is_done(struct prb_run *run)
{
    /* The sampler has the lock while it samples: who cannot have it at once sees one that runs. */
    if (pthread_mutex_trylock(&run->lock) != 0)
        return false;
    bool done = run->done;
    pthread_mutex_unlock(&run->lock);
    return done;
}

static bool same(const struct prb_run_options *a, const struct prb_run_options *b)
{
    return a->pid == b->pid && a->rate == b->rate && a->mode == b->mode && a->native == b->native;
}

static struct prb_run *equal_one(struct prb_runs *runs, const struct prb_run_options *options)
{
    for (size_t i = 0; options->shared && i < PRB_RUNS_MAX; i++) {
        struct prb_run *run = runs->items + i;
        if (*run->id && run->options.shared && !run->leaving && same(&run->options, options) &&
            !is_done(run))
            return run;
    }
    return NULL;
}

/* A free place, if need be that of the oldest that has ended; NULL: BUSY. */
static struct prb_run *place_for(struct prb_runs *runs, const struct prb_run_options *options,
                                 struct prb_error *err)
{
    struct prb_run *oldest = NULL, *free_one = NULL;
    size_t running = 0, kept = 0;
    for (size_t i = 0; i < PRB_RUNS_MAX; i++) {
        struct prb_run *run = runs->items + i;
        bool used = *run->id && !run->leaving, done = used && is_done(run);
        if (!*run->id)
            free_one = run;
        kept += used && !run->options.shared;
        running += used && !run->options.shared && !done && run->options.pid == options->pid;
        if (done && !run->options.shared && (!oldest || run->ended < oldest->ended))
            oldest = run;
    }
    if (!options->shared && running >= PRB_RUNS_OF_TARGET)
        return PRB_NULL(
            prb_fail(err, PRB_BUSY, "%d profiles of it are taken already", PRB_RUNS_OF_TARGET));
    bool full = !free_one || (!options->shared && kept >= PRB_RUNS_KEPT);
    if (full && oldest) {
        discard(oldest);
        free_one = oldest;
    } else if (full) {
        free_one = NULL;
    }
    return free_one
               ? free_one
               : PRB_NULL(prb_fail(err, PRB_BUSY, "%d profiles are taken already", PRB_RUNS_KEPT));
}

bool prb_runs_begin(struct prb_runs *runs, const struct prb_run_options *options,
                    char id[PRB_RUN_NAME], struct prb_error *err)
{
    pthread_mutex_lock(&runs->lock);
    struct prb_run *run = equal_one(runs, options);
    if (run) {
        run->users++;
    } else if ((run = place_for(runs, options, err))) {
        run->runs = runs;
        run->options = *options;
        if (options->shared)
            run->options.seconds = SHARED_SECONDS;
        run->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&run->lock, NULL);
        prb_clock_cond_init(&run->changed);
        run->users = 1;
        snprintf(run->id, sizeof run->id, "%c%u", options->shared ? 's' : 'p', ++runs->number);
        if (run->wake < 0 || pthread_create(&run->thread, NULL, run_thread, run) != 0) {
            if (run->wake >= 0)
                close(run->wake);
            memset(run, 0, sizeof *run);
            run = NULL;
            prb_fail(err, PRB_NOMEM, "no thread can be made");
        }
    }
    if (run)
        snprintf(id, PRB_RUN_NAME, "%s", run->id);
    pthread_mutex_unlock(&runs->lock);
    return run;
}

bool prb_runs_end(struct prb_runs *runs, const char *id, struct prb_error *err)
{
    pthread_mutex_lock(&runs->lock);
    struct prb_run *run = named(runs, id);
    if (run && --run->users == 0)
        discard(run);
    pthread_mutex_unlock(&runs->lock);
    return run || prb_fail(err, PRB_NOT_FOUND, "there is no profile \"%.40s\"", id);
}

size_t prb_runs_list(struct prb_runs *runs, char ids[PRB_RUNS_MAX][PRB_RUN_NAME])
{
    size_t count = 0;
    pthread_mutex_lock(&runs->lock);
    for (unsigned number = 1; number <= runs->number; number++) {
        char id[PRB_RUN_NAME];
        snprintf(id, sizeof id, "p%u", number);
        if (named(runs, id))
            memcpy(ids[count++], id, sizeof id);
    }
    pthread_mutex_unlock(&runs->lock);
    return count;
}

struct prb_runs *prb_runs_new(struct prb_error *err)
{
    struct prb_runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return PRB_NULL(prb_nomem(err));
    pthread_mutex_init(&runs->lock, NULL);
    return runs;
}

void prb_runs_free(struct prb_runs *runs)
{
    if (!runs)
        return;
    pthread_mutex_lock(&runs->lock);
    for (size_t i = 0; i < PRB_RUNS_MAX; i++)
        if (*runs->items[i].id)
            discard(runs->items + i);
    pthread_mutex_unlock(&runs->lock);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}

/* ---- reading ---- */

struct prb_run *prb_run_hold(struct prb_runs *runs, const char *id, struct prb_error *err)
{
    pthread_mutex_lock(&runs->lock);
    struct prb_run *run = named(runs, id);
    if (run)
        atomic_fetch_add(&run->waiting, 1);
    pthread_mutex_unlock(&runs->lock);
    if (!run)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "there is no profile \"%.40s\"", id));
    if (run->options.rate < SLOW_RATE)
        wake(run);
    pthread_mutex_lock(&run->lock);
    while (!run->began)
        pthread_cond_wait(&run->changed, &run->lock);
    if (run->profiler || run->profile)
        return run;
    if (err)
        *err = run->error;
    prb_run_release(run);
    return NULL;
}

void prb_run_release(struct prb_run *held)
{
    atomic_fetch_sub(&held->waiting, 1);
    pthread_cond_broadcast(&held->changed);
    pthread_mutex_unlock(&held->lock);
}

const struct prb_profile *prb_run_profile(const struct prb_run *held)
{
    return held->profile ? held->profile : prb_profiler_profile(held->profiler);
}

json_t *prb_run_facts(const struct prb_run *held)
{
    const struct prb_profile *profile = prb_run_profile(held);
    char target[16];
    size_t mode = 0;
    while (mode + 1 < sizeof modes / sizeof *modes && modes[mode].mode != profile->mode)
        mode++;
    snprintf(target, sizeof target, "%d", (int)held->options.pid);
    return json_pack("{s:s,s:s,s:i,s:o,s:f,s:f,s:I,s:I,s:b,s:s,s:f,s:b}", "id", held->id, "target",
                     target, "pid", (int)held->options.pid, "command",
                     prb_json_text(profile->processes[0].command), "started", profile->start,
                     "seconds", profile->seconds, "samples", (json_int_t)profile->samples,
                     "dropped", (json_int_t)profile->dropped, "done", held->done, "mode",
                     modes[mode].name, "rate", profile->rate, "native", profile->native);
}

static json_t *frame_json(const struct prb_profile *profile, const struct prb_profile_frame *frame)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    const struct prb_profile_function *function = profile->functions + frame->function;
    const char *file = function->short_filename ? function->short_filename : function->filename;
    json_t *line = frame->line > 0 ? json_integer(frame->line) : json_null();
    return json_pack("{s:o,s:o,s:o,s:s}", "name",
                     prb_json_text(function->qualname ? function->qualname : function->name),
                     "file", prb_json_text(file), "line", line, "kind", kinds[function->kind]);
}

static json_t *numbers(const json_int_t *values, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

/* The weights whose stamp is later than this. */
static json_t *weights_since(struct prb_run *run, const struct prb_profile *profile, unsigned since)
{
    json_t *array = json_array();
    if (run->weight_count < profile->weight_count) {
        struct weight *more = realloc(run->weights, profile->weight_count * sizeof *more);
        if (!more)
            return array;
        memset(more + run->weight_count, 0,
               (profile->weight_count - run->weight_count) * sizeof *more);
        run->weights = more;
        run->weight_count = profile->weight_count;
    }
    run->stamp++;
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = profile->weights + i;
        struct weight *known = run->weights + i;
        if (known->samples != weight->samples)
            *known = (struct weight){weight->samples, run->stamp};
        if (known->stamp > since)
            json_array_append_new(array, numbers((const json_int_t[]){weight->thread, weight->node,
                                                                      (json_int_t)weight->samples,
                                                                      (json_int_t)weight->ns},
                                                 4));
    }
    return array;
}

json_t *prb_run_increment(struct prb_run *held, struct prb_run_place *place)
{
    const struct prb_profile *profile = prb_run_profile(held);
    json_t *value = prb_run_facts(held), *frames = json_array(), *nodes = json_array(),
           *threads = json_array();
    for (size_t i = place->frames; i < profile->frame_count; i++)
        json_array_append_new(frames, frame_json(profile, profile->frames + i));
    for (size_t i = place->nodes; i < profile->node_count; i++) {
        const struct prb_profile_node *node = profile->nodes + i;
        json_array_append_new(
            nodes,
            numbers((const json_int_t[]){node->parent, i ? (json_int_t)node->frame : -1}, 2));
    }
    for (size_t i = place->threads; i < profile->thread_count; i++) {
        const struct prb_profile_thread *thread = profile->threads + i;
        const struct prb_profile_process *process = profile->processes + thread->process;
        json_array_append_new(
            threads, json_pack("{s:i,s:o,s:i,s:o}", "id", (int)thread->tid, "name",
                               prb_json_text(thread->name), "pid", (int)process->pid, "rank",
                               process->rank < 0 ? json_null() : json_integer(process->rank)));
    }
    json_object_set_new(value, "first_frame", json_integer(place->frames));
    json_object_set_new(value, "frames", frames);
    json_object_set_new(value, "first_node", json_integer(place->nodes));
    json_object_set_new(value, "nodes", nodes);
    json_object_set_new(value, "first_thread", json_integer(place->threads));
    json_object_set_new(value, "threads", threads);
    json_object_set_new(value, "weights", weights_since(held, profile, place->stamp));
    *place = (struct prb_run_place){(unsigned)profile->frame_count, (unsigned)profile->node_count,
                                    (unsigned)profile->thread_count, held->stamp};
    return value;
}
