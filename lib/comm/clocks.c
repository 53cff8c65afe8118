/* The clocks of ranks as a system of differences: see clocks.h. */
#include "comm/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct prb_clocks {
    size_t ranks;
    double moment;
    bool solved;
    double *own; /* as most, of the collectives alone */
    double most
        []; /* ranks x ranks: offset of the column's rank less that of the row's is at most this */
};

struct prb_clocks *prb_clocks_new(size_t ranks, double moment, struct prb_error *err)
{
    if (ranks > PRB_CLOCK_RANKS_MAX)
        return PRB_NULL(prb_fail(err, PRB_USAGE,
                                 "the clocks of more than %d ranks are not compared",
                                 PRB_CLOCK_RANKS_MAX));
    size_t cells = ranks * ranks;
    struct prb_clocks *clocks = malloc(sizeof *clocks + 2 * cells * sizeof *clocks->most);
    if (!clocks)
        return PRB_NULL(prb_nomem(err));
    *clocks = (struct prb_clocks){.ranks = ranks, .moment = moment};
    clocks->own = clocks->most + cells;
    for (size_t i = 0; i < cells; i++)
        clocks->most[i] = i % (ranks + 1) ? INFINITY : 0;
    return clocks;
}

void prb_clocks_free(struct prb_clocks *clocks) { free(clocks); }

static double *most(struct prb_clocks *clocks, size_t from, size_t of)
{
    return &clocks->most[from * clocks->ranks + of];
}

/* From the moment, by whichever of the clocks is farthest from it: nobody knows yet which is right. */
static double age_of(const struct prb_clocks *clocks, const struct prb_clock_part *parts,
                     size_t count)
{
    double oldest = 0;
    for (size_t i = 0; i < count; i++) {
        double age = parts[i].begin - clocks->moment;
        age = age < 0 ? -age : age;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

void prb_clocks_add(struct prb_clocks *clocks, const struct prb_clock_part *parts, size_t count)
{
    double drift = age_of(clocks, parts, count) * PRB_CLOCK_DRIFT;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double bound = parts[j].end - parts[i].begin + drift;
            double *cell = most(clocks, parts[i].rank, parts[j].rank);
            if (i != j && isfinite(bound) && bound < *cell)
                *cell = bound;
        }
}

/* Shortest paths: what is known along other ranks.  False: a cycle below 0, so no offsets satisfy all bounds. */
static bool close_paths(struct prb_clocks *clocks)
{
    size_t n = clocks->ranks;
    for (size_t via = 0; via < n; via++)
        for (size_t i = 0; i < n; i++) {
            double first = *most(clocks, i, via);
            for (size_t j = 0; j < n; j++)
                if (first + *most(clocks, via, j) < *most(clocks, i, j))
                    *most(clocks, i, j) = first + *most(clocks, via, j);
        }
    for (size_t i = 0; i < n; i++)
        if (*most(clocks, i, i) < 0)
            return false;
    return true;
}

/* Two ranks read one clock where nothing speaks against it. */
static void join(struct prb_clocks *clocks, double error)
{
    size_t n = clocks->ranks;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (i != j && clocks->own[i * n + j] >= 0 && clocks->own[j * n + i] >= 0 &&
                error < *most(clocks, i, j))
                *most(clocks, i, j) = error;
}

bool prb_clocks_solve(struct prb_clocks *clocks, double one_clock)
{
    size_t bytes = clocks->ranks * clocks->ranks * sizeof *clocks->most;
    clocks->solved = close_paths(clocks);
    if (!clocks->solved || one_clock <= 0)
        return clocks->solved;
    memcpy(clocks->own, clocks->most, bytes);
    join(clocks, one_clock);
    if (!close_paths(clocks)) /* small shifts that add up: what the collectives say stands */
        memcpy(clocks->most, clocks->own, bytes);
    return true;
}

bool prb_clocks_offset(const struct prb_clocks *clocks, size_t of, size_t from, double *offset_out,
                       double *error_out)
{
    double high = clocks->most[from * clocks->ranks + of];
    double low = -clocks->most[of * clocks->ranks + from];
    if (!clocks->solved || !isfinite(high) || !isfinite(low))
        return false;
    *offset_out = (high + low) / 2;
    *error_out = (high - low) / 2;
    return true;
}
