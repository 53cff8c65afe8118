/* See coverage.h. */
#include "fleet/coverage.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/format.h"

#define REASONS_SHOWN 3 /* in the line; the JSON has all */

static const char *const names[PRB_COVERAGE_STATES] = {
    [PRB_COVERAGE_MISSING] = "missing", [PRB_COVERAGE_ANSWERED] = "answered",
    [PRB_COVERAGE_FAILED] = "failed",   [PRB_COVERAGE_SILENT] = "silent",
    [PRB_COVERAGE_GONE] = "gone",
};

const char *prb_coverage_state_name(enum prb_coverage_state state)
{
    return (unsigned)state < PRB_COVERAGE_STATES ? names[state] : "unknown";
}

bool prb_coverage_begin(struct prb_coverage *coverage, const struct prb_rank_set *asked,
                        struct prb_error *err)
{
    unsigned count = prb_rank_set_size(asked);
    *coverage = (struct prb_coverage){.items = calloc(count + 1, sizeof *coverage->items)};
    if (!coverage->items)
        return prb_nomem(err);
    for (int rank = prb_rank_set_next(asked, -1); rank >= 0; rank = prb_rank_set_next(asked, rank))
        coverage->items[coverage->count++].rank = rank;
    return true;
}

void prb_coverage_deinit(struct prb_coverage *coverage)
{
    for (size_t i = 0; i < coverage->count; i++) {
        free(coverage->items[i].reason);
        free(coverage->items[i].host);
    }
    free(coverage->items);
    *coverage = (struct prb_coverage){0};
}

static int by_rank(const void *key, const void *item)
{
    int rank = *(const int *)key, other = ((const struct prb_coverage_rank *)item)->rank;
    return (rank > other) - (rank < other);
}

struct prb_coverage_rank *prb_coverage_find(const struct prb_coverage *coverage, int rank)
{
    return coverage->count
               ? bsearch(&rank, coverage->items, coverage->count, sizeof *coverage->items, by_rank)
               : NULL;
}

bool prb_coverage_set(struct prb_coverage *coverage, int rank, enum prb_coverage_state state,
                      const char *reason)
{
    struct prb_coverage_rank *one = prb_coverage_find(coverage, rank);
    if (!one || one->state == PRB_COVERAGE_ANSWERED)
        return false;
    free(one->reason);
    one->reason = reason && *reason ? strdup(reason) : NULL;
    one->state = state;
    return true;
}

unsigned prb_coverage_in(const struct prb_coverage *coverage, enum prb_coverage_state state,
                         struct prb_rank_set *set)
{
    unsigned count = 0;
    for (size_t i = 0; i < coverage->count; i++) {
        if (coverage->items[i].state != state)
            continue;
        count++;
        if (set)
            (void)prb_rank_set_add(set, coverage->items[i].rank, coverage->items[i].rank);
    }
    return count;
}

static void marked(const struct prb_coverage *coverage, bool truncated, struct prb_rank_set *set)
{
    for (size_t i = 0; i < coverage->count; i++)
        if (truncated ? coverage->items[i].truncated : coverage->items[i].late)
            (void)prb_rank_set_add(set, coverage->items[i].rank, coverage->items[i].rank);
}

bool prb_coverage_whole(const struct prb_coverage *coverage)
{
    for (size_t i = 0; i < coverage->count; i++)
        if (coverage->items[i].state != PRB_COVERAGE_ANSWERED || coverage->items[i].truncated)
            return false;
    return true;
}

/* ---- as text ---- */

static void set_json(FILE *out, const char *key, const struct prb_rank_set *set)
{
    PRB_AUTO_FREE char *text = prb_rank_set_text(set);
    fprintf(out, ", \"%s\": \"%s\"", key, text ? text : "");
}

static void state_json(const struct prb_coverage *coverage, enum prb_coverage_state state,
                       FILE *out)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set set = {0};
    prb_coverage_in(coverage, state, &set);
    set_json(out, names[state], &set);
}

static void mark_json(const struct prb_coverage *coverage, bool truncated, FILE *out)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set set = {0};
    marked(coverage, truncated, &set);
    set_json(out, truncated ? "truncated" : "late", &set);
}

static void failed_json(const struct prb_coverage *coverage, FILE *out)
{
    const char *between = "";
    fputs(", \"failed\": [", out);
    for (size_t i = 0; i < coverage->count; i++) {
        const struct prb_coverage_rank *one = &coverage->items[i];
        if (one->state != PRB_COVERAGE_FAILED)
            continue;
        fprintf(out, "%s{\"rank\": %d, \"reason\": ", between, one->rank);
        prb_out_json_text(out, one->reason, one->reason ? strlen(one->reason) : 0);
        fputc('}', out);
        between = ", ";
    }
    fputc(']', out);
}

void prb_coverage_json(const struct prb_coverage *coverage, FILE *out)
{
    fprintf(out, "{\"expected\": %zu", coverage->count);
    state_json(coverage, PRB_COVERAGE_ANSWERED, out);
    failed_json(coverage, out);
    state_json(coverage, PRB_COVERAGE_SILENT, out);
    state_json(coverage, PRB_COVERAGE_MISSING, out);
    state_json(coverage, PRB_COVERAGE_GONE, out);
    mark_json(coverage, false, out);
    mark_json(coverage, true, out);
    fputc('}', out);
}

static void add_set(struct prb_buf *line, const char *name, const struct prb_rank_set *set)
{
    PRB_AUTO_FREE char *text = prb_rank_set_text(set);
    if (set->count && text)
        prb_buf_addf(line, "; %s %s", name, text);
}

/* One reason for each failed rank, the first few: "4: no permission". */
static void add_reasons(struct prb_buf *line, const struct prb_coverage *coverage,
                        enum prb_coverage_state state)
{
    size_t shown = 0;
    for (size_t i = 0; i < coverage->count; i++) {
        const struct prb_coverage_rank *one = &coverage->items[i];
        if (one->state != state || !one->reason)
            continue;
        if (shown == REASONS_SHOWN) {
            prb_buf_adds(line, ", …");
            break;
        }
        prb_buf_addf(line, "%s%d: %s", shown++ ? ", " : " (", one->rank, one->reason);
    }
    if (shown)
        prb_buf_addc(line, ')');
}

char *prb_coverage_line(const struct prb_coverage *coverage)
{
    static const enum prb_coverage_state lacking[] = {PRB_COVERAGE_FAILED, PRB_COVERAGE_SILENT,
                                                      PRB_COVERAGE_MISSING, PRB_COVERAGE_GONE};
    PRB_AUTO(prb_buf) struct prb_buf line = {0};
    unsigned answered = prb_coverage_in(coverage, PRB_COVERAGE_ANSWERED, NULL);
    prb_buf_addf(&line, "%u of %zu rank%s answered", answered, coverage->count,
                 coverage->count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        PRB_AUTO(prb_rank_set) struct prb_rank_set set = {0};
        prb_coverage_in(coverage, lacking[i], &set);
        add_set(&line, names[lacking[i]], &set);
        add_reasons(&line, coverage, lacking[i]);
    }
    for (int truncated = 0; truncated < 2; truncated++) {
        PRB_AUTO(prb_rank_set) struct prb_rank_set set = {0};
        marked(coverage, truncated, &set);
        add_set(&line, truncated ? "truncated" : "late", &set);
    }
    return prb_buf_steal(&line);
}

bool prb_coverage_check(const struct prb_coverage *coverage, struct prb_error *err)
{
    if (prb_coverage_whole(coverage))
        return true;
    PRB_AUTO_FREE char *line = prb_coverage_line(coverage);
    return prb_fail(err, PRB_PARTIAL, "%s", line ? line : "not all ranks answered");
}
