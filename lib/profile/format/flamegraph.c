/*
 * A flame graph: one SVG that any viewer shows; in a browser it zooms, searches and filters.
 * flamegraph.js draws from the JSON in it.
 */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "flamegraph_js.h"
#include "profile/format/flamegraph.h"

#define WIDTH 1200.0
#define ROW 17
#define TOP 64
#define BELOW 40 /* px: the counts, two lines at most */
#define LINE_LETTERS 175
#define LETTERS_HIGH 14
#define LETTER 6.6     /* px, a character of the 11 px monospace font */
#define LEAST 0.3      /* px: narrower frames are not drawn */
#define DEPTH_MAX 4000 /* rows of the first drawing */

struct drawing {
    FILE *out;
    const struct prb_flame *flame;
    const uint64_t *base; /* totals of another profile, by node; or NULL */
    uint64_t base_whole;
    uint32_t *order; /* nodes by parent, then label */
    uint32_t *first; /* by node: where its children begin in order */
    unsigned deepest;
};

/* ---- the first drawing ---- */

static int by_parent(const void *a, const void *b, void *flame_)
{
    const struct prb_flame *flame = flame_;
    const struct prb_flame_node *x = &flame->nodes[*(const uint32_t *)a],
                                *y = &flame->nodes[*(const uint32_t *)b];
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return strcmp(flame->labels[x->label], flame->labels[y->label]);
}

static bool sort_nodes(struct drawing *d, struct prb_error *err)
{
    size_t count = d->flame->node_count;
    d->order = calloc(count + 1, sizeof *d->order);
    d->first = calloc(count + 2, sizeof *d->first);
    if (!d->order || !d->first)
        return prb_nomem(err);
    for (uint32_t i = 1; i < count; i++)
        d->order[i - 1] = i;
    if (count)
        qsort_r(d->order, count - 1, sizeof *d->order, by_parent, (void *)d->flame);
    size_t at = 0;
    for (uint32_t node = 0; node <= count; node++) {
        while (at + 1 < count && d->flame->nodes[d->order[at]].parent < node)
            at++;
        d->first[node] = (uint32_t)at;
    }
    return true;
}

static void colour(const struct drawing *d, uint32_t node, const char *label, char out[32])
{
    if (d->base) {
        double whole = (double)d->flame->nodes[0].total, before = (double)d->base_whole;
        double change = (whole > 0 ? (double)d->flame->nodes[node].total / whole : 0) -
                        (before > 0 ? (double)d->base[node] / before : 0);
        int light = 255 - (int)(135 * prb_lesser(1, fabs(change) * 8 + (change != 0 ? 0.08 : 0)));
        snprintf(out, 32,
                 change > 0   ? "rgb(255,%d,%d)"
                 : change < 0 ? "rgb(%d,%d,255)"
                              : "rgb(240,240,240)",
                 light, light);
        return;
    }
    uint32_t hash = (uint32_t)prb_hash_bytes(label, strcspn(label, ":"));
    bool python = strstr(label, ".py:") || strstr(label, ".py)") || strstr(label, "(<");
    unsigned hue = python ? 8 + hash % 45 : 185 + hash % 55;
    snprintf(out, 32, "hsl(%u,%u%%,%u%%)", hue, 65 + (hash >> 8) % 25, 62 + (hash >> 16) % 12);
}

static void put_box(const struct drawing *d, uint32_t node, const char *label, double x,
                    double width, unsigned depth)
{
    char fill[32];
    double whole = (double)d->flame->nodes[0].total;
    colour(d, node, label, fill);
    fputs("<g class=\"frame\"><title>", d->out);
    prb_put_xml(d->out, label);
    fprintf(d->out, ": %.2f %%</title>",
            whole > 0 ? 100 * (double)d->flame->nodes[node].total / whole : 0);
    fprintf(d->out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1\" fill=\"%s\"/>",
            x, TOP + depth * ROW, prb_greater(width - 0.4, LEAST), ROW - 1, fill);
    size_t fits = width > 4 ? (size_t)((width - 4) / LETTER) : 0;
    if (fits > 2) {
        PRB_AUTO_FREE char *text = strndup(label, fits);
        size_t len = text ? strlen(text) : 0;
        while (len && ((unsigned char)label[len] & 0xc0) == 0x80)
            len--; /* not within a character */
        if (text)
            text[len] = '\0';
        fprintf(d->out, "<text x=\"%.2f\" y=\"%u\">", x + 3, TOP + depth * ROW + 12);
        prb_put_xml(d->out, text ? text : "");
        fputs("</text>", d->out);
    }
    fputs("</g>\n", d->out);
}

struct place {
    uint32_t node;
    unsigned depth;
    double x, width;
};

/* Without recursion: stacks can be 100,000 deep. */
static bool put_boxes(struct drawing *d, struct prb_error *err)
{
    const struct prb_flame *flame = d->flame;
    size_t count = 0, cap = 0;
    PRB_AUTO_FREE struct place *todo = NULL;
    if (!PRB_GROW(todo, count, cap))
        return prb_nomem(err);
    todo[count++] = (struct place){0, 0, 0, WIDTH};
    while (count) {
        struct place at = todo[--count];
        if (at.depth > d->deepest)
            d->deepest = at.depth;
        put_box(d, at.node, at.node ? flame->labels[flame->nodes[at.node].label] : "all", at.x,
                at.width, at.depth);
        double x = at.x, whole = (double)flame->nodes[at.node].total;
        for (uint32_t i = d->first[at.node]; i < d->first[at.node + 1]; i++) {
            uint32_t child = d->order[i];
            double width = whole > 0 ? at.width * (double)flame->nodes[child].total / whole : 0;
            if (width >= LEAST && at.depth < DEPTH_MAX) {
                if (!PRB_GROW(todo, count, cap))
                    return prb_nomem(err);
                todo[count++] = (struct place){child, at.depth + 1, x, width};
            }
            x += width;
        }
    }
    return true;
}

/* ---- the data ---- */

static void put_numbers(FILE *out, const char *name, const struct prb_flame *flame, bool parents)
{
    fprintf(out, ",\n\"%s\":[0", name);
    for (size_t i = 1; i < flame->node_count; i++)
        fprintf(out, ",%u", parents ? flame->nodes[i].parent : flame->nodes[i].label);
    putc(']', out);
}

static void put_threads(FILE *out, const struct prb_profile *profile, const bool *used,
                        const struct prb_profile_style *style)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    fputs(",\n\"processes\":[", out);
    for (size_t i = 0; i < profile->process_count; i++) {
        text.len = 0;
        prb_label_process(&text, &profile->processes[i], style);
        putc(i ? ',' : '\n', out);
        prb_put_json(out, text.data ? text.data : "");
    }
    fputs("],\n\"threads\":[", out);
    for (size_t i = 0; i < profile->thread_count; i++) {
        text.len = 0;
        prb_label_thread(&text, &profile->threads[i]);
        fprintf(out,
                i ? ",\n{\"process\":%u,\"used\":%s,\"name\":"
                  : "\n{\"process\":%u,\"used\":%s,\"name\":",
                profile->threads[i].process, used[i] ? "true" : "false");
        prb_put_json(out, text.data ? text.data : "");
        putc('}', out);
    }
    putc(']', out);
}

static bool put_data(FILE *out, const struct prb_flame_page *page, struct prb_error *err)
{
    const struct prb_flame *flame = page->flame;
    PRB_AUTO_FREE bool *used = calloc(page->profile->thread_count + 1, sizeof *used);
    if (!used)
        return prb_nomem(err);
    for (size_t i = 0; i < flame->weight_count; i++)
        used[flame->weights[i].thread] = true;
    fputs("<script type=\"application/json\" id=\"data\"><![CDATA[{\"unit\":", out);
    prb_put_json(out, prb_value_unit(page->profile));
    fprintf(out, ",\"inverted\":%s,\"counts\":", page->style->inverted ? "true" : "false");
    prb_put_json(out, page->counts);
    fputs(",\n\"labels\":[", out);
    for (size_t i = 0; i < flame->label_count; i++) {
        putc(i ? ',' : ' ', out);
        prb_put_json(out, flame->labels[i]);
    }
    putc(']', out);
    put_numbers(out, "parents", flame, true);
    put_numbers(out, "of", flame, false);
    put_threads(out, page->profile, used, page->style);
    fputs(",\n\"weights\":[", out);
    for (size_t i = 0; i < flame->weight_count; i++)
        fprintf(out, i ? ",%u,%u,%llu" : "%u,%u,%llu", flame->weights[i].thread,
                flame->weights[i].node, (unsigned long long)flame->weights[i].value);
    putc(']', out);
    if (page->base) {
        fputs(",\n\"base\":[", out);
        for (size_t i = 0; i < flame->weight_count; i++)
            fprintf(out, i ? ",%llu" : "%llu", (unsigned long long)page->base[i]);
        putc(']', out);
    }
    fputs("}]]></script>\n", out);
    return true;
}

/* ---- the page ---- */

/* In two lines when one is too short; flamegraph.js does the same. */
static void put_status(FILE *out, const char *text)
{
    size_t len = strlen(text), cut = 0;
    for (size_t i = 0; len > LINE_LETTERS && i < LINE_LETTERS; i++)
        if (text[i] == ' ' && i && (text[i - 1] == ';' || text[i - 1] == ','))
            cut = i + 1;
    PRB_AUTO_FREE char *first = strndup(text, cut);
    if (cut && first) {
        prb_put_xml(out, first);
        fprintf(out, "<tspan x=\"8\" dy=\"%d\">", LETTERS_HIGH);
    }
    prb_put_xml(out, first ? text + cut : text);
    if (cut && first)
        fputs("</tspan>", out);
}

static void put_head(FILE *out, const struct prb_flame_page *page, unsigned deepest)
{
    unsigned height = TOP + (deepest + 1) * ROW + BELOW;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" height=\"%u\" "
            "viewBox=\"0 0 %.0f %u\" font-family=\"monospace\" font-size=\"11\">\n"
            "<title>",
            height, WIDTH, height);
    prb_put_xml(out, page->title);
    fputs("</title>\n<style>.frame{cursor:pointer}.frame:hover rect{stroke:#333;stroke-width:.6}"
          ".faded{opacity:.55}text{fill:#111;pointer-events:none}</style>\n"
          "<rect width=\"100%%\" height=\"100%%\" fill=\"#fbfaf7\"/>\n"
          "<text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">",
          out);
    prb_put_xml(out, page->title);
    fputs("</text>\n<foreignObject id=\"controls\" x=\"6\" y=\"28\" width=\"1188\" "
          "height=\"32\"><div "
          "xmlns=\"http://www.w3.org/1999/xhtml\" style=\"font:12px sans-serif\">"
          "<input id=\"search\" placeholder=\"search (regular expression)\" size=\"32\"/> "
          "<select id=\"only\" style=\"max-width:420px\"></select> "
          "<label><input type=\"checkbox\" id=\"inverted\"/>innermost first</label> "
          "<span style=\"color:#777\">click: zoom, Esc: back</span></div></foreignObject>\n",
          out);
    fprintf(out, "<text id=\"status\" x=\"8\" y=\"%u\">", height - BELOW + LETTERS_HIGH);
    put_status(out, page->counts);
    fputs("</text>\n<g id=\"stage\">\n", out);
}

/* The nodes' totals in the other profile. */
static bool sum_base(const struct prb_flame_page *page, uint64_t *totals)
{
    for (size_t i = 0; i < page->flame->weight_count; i++)
        totals[page->flame->weights[i].node] += page->base[i];
    for (size_t i = page->flame->node_count; i-- > 1;)
        totals[page->flame->nodes[i].parent] += totals[i];
    return true;
}

bool prb_flame_page_write(FILE *out, const struct prb_flame_page *page, struct prb_error *err)
{
    size_t size = 0;
    PRB_AUTO_FREE char *boxes = NULL;
    PRB_AUTO_FREE uint64_t *totals = calloc(page->flame->node_count + 1, sizeof *totals);
    struct drawing d = {.flame = page->flame, .out = open_memstream(&boxes, &size)};
    if (!totals || !d.out)
        return prb_nomem(err);
    if (page->base && sum_base(page, totals)) {
        d.base = totals;
        d.base_whole = totals[0];
    }
    bool ok = !page->flame->node_count || (sort_nodes(&d, err) && put_boxes(&d, err));
    free(d.order);
    free(d.first);
    if (fclose(d.out) != 0)
        ok = prb_nomem(err);
    if (!ok)
        return false;
    put_head(out, page, d.deepest);
    if (boxes)
        fwrite(boxes, 1, size, out);
    fputs("</g>\n", out);
    if (!put_data(out, page, err))
        return false;
    fputs("<script><![CDATA[\n", out);
    fputs(prb_flamegraph_js, out);
    fputs("]]></script>\n</svg>\n", out);
    return true;
}

/* Add another flame's nodes and a weight for each of its weights; by weight, the other's value. */
static uint64_t *add_base(struct prb_flame *flame, const struct prb_flame *other,
                          struct prb_error *err)
{
    size_t own = flame->weight_count;
    PRB_AUTO_FREE uint64_t *base = calloc(own + other->weight_count + 1, sizeof *base);
    PRB_AUTO_FREE uint32_t *here = calloc(other->node_count + 1, sizeof *here);
    if (!base || !here)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 1; i < other->node_count; i++)
        here[i] = prb_flame_child(flame, here[other->nodes[i].parent],
                                  prb_flame_label(flame, other->labels[other->nodes[i].label]));
    for (size_t i = 0; i < other->weight_count; i++) {
        if (!PRB_GROW(flame->weights, flame->weight_count, flame->weight_cap))
            return PRB_NULL(prb_nomem(err));
        base[flame->weight_count] = other->weights[i].value;
        flame->weights[flame->weight_count++] =
            (struct prb_flame_weight){0, here[other->weights[i].node], 0};
    }
    if (flame->failed)
        return PRB_NULL(prb_nomem(err));
    prb_flame_sum(flame);
    return PRB_STEAL(base);
}

static void put_both_counts(struct prb_buf *out, const struct prb_profile *before,
                            const struct prb_profile *after)
{
    const struct {
        const char *name;
        const struct prb_profile *profile;
    } sides[] = {{"before", before}, {"after", after}};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        const struct prb_profile *profile = sides[i].profile;
        uint64_t samples = 0;
        for (size_t k = 0; k < profile->weight_count; k++)
            samples += profile->weights[k].samples;
        prb_buf_addf(out, "%s%s: %llu samples shown", i ? "; " : "", sides[i].name,
                     (unsigned long long)samples);
        if (profile->seconds > 0) /* stacks alone do not have it */
            prb_buf_addf(out, ", %.1f s, %llu dropped", profile->seconds,
                         (unsigned long long)profile->dropped);
    }
}

static bool write_flamegraph(const struct prb_profile *profile,
                             const struct prb_profile_style *style, FILE *out,
                             struct prb_error *err)
{
    PRB_AUTO(prb_flame) struct prb_flame flame = {0};
    PRB_AUTO(prb_buf) struct prb_buf title = {0}, counts = {0};
    prb_label_title(&title, profile, style);
    if (style->before)
        put_both_counts(&counts, style->before, profile);
    else
        prb_label_counts(&counts, profile);
    if (!prb_flame_build(&flame, profile, style, err))
        return false;
    PRB_AUTO(prb_flame) struct prb_flame before = {0};
    PRB_AUTO_FREE uint64_t *base = NULL;
    if (style->before && (!prb_flame_build(&before, style->before, style, err) ||
                          !(base = add_base(&flame, &before, err))))
        return false;
    const struct prb_flame_page page = {
        .flame = &flame,
        .base = base,
        .profile = profile,
        .style = style,
        .title = title.data ? title.data : "",
        .counts = counts.data ? counts.data : "",
    };
    return prb_flame_page_write(out, &page, err);
}

const struct prb_format prb_format_flamegraph = {
    .description = {"flamegraph", "svg", "an SVG that zooms, searches and filters in a browser",
                    ".svg", false},
    .write = write_flamegraph,
};
