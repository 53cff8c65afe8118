/*
 * What SQL over the rows of 10,000 ranks costs the asker: ranks' answers are made beforehand, and
 * handed over as if they had come.  Prints for each statement its rows, bytes, seconds and memory.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "fleet/rows/ask.h"
#include "fleet/rows/rows.h"

#define RANKS 10000
#define SHAPES 64 /* different answers; ranks share them */

static const struct prb_column thread_columns[] = {
    {"func", PRB_TEXT, "", ""}, {"depth", PRB_INTEGER, "", ""}, {0}};
static const struct prb_column step_columns[] = {{"timestamp", PRB_REAL, "s", ""},
                                                 {"step", PRB_INTEGER, "", ""},
                                                 {"duration", PRB_REAL, "s", ""},
                                                 {0}};
static const struct prb_column process_columns[] = {{"pid", PRB_INTEGER, "id", ""}, {0}};

static unsigned shape; /* of the rank that answers */

static bool fill_threads(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    for (unsigned i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof name, "function_%u", i < 20 ? i % 4 : (i + shape) % 12);
        prb_row_begin(rows);
        prb_row_text(rows, name);
        prb_row_int(rows, 0);
    }
    return true;
}

static void add_steps(struct prb_rows *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        prb_row_begin(rows);
        prb_row_real(rows, 1.7e9 + i * 5.0);
        prb_row_int(rows, i);
        prb_row_real(rows, 5.0 + (double)((i * 7919 + shape * 104729) % 1000) * 1e-3);
    }
}

static bool fill_steps(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    add_steps(rows, 200);
    return true;
}

static bool fill_long(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    add_steps(rows, 1000);
    return true;
}

static bool fill_process(struct prb_rows *rows, struct prb_error *err)
{
    (void)err;
    prb_row_begin(rows);
    prb_row_int(rows, 4000 + shape);
    return true;
}

static const struct prb_table tables[] = {
    {.schema = "python",
     .name = "threads",
     .doc = "",
     .columns = thread_columns,
     .fill = fill_threads},
    {.schema = "python", .name = "steps", .doc = "", .columns = step_columns, .fill = fill_steps},
    {.schema = "python",
     .name = "long_steps",
     .doc = "",
     .columns = step_columns,
     .fill = fill_long},
    {.schema = "system",
     .name = "process",
     .doc = "",
     .columns = process_columns,
     .fill = fill_process},
};
static const struct prb_table *const list[] = {&tables[0], &tables[1], &tables[2], &tables[3]};

static struct prb_db *rank;
static struct prb_buf parts[SHAPES];
static double preparing, preparing_cpu, asking; /* s */
static size_t bytes;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool answer(const char *kind, const json_t *json, struct prb_error *err)
{
    for (shape = 0; shape < SHAPES; shape++) {
        prb_buf_deinit(&parts[shape]);
        if (!(strcmp(kind, "schema") == 0
                  ? prb_schema_answer(rank, json, &parts[shape], err)
                  : prb_rows_answer(rank, json, (size_t)64 << 20, &parts[shape], err)))
            return false;
    }
    return true;
}

static bool ask(void *context, const char *kind, const char *args, struct prb_answers *answers,
                struct prb_error *err)
{
    (void)context;
    double begun = prb_clock_s(), cpu = cpu_s();
    PRB_AUTO(json_t) json_t *json = json_loads(args, 0, NULL);
    if (!json || !answer(kind, json, err))
        return false;
    preparing += prb_clock_s() - begun;
    preparing_cpu += cpu_s() - cpu;
    begun = prb_clock_s();
    for (int i = 0; i < RANKS; i++) {
        char host[32];
        snprintf(host, sizeof host, "node%04d", i / 8);
        if (!prb_answers_add(answers, i, host, parts[i % SHAPES].data, parts[i % SHAPES].len, err))
            return false;
    }
    asking += prb_clock_s() - begun;
    if (strcmp(kind, "rows") == 0)
        bytes = answers->bytes;
    return true;
}

static const struct {
    const char *name, *sql;
    unsigned rows;
} statements[] = {
    {"threads by function",
     "SELECT func, count(*) FROM python.threads WHERE depth = 0 GROUP BY func", 300000},
    {"ten slowest ranks of 200 steps",
     "SELECT rank, avg(duration) FROM python.steps GROUP BY rank ORDER BY 2 DESC LIMIT 10",
     2000000},
    {"sum of all steps", "SELECT sum(duration) FROM python.steps", 2000000},
    {"steps and processes, joined by rank",
     "SELECT p.pid, avg(s.duration) FROM python.steps s JOIN system.process p ON p.rank = s.rank "
     "GROUP BY p.rank ORDER BY 2 DESC LIMIT 10",
     2010000},
    {"the slowest rank of each step, a window",
     "SELECT rank, count(*) FROM (SELECT rank, rank() OVER (PARTITION BY step ORDER BY duration "
     "DESC) AS place FROM python.steps) WHERE place = 1 GROUP BY rank ORDER BY 2 DESC LIMIT 10",
     2000000},
    {"ten slowest ranks of 1,000 steps",
     "SELECT rank, avg(duration) FROM python.long_steps GROUP BY rank ORDER BY 2 DESC LIMIT 10",
     10000000},
};

/* fleet_rows [ROWS]: statements over more are left out. */
int main(int argc, char **argv)
{
    unsigned long most = argc > 1 ? strtoul(argv[1], NULL, 10) : ULONG_MAX;
    struct prb_error err = {0};
    const struct prb_rows_asker asker = {.ask = ask};
    rank = prb_db_open_tables(NULL, list, 4, &err);
    struct prb_db *db = rank ? prb_db_open_tables(NULL, NULL, 0, &err) : NULL;
    if (!db || !prb_db_add_source(db, prb_rows_source(&asker, &err), &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        struct rusage usage;
        if (statements[i].rows > most)
            continue;
        preparing = preparing_cpu = asking = 0;
        double begun = prb_clock_s(), cpu = cpu_s();
        if (!prb_db_query(db, statements[i].sql, NULL, NULL, &err)) {
            fprintf(stderr, "%s: %s\n", statements[i].name, err.text);
            return 1;
        }
        double took = prb_clock_s() - begun - preparing;
        double used = cpu_s() - cpu - preparing_cpu;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"name\": \"%s\", \"rows\": %u, \"bytes\": %zu, \"seconds\": %.3f, \"cpu\": %.3f, "
               "\"taking\": "
               "%.3f, \"peak_mib\": %ld}\n",
               statements[i].name, statements[i].rows, bytes, took, used, asking,
               usage.ru_maxrss >> 10);
    }
    prb_db_close(db);
    prb_db_close(rank);
    for (size_t i = 0; i < SHAPES; i++)
        prb_buf_deinit(&parts[i]);
    return 0;
}
