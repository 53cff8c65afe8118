/*
 * GET /api/v1/p/{}/stacks.  Lean by default: each frame and each stack once, threads by index; what
 * `backtrace --json` prints by format=pyspy, what it prints for people by format=text.
 */
#include <string.h>

#include "base/buf.h"
#include "base/index.h"
#include "format/json.h"
#include "serve/live/watch.h"
#include "serve/routes/by_command.h"
#include "serve/work/stacks_text.h"

/* ---- lean ---- */

struct lean {
    json_t *frames, *stacks, *threads;
    json_t *frame_index, *stack_index; /* objects: text to index */
};

/* The index of a value in an array, added when its key is new. */
static json_int_t index_of(json_t *array, json_t *index, const char *key, json_t *value)
{
    json_t *known = json_object_get(index, key);
    if (known) {
        json_decref(value);
        return json_integer_value(known);
    }
    json_int_t at = (json_int_t)json_array_size(array);
    json_array_append_new(array, value);
    json_object_set_new_nocheck(index, key, json_integer(at));
    return at;
}

/* Not the user's own code: of Python itself, of an installed package, or of no file. */
static bool is_library(const char *file)
{
    return file && (*file == '<' || strstr(file, "/site-packages/") ||
                    strstr(file, "/dist-packages/") || strstr(file, "/lib/python"));
}

static json_int_t add_frame(struct lean *lean, const struct prb_frame *frame)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    const char *file = frame->short_filename ? frame->short_filename : frame->filename;
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%d:%d:%s\n%s\n%s", (int)frame->kind, frame->line,
                 frame->qualname ? frame->qualname : "", file ? file : "",
                 frame->module ? frame->module : "");
    json_t *line = frame->line > 0 ? json_integer(frame->line) : json_null();
    bool whole = file == frame->filename || !frame->filename || !strcmp(file, frame->filename);
    return index_of(lean->frames, lean->frame_index, prb_buf_ok(&key) ? key.data : "",
                    json_pack("{s:o,s:o,s:o*,s:o,s:o,s:s,s:b}", "name",
                              prb_json_text(frame->qualname ? frame->qualname : frame->name),
                              "file", prb_json_text(file), "path",
                              whole ? NULL : prb_json_text(frame->filename), "line", line, "module",
                              prb_json_text(frame->module), "kind", kinds[frame->kind], "library",
                              is_library(frame->filename)));
}

static json_int_t add_stack(struct lean *lean, const struct prb_thread *thread)
{
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    json_t *frames = json_array();
    for (size_t i = 0; i < thread->frame_count; i++) {
        json_int_t at = add_frame(lean, thread->frames + i);
        json_array_append_new(frames, json_integer(at));
        prb_buf_addf(&key, "%lld ", (long long)at);
    }
    return index_of(lean->stacks, lean->stack_index, key.data ? key.data : "", frames);
}

static json_t *thread_json(struct lean *lean, const struct prb_thread *thread, double since)
{
    static const char *const gils[] = {NULL, "waiting", "holding"};
    char state[2] = {thread->os_state, '\0'};
    return json_pack("{s:i,s:o,s:o,s:I,s:b,s:o,s:b,s:o}", "id", (int)thread->os_thread_id, "name",
                     prb_json_text(thread->name), "state",
                     thread->os_state ? json_string(state) : json_null(), "stack",
                     add_stack(lean, thread), "active", thread->active, "gil",
                     prb_json_text(gils[thread->gil]), "unstable", thread->unstable, "since",
                     since < 0 ? json_null() : json_real(since));
}

static uint64_t hash_json(uint64_t hash, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    hash = prb_hash_words(hash, text ? prb_hash_bytes(text, strlen(text)) : 0);
    free(text);
    return hash;
}

/* Of the stacks, without times. */
static void set_etag(struct prb_answer *answer, const struct lean *lean,
                     const struct prb_stacks *stacks)
{
    uint64_t hash = hash_json(hash_json(1, lean->frames), lean->stacks);
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *thread = stacks->threads + i;
        const json_t *stack = json_object_get(json_array_get(lean->threads, i), "stack");
        hash = prb_hash_words(hash, (uint64_t)thread->os_thread_id);
        hash = prb_hash_words(hash, (uint64_t)json_integer_value(stack));
        hash = prb_hash_words(hash, (uint64_t)thread->os_state << 8 | (unsigned)thread->gil << 1 |
                                        thread->active);
    }
    snprintf(answer->etag, sizeof answer->etag, "\"%016llx\"", (unsigned long long)hash);
}

static json_t *lean_json(const struct prb_serve_job *job, const struct prb_stacks *stacks)
{
    PRB_AUTO_FREE double *since = calloc(stacks->thread_count + 1, sizeof *since);
    if (!since)
        return NULL;
    prb_watch_since(job->serve->watch, stacks->target.pid, prb_serve_started(stacks->target.pid),
                    stacks, since);
    struct lean lean = {json_array(), json_array(), json_array(), json_object(), json_object()};
    for (size_t i = 0; i < stacks->thread_count; i++)
        json_array_append_new(lean.threads, thread_json(&lean, stacks->threads + i, since[i]));
    json_decref(lean.frame_index);
    json_decref(lean.stack_index);
    set_etag(job->answer, &lean, stacks);
    return json_pack("{s:f,s:o,s:o,s:o,s:o}", "time", stacks->time, "frames", lean.frames, "stacks",
                     lean.stacks, "threads", lean.threads, "warning",
                     prb_json_text(stacks->warning));
}

/* ---- the route ---- */

static bool take(struct prb_serve_job *job, struct prb_serve_target *held,
                 const struct prb_stack_options *options, struct prb_error *err)
{
    struct prb_stacks *stacks = prb_stacks_take(prb_serve_target_open(held), options, err);
    if (!stacks)
        return false;
    bool ok;
    if (strcmp(job->format, "json") == 0) {
        ok = prb_answer_json(job->answer, lean_json(job, stacks), err);
    } else {
        PRB_AUTO_FREE char *json = prb_stacks_json(stacks, err);
        ok = json != NULL;
        job->answer->type = "application/json";
        if (json)
            prb_buf_adds(&job->answer->body, json);
    }
    prb_stacks_free(stacks);
    return ok;
}

static bool print(struct prb_serve_job *job, struct prb_serve_target *held, bool native,
                  bool locals, struct prb_error *err)
{
    const char *words[8] = {"-t", prb_serve_target_name(held), "backtrace"};
    size_t count = 3;
    job->answer->type = "text/plain; charset=utf-8";
    if (prb_stacks_text(held, native, locals, false, &job->answer->body))
        return true;
    if (native)
        words[count++] = "--native";
    if (locals)
        words[count++] = "--locals";
    return prb_answer_by_command(job, words, "text/plain; charset=utf-8", err);
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    struct prb_stack_options options = {.hide_secrets = true};
    char key[64];
    if (!prb_question_flag(job->question, "native", &options.native, err) ||
        !prb_question_flag(job->question, "locals", &options.locals, err))
        return false;
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_serve_target_hold(job, err);
    if (!held)
        return false;
    snprintf(key, sizeof key, "stacks %s %d %d", job->format, options.native, options.locals);
    if (prb_serve_target_shared(held, key, job->asked, job->answer))
        return true;
    bool ok = strcmp(job->format, "text") == 0
                  ? print(job, held, options.native, options.locals, err)
                  : take(job, held, &options, err);
    if (ok)
        prb_serve_target_share(held, key, job->answer);
    return ok;
}

const struct prb_route prb_route_stacks = {
    .methods = PRB_GET,
    .path = "/api/v1/p/{}/stacks",
    .summary = "stacks of all threads",
    .grant = PRB_MAY_LOOK,
    .formats = "json pyspy text",
    .parameters = "native locals wait every for",
    .seconds = 10,
    .answer = answer,
};
