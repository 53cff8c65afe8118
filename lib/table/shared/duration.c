/* Arguments of tables that watch: see duration.h. */
#include "table/shared/duration.h"

#include <math.h>

#include "base/clock.h"
#include "sql/db.h"

#define SECONDS_MAX 86400

bool prb_rows_number(const struct prb_rows *rows, const char *column, double most, double *out,
                     struct prb_error *err)
{
    const struct prb_value *value = prb_rows_argument(rows, column);
    if (!value || value->type == PRB_NULL_VALUE)
        return true;
    *out = value->type == PRB_INTEGER ? (double)value->integer
           : value->type == PRB_REAL  ? value->real
                                      : NAN;
    return (isfinite(*out) && *out > 0 && *out <= most) ||
           prb_fail(err, PRB_QUERY, "%s must be a number above 0 and at most %g", column, most);
}

bool prb_rows_seconds(const struct prb_rows *rows, double *out, struct prb_error *err)
{
    const struct prb_db *db = prb_rows_db(rows);
    if (!prb_rows_number(rows, "seconds", SECONDS_MAX, out, err))
        return false;
    if (*out >= db->settings.query_timeout) {
        prb_fail(err, PRB_QUERY, "%g seconds are more than a query may take", *out);
        return prb_error_remedy(err, "SET probing.query_timeout = %g", *out * 2);
    }
    if (!db->target)
        return prb_fail(err, PRB_USAGE, "a process that ended does nothing for so many seconds");
    return prb_target_info(db->target)->kind == PRB_TARGET_PROCESS ||
           prb_fail(err, PRB_USAGE, "a core or snapshot does not run: nothing in it takes time");
}

bool prb_rows_in_time(void *rows) { return prb_clock_s() < prb_rows_db(rows)->view.deadline; }
