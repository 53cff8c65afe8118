/* See sampling.h. */
#include "cli/fleet/sampling.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/fleet/job.h"
#include "cli/print/out.h"

#define IN_CHILDREN 0.8 /* of a question's budget that the ranks' children have */
#define MORE 3.0        /* s for opening the ranks, and for the way */

void prb_job_sampling_deinit(struct prb_job_sampling *sampling)
{
    if (sampling->fleet)
        prb_fleet_close(sampling->fleet);
    prb_fleet_profile_deinit(&sampling->sum);
    prb_coverage_deinit(&sampling->coverage);
}

static bool goes_on(void *context)
{
    struct prb_job_sampling *sampling = context;
    sampling->ended = sampling->ended || (sampling->go_on && !sampling->go_on(sampling->context));
    return !sampling->ended;
}

bool prb_job_sampling_begin(struct prb_job_sampling *sampling, struct prb_error *err)
{
    double budget = (sampling->longest + MORE) / IN_CHILDREN;
    sampling->fleet = prb_run_open_job_while(sampling->run, budget, goes_on, sampling, err);
    sampling->begun = prb_clock_s();
    return sampling->fleet;
}

static char *args_of(const struct prb_job_sampling *sampling, double seconds)
{
    const struct prb_profiler_options *how = sampling->how;
    json_t *args = json_pack("{s:f, s:f, s:i, s:b, s:b, s:b, s:b}", "seconds", seconds, "rate",
                             how->rate, "mode", (int)how->mode, "native", how->native, "async",
                             how->async, "subprocesses", how->subprocesses, "states", how->states);
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    return text;
}

static void keep_coverage(struct prb_job_sampling *sampling, struct prb_coverage *latest)
{
    if (sampling->coverage.count && !prb_coverage_whole(&sampling->coverage))
        return;
    prb_coverage_deinit(&sampling->coverage);
    sampling->coverage = *latest;
    *latest = (struct prb_coverage){0};
}

bool prb_job_sample(struct prb_job_sampling *sampling, double seconds, struct prb_error *err)
{
    bool shorter = seconds > 0 && seconds < sampling->longest;
    PRB_AUTO_FREE char *args = args_of(sampling, shorter ? seconds : sampling->longest);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    if (!args)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (sampling->sum.profile)
        sampling->sum.from = prb_clock_s() - sampling->begun;
    else
        sampling->begun = prb_clock_s();
    struct prb_error why = {0};
    if (!prb_fleet_ask(sampling->fleet, "profile", args, &sampling->sum, &coverage, &why)) {
        if (sampling->ended)
            return true;
        *err = why;
        return false;
    }
    bool whole = prb_coverage_check(&coverage, &why);
    sampling->silent = !prb_coverage_in(&coverage, PRB_COVERAGE_ANSWERED, NULL);
    PRB_AUTO_FREE char *line = whole ? NULL : prb_coverage_line(&coverage);
    snprintf(sampling->missing, sizeof sampling->missing, "%s", line ? line : "");
    keep_coverage(sampling, &coverage);
    if (whole || sampling->sum.profile)
        return true;
    *err = why;
    return false;
}

/* ---- as JSON ---- */

static json_t *text_json(const char *text) { return text ? json_string(text) : json_null(); }

static json_t *frames_json(const struct prb_profile *profile)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    json_t *frames = json_array();
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct prb_profile_frame *frame = profile->frames + i;
        const struct prb_profile_function *function = profile->functions + frame->function;
        const char *file = function->short_filename ? function->short_filename : function->filename;
        json_array_append_new(
            frames, json_pack("{s:o,s:o,s:o,s:s}", "name",
                              text_json(function->qualname ? function->qualname : function->name),
                              "file", text_json(file), "line",
                              frame->line > 0 ? json_integer(frame->line) : json_null(), "kind",
                              kinds[function->kind]));
    }
    return frames;
}

static json_t *threads_json(const struct prb_profile *profile)
{
    json_t *threads = json_array();
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *thread = profile->threads + i;
        const struct prb_profile_process *process = profile->processes + thread->process;
        json_array_append_new(threads, json_pack("{s:i,s:o,s:i,s:i}", "id", (int)thread->tid,
                                                 "name", text_json(thread->name), "pid",
                                                 (int)process->pid, "rank", process->rank));
    }
    return threads;
}

/* The root has frame -1. */
static json_t *nodes_json(const struct prb_profile *profile)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < profile->node_count; i++)
        json_array_append_new(nodes,
                              json_pack("[I,I]", (json_int_t)profile->nodes[i].parent,
                                        i ? (json_int_t)profile->nodes[i].frame : (json_int_t)-1));
    return nodes;
}

static json_t *weights_json(const struct prb_profile *profile)
{
    json_t *weights = json_array();
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *one = profile->weights + i;
        json_array_append_new(weights, json_pack("[I,I,I]", (json_int_t)one->thread,
                                                 (json_int_t)one->node, (json_int_t)one->samples));
    }
    return weights;
}

bool prb_job_profile_json(const struct prb_job_sampling *sampling, FILE *out, struct prb_error *err)
{
    const struct prb_profile *profile = sampling->sum.profile;
    json_auto_t *told =
        json_pack("{s:f,s:I,s:I,s:f,s:o,s:o,s:o,s:o}", "seconds", profile->seconds, "samples",
                  (json_int_t)profile->samples, "dropped", (json_int_t)profile->dropped, "rate",
                  profile->rate, "frames", frames_json(profile), "nodes", nodes_json(profile),
                  "threads", threads_json(profile), "weights", weights_json(profile));
    PRB_AUTO_FREE char *text = told ? json_dumps(told, JSON_COMPACT) : NULL;
    if (!text)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    fprintf(out, "%.*s,\"coverage\": ", (int)strlen(text) - 1, text);
    prb_coverage_json(&sampling->coverage, out);
    fputs("}\n", out);
    return true;
}

/* ---- who is elsewhere ---- */

#define COMPARED 200 /* functions with the most time */
#define TOLD 3
#define SAMPLES_LEAST 20 /* of a rank, for a word on it */
#define FAR 0.2          /* of a rank's time, and three standard deviations of so few samples */

struct share {
    uint32_t function;
    int rank;
    double has, most; /* parts: of the rank's own time; of that of the rank in the middle */
    double far;       /* how much they must differ to be told, squared */
};

static uint32_t function_of(const struct prb_profile *profile,
                            const struct prb_profile_weight *weight)
{
    return profile->frames[profile->nodes[weight->node].frame].function;
}

static int by_size(const void *a, const void *b, void *sums)
{
    const uint64_t *own = sums;
    uint64_t x = own[*(const uint32_t *)a], y = own[*(const uint32_t *)b];
    return (x < y) - (x > y);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_distance(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    double p = fabs(x->has - x->most), q = fabs(y->has - y->most);
    return (p < q) - (p > q);
}

/* The functions with the most time of their own, at most COMPARED; returns how many. */
static size_t choose_functions(const struct prb_profile *profile, uint32_t *functions)
{
    PRB_AUTO_FREE uint64_t *own = calloc(profile->function_count + 1, sizeof *own);
    PRB_AUTO_FREE uint32_t *all = calloc(profile->function_count + 1, sizeof *all);
    size_t count = profile->function_count;
    if (!own || !all)
        return 0;
    for (size_t i = 0; i < profile->weight_count; i++)
        if (profile->weights[i].node)
            own[function_of(profile, &profile->weights[i])] += profile->weights[i].ns;
    for (uint32_t i = 0; i < count; i++)
        all[i] = i;
    qsort_r(all, count, sizeof *all, by_size, own);
    count = count < COMPARED ? count : COMPARED;
    memcpy(functions, all, count * sizeof *functions);
    return count;
}

/* parts: by chosen function and process, the part of the process's time; samples: of each process.
 * False: out of memory. */
static bool measure(const struct prb_profile *profile, const uint32_t *functions, size_t count,
                    double *parts, uint64_t *samples)
{
    PRB_AUTO_FREE uint32_t *places = calloc(profile->function_count + 1, sizeof *places);
    PRB_AUTO_FREE double *whole = calloc(profile->process_count + 1, sizeof *whole);
    if (!places || !whole)
        return false;
    for (size_t i = 0; i < count; i++)
        places[functions[i]] = (uint32_t)i + 1;
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = &profile->weights[i];
        uint32_t process = profile->threads[weight->thread].process;
        whole[process] += (double)weight->ns;
        samples[process] += weight->samples;
        uint32_t place = weight->node ? places[function_of(profile, weight)] : 0;
        if (place)
            parts[(place - 1) * profile->process_count + process] += (double)weight->ns;
    }
    for (size_t i = 0; i < count * profile->process_count; i++) {
        double of = whole[i % profile->process_count];
        parts[i] = of > 0 ? parts[i] / of : 0;
    }
    return true;
}

/* Of one function: the process that is the farthest from the one in the middle. */
static struct share farthest(const struct prb_profile *profile, uint32_t function,
                             const double *parts, const uint64_t *samples, double *room)
{
    size_t count = profile->process_count, far = 0;
    memcpy(room, parts, count * sizeof *room);
    qsort(room, count, sizeof *room, by_value);
    double middle = room[(count - 1) / 2];
    for (size_t i = 1; i < count; i++)
        if (fabs(parts[i] - middle) > fabs(parts[far] - middle))
            far = i;
    /* squared; of few samples nothing is said */
    double least = samples[far] < SAMPLES_LEAST ? 4 : 9 * 0.25 / (double)samples[far];
    return (struct share){function, profile->processes[far].rank, parts[far], middle,
                          least > FAR * FAR ? least : FAR * FAR};
}

void prb_job_note_uneven(const struct prb_profile *profile)
{
    uint32_t functions[COMPARED];
    struct share shares[COMPARED];
    size_t processes = profile->process_count, count = choose_functions(profile, functions);
    PRB_AUTO_FREE double *parts = calloc(count * processes + 1, sizeof *parts);
    PRB_AUTO_FREE double *room = calloc(processes + 1, sizeof *room);
    PRB_AUTO_FREE uint64_t *samples = calloc(processes + 1, sizeof *samples);
    size_t told = 0;
    if (processes < 3 || !parts || !room || !samples ||
        !measure(profile, functions, count, parts, samples))
        return; /* of two, neither is the odd one */
    for (size_t i = 0; i < count; i++)
        shares[i] = farthest(profile, functions[i], parts + i * processes, samples, room);
    qsort(shares, count, sizeof *shares, by_distance);
    for (size_t i = 0; i < count && told < TOLD; i++) {
        double distance = shares[i].has - shares[i].most;
        if (distance * distance < shares[i].far)
            continue;
        told++;
        const struct prb_profile_function *function = &profile->functions[shares[i].function];
        char text[300];
        snprintf(text, sizeof text,
                 "rank %d is in %.120s (%.100s) for %.0f %% of its time, most for %.0f %%",
                 shares[i].rank, function->qualname ? function->qualname : "?",
                 function->short_filename ? function->short_filename : "?", 100 * shares[i].has,
                 100 * shares[i].most);
        prb_out_note(text);
    }
}
