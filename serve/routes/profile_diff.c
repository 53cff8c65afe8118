/* GET /api/v1/profiles/{}/diff/{}: one tree of both, with the samples of each. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/json.h"
#include "serve/routes/profile_file.h"

#define NODES_MAX 200000u

struct tree {
    json_t *frames, *nodes;
    json_t *frame_index, *node_index; /* objects: text to index */
    json_int_t *weights[2];           /* before, after: by node */
    size_t cap;
};

static json_int_t frame_of(struct tree *tree, const struct prb_profile *profile, uint32_t at)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    const struct prb_profile_frame *frame = profile->frames + at;
    const struct prb_profile_function *function = profile->functions + frame->function;
    const char *name = function->qualname ? function->qualname : function->name;
    const char *file = function->short_filename ? function->short_filename : function->filename;
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%d %d %s\n%s", (int)function->kind, frame->line, name ? name : "",
                 file ? file : "");
    const char *text = prb_buf_ok(&key) ? key.data : "";
    const json_t *known = json_object_get(tree->frame_index, text);
    if (known)
        return json_integer_value(known);
    json_int_t index = (json_int_t)json_array_size(tree->frames);
    json_array_append_new(tree->frames,
                          json_pack("{s:o,s:o,s:o,s:s}", "name", prb_json_text(name), "file",
                                    prb_json_text(file), "line",
                                    frame->line > 0 ? json_integer(frame->line) : json_null(),
                                    "kind", kinds[function->kind]));
    json_object_set_new_nocheck(tree->frame_index, text, json_integer(index));
    return index;
}

static json_int_t node_of(struct tree *tree, json_int_t parent, json_int_t frame)
{
    char key[48];
    snprintf(key, sizeof key, "%lld %lld", (long long)parent, (long long)frame);
    const json_t *known = json_object_get(tree->node_index, key);
    if (known)
        return json_integer_value(known);
    json_int_t index = (json_int_t)json_array_size(tree->nodes);
    json_array_append_new(tree->nodes, json_pack("[I,I]", parent, frame));
    json_object_set_new(tree->node_index, key, json_integer(index));
    return index;
}

static bool grow(struct tree *tree)
{
    size_t count = json_array_size(tree->nodes), cap = count * 2 + 64;
    if (count <= tree->cap)
        return true;
    for (int i = 0; i < 2; i++) {
        json_int_t *more = realloc(tree->weights[i], cap * sizeof *more);
        if (!more)
            return false;
        memset(more + tree->cap, 0, (cap - tree->cap) * sizeof *more);
        tree->weights[i] = more;
    }
    tree->cap = cap;
    return true;
}

/* Each stack of a profile in the tree, with its samples.  False: out of memory. */
static bool add(struct tree *tree, const struct prb_profile *profile, int which, json_int_t *total)
{
    size_t count = profile->node_count < NODES_MAX ? profile->node_count : NODES_MAX;
    PRB_AUTO_FREE json_int_t *index = calloc(count + 1, sizeof *index);
    if (!index)
        return false;
    for (size_t i = 1; i < count; i++) /* 0 is the root of both */
        index[i] = node_of(tree, index[profile->nodes[i].parent],
                           frame_of(tree, profile, profile->nodes[i].frame));
    if (!grow(tree))
        return false;
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *weight = profile->weights + i;
        if (weight->node < count)
            tree->weights[which][index[weight->node]] += (json_int_t)weight->samples;
        *total += (json_int_t)weight->samples;
    }
    return true;
}

static json_t *weights_json(const struct tree *tree, int which)
{
    json_t *array = json_array();
    for (size_t i = 0; i < json_array_size(tree->nodes); i++)
        json_array_append_new(array, json_integer(tree->weights[which][i]));
    return array;
}

static bool as_json(struct prb_serve_job *job, struct tree *tree, const json_int_t totals[2],
                    struct prb_error *err)
{
    if (!grow(tree))
        return prb_nomem(err);
    return prb_answer_json(job->answer,
                           json_pack("{s:O,s:O,s:o,s:o,s:I,s:I}", "frames", tree->frames, "nodes",
                                     tree->nodes, "before", weights_json(tree, 0), "after",
                                     weights_json(tree, 1), "before_total", totals[0],
                                     "after_total", totals[1]),
                           err);
}

/* One is held at a time: two who hold one each and want the other's would wait for ever. */
static bool compare(struct prb_serve_job *job, struct tree *tree, struct prb_error *err)
{
    json_int_t totals[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        struct prb_run *run = prb_run_hold(job->serve->runs, job->part[i], err);
        if (!run)
            return false;
        bool ok = add(tree, prb_run_profile(run), i, totals + i);
        prb_run_release(run);
        if (!ok)
            return prb_nomem(err);
    }
    return as_json(job, tree, totals, err);
}

static bool draw(struct prb_serve_job *job, struct prb_error *err)
{
    int second = strcmp(job->part[0], job->part[1]); /* in one order, for who asks the other way */
    if (!second)
        return prb_fail(err, PRB_USAGE, "two different profiles can be compared");
    struct prb_run *held[2] = {NULL, NULL};
    int first = second < 0 ? 0 : 1;
    bool ok = (held[first] = prb_run_hold(job->serve->runs, job->part[first], err)) &&
              (held[!first] = prb_run_hold(job->serve->runs, job->part[!first], err)) &&
              prb_answer_profile(job, prb_run_profile(held[1]), prb_run_profile(held[0]), err);
    for (int i = 0; i < 2; i++)
        if (held[i])
            prb_run_release(held[i]);
    return ok;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    if (strcmp(job->format, "json") != 0)
        return draw(job, err);
    struct tree tree = {json_array(), json_array(), json_object(), json_object(), {NULL, NULL}, 0};
    json_array_append_new(tree.nodes, json_pack("[i,i]", 0, -1));
    bool ok = compare(job, &tree, err);
    json_decref(tree.frames);
    json_decref(tree.nodes);
    json_decref(tree.frame_index);
    json_decref(tree.node_index);
    free(tree.weights[0]);
    free(tree.weights[1]);
    return ok;
}

const struct prb_route prb_route_profile_diff = {
    .methods = PRB_GET,
    .path = "/api/v1/profiles/{}/diff/{}",
    .summary = "two profiles in one tree, before and after",
    .grant = PRB_MAY_LOOK,
    .formats = "json flamegraph",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
