/* What SET changes.  To add a setting: a field of struct prb_settings and a line here. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "sql/db.h"

enum kind { BOOLEAN, INTEGER, REAL };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    double first, least, most; /* at first; bounds */
    const char *unit, *doc;
} table[] = {
    {"probing.reveal_secrets", BOOLEAN, offsetof(struct prb_settings, reveal_secrets), 0, 0, 1, "",
     "show what looks secret in system.environment and in values of variables"},
    {"probing.repr_limit", INTEGER, offsetof(struct prb_settings, repr_limit), 4096, 16, 1 << 20,
     "characters", "longest text of one local's value"},
    {"probing.native_lines", BOOLEAN, offsetof(struct prb_settings, native_lines), 0, 0, 1, "",
     "file and line of native frames, from debug information (slower)"},
    {"probing.query_timeout", REAL, offsetof(struct prb_settings, query_timeout), 30, 0.001, 86400,
     "s", "a statement that runs longer is ended"},
    {"probing.cluster.query_budget", REAL, offsetof(struct prb_settings, cluster_query_budget), 10,
     0.01, 3600, "s", "-t @JOB: how long ranks have to send their rows (--timeout)"},
    {"probing.cluster.max_rows", INTEGER, offsetof(struct prb_settings, cluster_max_rows), 10000000,
     1, 1e12, "rows", "-t @JOB: a statement that needs more of all ranks is an error"},
    {"probing.cluster.max_bytes", INTEGER, offsetof(struct prb_settings, cluster_max_bytes),
     1 << 30, 1, 1e15, "bytes", "-t @JOB: the same of what they send"},
};

#define COUNT (sizeof table / sizeof *table)

size_t prb_settings_count(void) { return COUNT; }

static void store(struct prb_settings *settings, size_t index, double value)
{
    void *field = (char *)settings + table[index].offset;
    if (table[index].kind == BOOLEAN)
        *(bool *)field = value != 0;
    else if (table[index].kind == INTEGER)
        *(int64_t *)field = (int64_t)value;
    else
        *(double *)field = value;
}

void prb_settings_default(struct prb_settings *settings)
{
    for (size_t i = 0; i < COUNT; i++)
        store(settings, i, table[i].first);
}

struct prb_setting prb_settings_get(const struct prb_settings *settings, size_t index)
{
    struct prb_setting out = {table[index].name, table[index].unit, table[index].doc, ""};
    const void *field = (const char *)settings + table[index].offset;
    if (table[index].kind == BOOLEAN)
        snprintf(out.value, sizeof out.value, "%s", *(const bool *)field ? "on" : "off");
    else if (table[index].kind == INTEGER)
        snprintf(out.value, sizeof out.value, "%lld", (long long)*(const int64_t *)field);
    else
        sqlite3_snprintf(sizeof out.value, out.value, "%g", *(const double *)field);
    return out;
}

int prb_settings_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcasecmp(table[i].name, name) == 0)
            return (int)i;
    return -1;
}

const char *prb_settings_nearest(const char *name)
{
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        names[i] = table[i].name;
        if (strcasecmp(table[i].name + strlen("probing."), name) == 0)
            return table[i].name; /* only the prefix is missing */
    }
    return prb_nearest(name, names, COUNT);
}

static bool parse_boolean(const char *text, double *out)
{
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i], text) == 0) {
            *out = i % 2;
            return true;
        }
    return false;
}

/* Digits with at most one point, in any locale. */
static bool parse_number(const char *text, bool whole, double *out)
{
    double value = 0, scale = 1;
    bool fraction = false, any = false;
    for (; *text; text++) {
        if (*text == '.' && !fraction && !whole) {
            fraction = true;
            continue;
        }
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (*text - '0');
        scale *= fraction ? 10 : 1;
        any = true;
    }
    *out = value / scale;
    return any;
}

bool prb_settings_set(struct prb_settings *settings, size_t index, const char *value,
                      char *must_out, size_t cap)
{
    double number;
    bool good = table[index].kind == BOOLEAN
                    ? parse_boolean(value, &number)
                    : parse_number(value, table[index].kind == INTEGER, &number) &&
                          number >= table[index].least && number <= table[index].most;
    if (good)
        store(settings, index, number);
    else if (table[index].kind == BOOLEAN)
        snprintf(must_out, cap, "on or off");
    else
        sqlite3_snprintf((int)cap, must_out, "a number from %g to %.15g", table[index].least,
                         table[index].most);
    return good;
}
