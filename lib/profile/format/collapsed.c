/* Collapsed stacks: "outermost;…;innermost count" a line, for flamegraph.pl, inferno and the like.
 */
#include <string.h>

#include "base/utf8.h"
#include "profile/format/format.h"

/* A label without ";" and control characters: the line may go to a terminal. */
static void put_label(FILE *out, const char *label)
{
    for (size_t left = strlen(label), n; left; label += n, left -= n) {
        n = prb_utf8_length(label, left);
        if (*label == ';')
            putc(':', out);
        else if (n && prb_utf8_is_plain(label, n))
            fwrite(label, 1, n, out);
        else
            putc(strchr("\t\r\n", *label) ? ' ' : '?', out);
        n += !n;
    }
}

static void put_path(FILE *out, const struct prb_flame *flame, uint32_t node, uint32_t *path)
{
    size_t depth = 0;
    for (; node; node = flame->nodes[node].parent)
        path[depth++] = node;
    while (depth-- > 0) {
        put_label(out, flame->labels[flame->nodes[path[depth]].label]);
        if (depth)
            putc(';', out);
    }
}

static bool write_collapsed(const struct prb_profile *profile,
                            const struct prb_profile_style *style, FILE *out, struct prb_error *err)
{
    PRB_AUTO(prb_flame) struct prb_flame flame = {0};
    PRB_AUTO_FREE uint32_t *path = NULL;
    if (!prb_flame_build(&flame, profile, style, err))
        return false;
    if (!(path = calloc(flame.node_count + 1, sizeof *path)))
        return prb_nomem(err);
    for (uint32_t i = 1; i < flame.node_count; i++) {
        if (!flame.nodes[i].self)
            continue;
        put_path(out, &flame, i, path);
        fprintf(out, " %llu\n", (unsigned long long)flame.nodes[i].self);
    }
    return true;
}

const struct prb_format prb_format_collapsed = {
    .description = {"collapsed", "raw folded", "a line for each stack, with its count",
                    ".txt .collapsed .folded .raw", false},
    .write = write_collapsed,
};
