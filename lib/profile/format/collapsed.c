/* Collapsed stacks: "outermost;…;innermost count" a line, for flamegraph.pl, inferno and the like.
 */
#include "profile/format/format.h"

static void put_path(struct prb_buf *out, const struct prb_flame *flame, uint32_t node,
                     uint32_t *path)
{
    size_t depth = 0;
    for (; node; node = flame->nodes[node].parent)
        path[depth++] = node;
    while (depth-- > 0) {
        prb_label_folded(out, flame->labels[flame->nodes[path[depth]].label]);
        prb_buf_adds(out, depth ? ";" : "");
    }
}

static bool write_collapsed(const struct prb_profile *profile,
                            const struct prb_profile_style *style, FILE *out, struct prb_error *err)
{
    PRB_AUTO(prb_flame) struct prb_flame flame = {0};
    PRB_AUTO_FREE uint32_t *path = NULL;
    PRB_AUTO(prb_buf) struct prb_buf line = {0};
    if (!prb_flame_build(&flame, profile, style, err))
        return false;
    if (!(path = calloc(flame.node_count + 1, sizeof *path)))
        return prb_nomem(err);
    for (uint32_t i = 1; i < flame.node_count; i++) {
        if (!flame.nodes[i].self)
            continue;
        line.len = 0;
        put_path(&line, &flame, i, path);
        prb_buf_addf(&line, " %llu\n", (unsigned long long)flame.nodes[i].self);
        if (!prb_buf_ok(&line))
            return prb_nomem(err);
        fwrite(line.data, 1, line.len, out);
    }
    return true;
}

const struct prb_format prb_format_collapsed = {
    .description = {"collapsed", "raw folded", "a line for each stack, with its count",
                    ".txt .collapsed .folded .raw", false},
    .write = write_collapsed,
};
