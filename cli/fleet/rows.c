/* See rows.h. */
#include "cli/fleet/rows.h"

#include "cli/fleet/job.h"
#include "cli/print/out.h"

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

struct printing {
    const struct prb_job_rows *rows;
    size_t results; /* statements that have rows */
};

/* One JSON object has one list of rows. */
static bool print_row(void *context, size_t columns, const char *const *names,
                      const struct prb_value *row)
{
    struct printing *printing = context;
    printing->results += !row;
    if (printing->rows->json && printing->results > 1)
        return false;
    if (!row && printing->rows->json)
        fputs("{\"rows\": ", stdout);
    return prb_row_write(printing->rows->writer, columns, names, row);
}

static bool print_end(const struct printing *printing, const struct prb_coverage *coverage,
                      struct prb_error *err)
{
    if (!prb_row_writer_end(printing->rows->writer, err))
        return ferror(stdout) ? prb_out_finish(err) : false;
    if (!printing->rows->json) {
        if (coverage->count)
            prb_out_coverage(coverage);
        return true;
    }
    if (!printing->results)
        fputs("{\"rows\": []\n", stdout);
    fputs(", \"coverage\": ", stdout);
    prb_coverage_json(coverage, stdout);
    fputs("}\n", stdout);
    return true;
}

static bool print_all(const struct prb_run *run, struct prb_db *db, const struct prb_job_rows *rows,
                      const struct prb_coverage *coverage, struct prb_error *err)
{
    struct printing printing = {rows, 0};
    bool (*ask)(struct prb_db *, const char *, prb_row_fn *, void *, struct prb_error *) =
        rows->plan ? prb_db_plan : prb_db_query;
    prb_db_reveal(db, rows->reveal);
    if (!ask(db, rows->sql, print_row, &printing, err)) {
        /* With --strict the error is that not all ranks answered. */
        return false;
    }
    if (rows->json && printing.results > 1)
        return prb_cli_fail(err, PRB_USAGE, "ask one by one, or with -f jsonl",
                            "with -f json on %s one statement has rows", prb_run_job(run));
    if (prb_db_warning(db))
        prb_out_note(prb_db_warning(db));
    return (!coverage->count || prb_run_covered(run, coverage, err)) &&
           print_end(&printing, coverage, err);
}

bool prb_run_job_rows(const struct prb_run *run, const struct prb_job_rows *rows,
                      struct prb_error *err)
{
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = NULL;
    PRB_AUTO(prb_db) struct prb_db *db = prb_run_job_db(run, &fleet, &coverage, err);
    return db && print_all(run, db, rows, &coverage, err);
}
