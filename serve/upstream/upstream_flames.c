/* GET /apis/pprofextension/flamegraph/json: the same as frames with their places. */
#include <stdlib.h>
#include <string.h>

#include "serve/upstream/flames.h"

#include "format/json.h"

#define WIDTH 1400.0
#define HEIGHT 32.0
#define NODES_MAX 200000

struct node {
    const char *name; /* len bytes of a line */
    size_t len;
    size_t parent, child, next; /* the first child, the next of the same parent; 0: none */
    long long value;
    double x, used; /* used: the width that its children have so far */
    int depth;
};

struct tree {
    struct node *nodes; /* the first one is the root; parents come before their children */
    size_t count, cap;
};

/* 0: no room. */
static size_t child_of(struct tree *tree, size_t parent, const char *name, size_t len)
{
    size_t at = tree->nodes[parent].child;
    for (; at; at = tree->nodes[at].next)
        if (tree->nodes[at].len == len && memcmp(tree->nodes[at].name, name, len) == 0)
            return at;
    if (tree->count >= NODES_MAX || !PRB_GROW(tree->nodes, tree->count, tree->cap))
        return 0;
    at = tree->count++;
    tree->nodes[at] = (struct node){.name = name,
                                    .len = len,
                                    .parent = parent,
                                    .next = tree->nodes[parent].child,
                                    .depth = tree->nodes[parent].depth + 1};
    tree->nodes[parent].child = at;
    return at;
}

/* "a;b;c 12" */
static void add_line(struct tree *tree, const char *line)
{
    const char *space = strrchr(line, ' ');
    long long value = space ? strtoll(space, NULL, 10) : 0;
    if (value <= 0)
        return;
    size_t at = 0;
    tree->nodes[0].value += value;
    for (const char *name = line; name < space;) {
        const char *end = memchr(name, ';', (size_t)(space - name));
        size_t len = (size_t)((end ? end : space) - name);
        at = child_of(tree, at, name, len);
        if (!at)
            return;
        tree->nodes[at].value += value;
        name += len + 1;
    }
}

static json_t *frames_of(struct tree *tree)
{
    json_t *frames = json_array();
    double unit = WIDTH / (double)tree->nodes[0].value;
    for (size_t i = 0; i < tree->count; i++) {
        struct node *node = tree->nodes + i, *parent = tree->nodes + node->parent;
        double width = (double)node->value * unit;
        if (i) {
            node->x = parent->x + parent->used;
            parent->used += width;
        }
        PRB_AUTO_FREE char *name = strndup(node->name, node->len);
        json_array_append_new(
            frames, json_pack("{s:I,s:o,s:o,s:I,s:f,s:f,s:f,s:i}", "id", (json_int_t)i, "parent",
                              i ? json_integer((json_int_t)node->parent) : json_null(), "name",
                              prb_json_text(name), "value", (json_int_t)node->value, "x", node->x,
                              "y", node->depth * HEIGHT, "w", width, "d", node->depth));
    }
    return frames;
}

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    json_auto_t *lines = prb_upstream_folded(job, err);
    struct tree tree = {0};
    if (!lines)
        return false;
    if (!PRB_GROW(tree.nodes, tree.count, tree.cap))
        return prb_nomem(err);
    tree.nodes[tree.count++] = (struct node){.name = "all", .len = 3};
    for (size_t i = 0; i < json_array_size(lines); i++)
        add_line(&tree, json_string_value(json_array_get(lines, i)));
    long long total = tree.nodes[0].value;
    json_t *told = json_pack(
        "{s:s,s:s,s:s,s:s,s:I,s:f,s:f,s:o,s:i,s:o}", "profile", "cpu-stack", "title", "CPU",
        "subtitle", "samples by stack", "countName", "samples", "total", (json_int_t)total, "width",
        WIDTH, "frameHeight", HEIGHT, "frames", total ? frames_of(&tree) : json_array(), "dropped",
        0, "emptyMessage", total ? json_null() : json_string("no thread was running"));
    free(tree.nodes);
    return prb_answer_json(job->answer, told, err);
}

const struct prb_route prb_route_upstream_flames = {
    .methods = PRB_GET,
    .path = "/apis/pprofextension/flamegraph/json",
    .summary = "the flame graph as frames with places",
    .grant = PRB_MAY_LOOK,
    .formats = "json",
    .parameters = "pid seconds",
    .slow = true,
    .upstream = true,
    .seconds = 10,
    .answer = answer,
};
