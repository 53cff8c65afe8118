/* Aggregates that SQLite lacks: median, quantile, standard deviation and variance.  NULLs are left
 * out, as in avg(). */
#include <string.h>

#include "base/real.h"
#include "sql/db.h"

/* Values that one median or quantile saves: 256 MiB. */
#define QUANTILE_VALUES_MAX ((size_t)1 << 25)

/* ---- quantiles: all values, sorted at the end ---- */

struct values {
    double *items;
    size_t count, cap;
    double p;
};

static void keep(sqlite3_context *context, double p, sqlite3_value *value)
{
    struct values *values = sqlite3_aggregate_context(context, sizeof *values);
    if (!values) {
        sqlite3_result_error_nomem(context);
        return;
    }
    values->p = p;
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return;
    if (values->count >= QUANTILE_VALUES_MAX ||
        !PRB_GROW(values->items, values->count, values->cap)) {
        sqlite3_result_error_nomem(context);
        return;
    }
    values->items[values->count++] = sqlite3_value_double(value);
}

static void median_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    keep(context, 0.5, argv[0]);
}

static void quantile_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    double p = sqlite3_value_double(argv[1]);
    if (sqlite3_value_numeric_type(argv[1]) == SQLITE_NULL || !(p >= 0 && p <= 1)) {
        sqlite3_result_error(context, "quantile(x, p): p must be from 0 to 1", -1);
        return;
    }
    keep(context, p, argv[0]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between two values: linear, as numpy and percentile_cont do. */
static void quantile_final(sqlite3_context *context)
{
    struct values *values = sqlite3_aggregate_context(context, 0);
    if (!values)
        return;
    if (values->count) {
        qsort(values->items, values->count, sizeof *values->items, ascending);
        double place = values->p * (double)(values->count - 1);
        size_t below = (size_t)place;
        size_t above = below + 1 < values->count ? below + 1 : below;
        double low = values->items[below], high = values->items[above];
        sqlite3_result_double(context,
                              low == high ? low : low + (place - (double)below) * (high - low));
    }
    free(values->items);
    values->items = NULL;
}

/* ---- moments, in one pass (Welford) ---- */

struct moments {
    int64_t count;
    double mean, squares;
};

static void moments_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct moments *m = sqlite3_aggregate_context(context, sizeof *m);
    if (!m) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    double value = sqlite3_value_double(argv[0]), delta = value - m->mean;
    m->count++;
    m->mean += delta / (double)m->count;
    m->squares += delta * (value - m->mean);
}

/* sample: divide by one less than the count. */
static void moments_final(sqlite3_context *context, bool sample, bool root)
{
    const struct moments *m = sqlite3_aggregate_context(context, 0);
    if (!m || m->count <= sample)
        return;
    double variance = m->squares / (double)(m->count - sample);
    sqlite3_result_double(context, root ? prb_sqrt(variance) : variance);
}

static void stddev_samp(sqlite3_context *context) { moments_final(context, true, true); }
static void stddev_pop(sqlite3_context *context) { moments_final(context, false, true); }
static void var_samp(sqlite3_context *context) { moments_final(context, true, false); }
static void var_pop(sqlite3_context *context) { moments_final(context, false, false); }

static const struct {
    const char *name;
    int arguments;
    void (*step)(sqlite3_context *, int, sqlite3_value **);
    void (*final)(sqlite3_context *);
} table[] = {
    {"median", 1, median_step, quantile_final},
    {"quantile", 2, quantile_step, quantile_final},
    {"approx_percentile_cont", 2, quantile_step, quantile_final},
    {"stddev", 1, moments_step, stddev_samp},
    {"stddev_samp", 1, moments_step, stddev_samp},
    {"stddev_pop", 1, moments_step, stddev_pop},
    {"var", 1, moments_step, var_samp},
    {"var_samp", 1, moments_step, var_samp},
    {"var_pop", 1, moments_step, var_pop},
    {"variance", 1, moments_step, var_samp},
};

bool prb_aggregates_register(sqlite3 *sqlite, struct prb_error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (sqlite3_create_function_v2(sqlite, table[i].name, table[i].arguments, flags, NULL, NULL,
                                       table[i].step, table[i].final, NULL) != SQLITE_OK)
            return prb_nomem(err);
    return true;
}
