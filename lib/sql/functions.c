/*
 * Scalar functions: time (seconds since the epoch, UTC, REAL) and regular expressions.  To add one:
 * a line in `table` and one in `docs`.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/real.h"
#include "sql/db.h"
#include "sql/regex.h"

/* Some 270,000 years around the epoch: what struct tm holds without overflow. */
#define TIME_MAX 8.64e12

/* ---- reading a time: a number, or ISO 8601 text ---- */

/* count digits at *text, or false. */
static bool digits(const char **text, int count, int *out)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        value = value * 10 + (**text - '0');
    }
    *out = value;
    return true;
}

static bool take(const char **text, const char *set)
{
    bool there = **text && strchr(set, **text);
    *text += there;
    return there;
}

/* Z, ±hh, ±hh:mm or nothing: seconds east of Greenwich. */
static bool zone(const char **text, int *out)
{
    int hours = 0, minutes = 0, sign = **text == '-' ? -1 : 1;
    *out = 0;
    if (take(text, "Zz") || **text == '\0')
        return true;
    if (!take(text, "+-") || !digits(text, 2, &hours))
        return false;
    if ((take(text, ":") || **text) && !digits(text, 2, &minutes))
        return false;
    *out = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* YYYY-MM-DD[ T]hh:mm[:ss[.fraction]][zone], or the date alone. */
static bool parse_iso(const char *text, double *out)
{
    struct tm tm = {0};
    double fraction = 0, unit = 0.1;
    int east = 0;
    if (!digits(&text, 4, &tm.tm_year) || !take(&text, "-") || !digits(&text, 2, &tm.tm_mon) ||
        !take(&text, "-") || !digits(&text, 2, &tm.tm_mday))
        return false;
    if (take(&text, "T t") &&
        (!digits(&text, 2, &tm.tm_hour) || !take(&text, ":") || !digits(&text, 2, &tm.tm_min)))
        return false;
    if (take(&text, ":") && !digits(&text, 2, &tm.tm_sec))
        return false;
    for (bool point = take(&text, "."); point && *text >= '0' && *text <= '9'; text++, unit /= 10)
        fraction += (*text - '0') * unit;
    if (!zone(&text, &east) || *text)
        return false;
    if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 24 ||
        tm.tm_min > 59 || tm.tm_sec > 60)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *out = (double)timegm(&tm) - east + fraction;
    return true;
}

/* False: NULL, or nothing that is a time. */
static bool time_of(sqlite3_value *value, double *out)
{
    const char *text;
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
    case SQLITE_FLOAT:
        *out = sqlite3_value_double(value);
        return *out > -TIME_MAX && *out < TIME_MAX;
    case SQLITE_TEXT:
        text = (const char *)sqlite3_value_text(value);
        return text && parse_iso(text, out);
    default:
        return false;
    }
}

static bool calendar(double t, struct tm *out)
{
    time_t seconds = (time_t)prb_floor(t);
    return gmtime_r(&seconds, out) != NULL;
}

/* ---- parts of a time ---- */

enum part {
    YEAR,
    QUARTER,
    MONTH,
    WEEK,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    MILLISECOND,
    WEEKDAY,
    YEARDAY,
    EPOCH
};

static const struct {
    const char *name;
    enum part part;
} parts[] = {
    {"year", YEAR},     {"quarter", QUARTER}, {"month", MONTH},
    {"week", WEEK},     {"day", DAY},         {"hour", HOUR},
    {"minute", MINUTE}, {"second", SECOND},   {"millisecond", MILLISECOND},
    {"dow", WEEKDAY},   {"doy", YEARDAY},     {"epoch", EPOCH},
};

static bool part_of(sqlite3_context *context, sqlite3_value *name, enum part *out)
{
    const char *text = (const char *)sqlite3_value_text(name);
    for (size_t i = 0; text && i < sizeof parts / sizeof *parts; i++)
        if (strcasecmp(parts[i].name, text) == 0) {
            *out = parts[i].part;
            return true;
        }
    char message[200];
    snprintf(message, sizeof message,
             "'%.40s' is not a part of a time; it must be one of year, quarter, month, week, day, "
             "hour, minute, second, "
             "millisecond, dow, doy, epoch",
             text ? text : "NULL");
    sqlite3_result_error(context, message, -1);
    return false;
}

/* ISO 8601: Monday is the first day. */
static int iso_week(const struct tm *tm)
{
    char week[8];
    return strftime(week, sizeof week, "%V", tm) ? atoi(week) : 0;
}

static void give_part(sqlite3_context *context, enum part part, sqlite3_value *value)
{
    double t;
    struct tm tm;
    if (!time_of(value, &t) || !calendar(t, &tm))
        return;
    const int64_t values[] = {
        [YEAR] = tm.tm_year + 1900,
        [QUARTER] = tm.tm_mon / 3 + 1,
        [MONTH] = tm.tm_mon + 1,
        [WEEK] = iso_week(&tm),
        [DAY] = tm.tm_mday,
        [HOUR] = tm.tm_hour,
        [MINUTE] = tm.tm_min,
        [SECOND] = tm.tm_sec,
        [MILLISECOND] = (int64_t)((t - prb_floor(t)) * 1000),
        [WEEKDAY] = tm.tm_wday,
        [YEARDAY] = tm.tm_yday + 1,
    };
    if (part == EPOCH)
        sqlite3_result_double(context, t);
    else
        sqlite3_result_int64(context, values[part]);
}

static void date_part(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    enum part part;
    if (part_of(context, argv[0], &part))
        give_part(context, part, argv[1]);
}

/* hour(t) and the like */
#define PART_FUNCTION(name, part)                                                                  \
    static void name(sqlite3_context *context, int argc, sqlite3_value **argv)                     \
    {                                                                                              \
        (void)argc;                                                                                \
        give_part(context, part, argv[0]);                                                         \
    }
PART_FUNCTION(part_year, YEAR)
PART_FUNCTION(part_month, MONTH)
PART_FUNCTION(part_day, DAY)
PART_FUNCTION(part_hour, HOUR)
PART_FUNCTION(part_minute, MINUTE)
PART_FUNCTION(part_second, SECOND)

static bool truncate_time(double t, enum part part, double *out)
{
    static const double fixed[] = {
        [WEEK] = 604800, [DAY] = 86400, [HOUR] = 3600, [MINUTE] = 60, [SECOND] = 1};
    static const double monday = 4 * 86400; /* the first one after the epoch, a Thursday */
    struct tm tm;
    if (part == MILLISECOND) {
        *out = prb_floor(t * 1000) / 1000;
        return true;
    }
    if (part >= WEEK && part <= SECOND) {
        double from = part == WEEK ? monday : 0;
        *out = prb_floor((t - from) / fixed[part]) * fixed[part] + from;
        return true;
    }
    if (part > SECOND || !calendar(t, &tm))
        return false;
    int months = part == YEAR ? 12 : part == QUARTER ? 3 : 1;
    struct tm first = {
        .tm_year = tm.tm_year, .tm_mon = tm.tm_mon - tm.tm_mon % months, .tm_mday = 1};
    *out = (double)timegm(&first);
    return true;
}

static void date_trunc(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    enum part part;
    double t, out;
    if (!part_of(context, argv[0], &part) || !time_of(argv[1], &t))
        return;
    if (truncate_time(t, part, &out))
        sqlite3_result_double(context, out);
    else
        sqlite3_result_error(context,
                             "date_trunc cuts to millisecond, second, minute, hour, day, "
                             "week, month, quarter or year",
                             -1);
}

static void now(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_double(context, prb_db_time(sqlite3_user_data(context)));
}

static void to_timestamp(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    double t;
    if (time_of(argv[0], &t))
        sqlite3_result_double(context, t);
}

static void time_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    double t;
    struct tm tm;
    char text[64];
    if (!time_of(argv[0], &t) || !calendar(t, &tm))
        return;
    size_t len = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(text + len, sizeof text - len, ".%03d", (int)((t - prb_floor(t)) * 1000));
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* ---- registration ---- */

static const struct {
    const char *name;
    int arguments;
    void (*call)(sqlite3_context *, int, sqlite3_value **);
    bool changes; /* from statement to statement */
} table[] = {
    {"now", 0, now, true},
    {"year", 1, part_year, false},
    {"month", 1, part_month, false},
    {"day", 1, part_day, false},
    {"hour", 1, part_hour, false},
    {"minute", 1, part_minute, false},
    {"second", 1, part_second, false},
    {"date_part", 2, date_part, false},
    {"date_trunc", 2, date_trunc, false},
    {"to_timestamp", 1, to_timestamp, false},
    {"from_unixtime", 1, time_text, false},
    {"regexp", 2, prb_sql_regexp, false},
    {"regexp_like", 2, prb_sql_regexp_like, false},
};

static const struct prb_function_doc docs[] = {
    {"now()", "time", "seconds since the epoch at which the statement began"},
    {"interval '5 minutes'", "time",
     "its seconds; units from microsecond to year (a month is 30 days)"},
    {"hour(t), minute, second, day, month, year", "time", "that part of a time, UTC"},
    {"date_part(part, t)", "time",
     "year, quarter, month, week, day, hour, minute, second, millisecond, dow, doy, epoch"},
    {"date_trunc(unit, t)", "time", "the time cut to its millisecond … year, as seconds"},
    {"to_timestamp(x)", "time", "seconds since the epoch of an ISO 8601 text or a number"},
    {"from_unixtime(t)", "time", "text such as 2026-01-31 17:05:00.250, UTC"},
    {"x REGEXP pattern, regexp_like(x, pattern)", "text", "POSIX extended regular expression"},
    {"median(x), quantile(x, p)", "aggregate", "exact, linear between two values"},
    {"stddev(x), stddev_samp, stddev_pop", "aggregate", "standard deviation (stddev: of a sample)"},
    {"var(x), var_samp, var_pop, variance", "aggregate", "variance (var: of a sample)"},
    {"json_extract(json, path), json_each(json), …", "SQLite",
     "SQLite's own functions, https://sqlite.org/lang_corefunc.html"},
};

const struct prb_function_doc *prb_function_docs(size_t *count_out)
{
    *count_out = sizeof docs / sizeof *docs;
    return docs;
}

bool prb_functions_register(struct prb_db *db, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS | (table[i].changes ? 0 : SQLITE_DETERMINISTIC);
        if (sqlite3_create_function_v2(db->sqlite, table[i].name, table[i].arguments, flags, db,
                                       table[i].call, NULL, NULL, NULL) != SQLITE_OK)
            return prb_nomem(err);
    }
    return prb_aggregates_register(db->sqlite, err);
}
