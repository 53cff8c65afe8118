/* The stream that keeps what agents publish, and what its limits are: history.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/bus/stream.h"
#include "fleet/history/history.h"

#define AGE 86400.0    /* s */
#define AGE_MOST 3.2e7 /* s: a year; the server counts ns in 64 bits */
#define BYTES_MOST 1e15

/* The same message twice within 10 minutes counts once.  The oldest go first. */
#define STREAM                                                                                     \
    "{\"name\":\"" PRB_HISTORY_STREAM "\",\"subjects\":[\"" PRB_HISTORY_SUBJECTS "\"],"            \
    "\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs_per_subject\":-1,\"max_msgs\":-1,"   \
    "\"max_bytes\":%.0f,\"max_age\":%.0f,\"max_msg_size\":1048576,"                                \
    "\"storage\":\"file\",\"discard\":\"old\",\"num_replicas\":1,"                                 \
    "\"duplicate_window\":%.0f,\"allow_direct\":true}"
#define DUPLICATES 600.0 /* s */

static const struct setting {
    const char *name, *units; /* a number and one of these letters, which stand for the factors */
    double factors[4], most;
    const char *must;
} settings[] = {
    {"PROBING_CLUSTER_HISTORY_EVERY", "smhd", {1, 60, 3600, 86400}, AGE_MOST, "a time, as 10s"},
    {"PROBING_CLUSTER_HISTORY_AGE", "smhd", {1, 60, 3600, 86400}, AGE_MOST, "a time, as 24h"},
    {"PROBING_CLUSTER_HISTORY_BYTES",
     "KMGT",
     {0x1p10, 0x1p20, 0x1p30, 0x1p40},
     BYTES_MOST,
     "a size, as 10G"},
};

/* False: it is no such value.  Not set: otherwise. */
static bool take(const struct setting *setting, double otherwise, double *out)
{
    const char *text = getenv(setting->name), *unit;
    char *end;
    *out = otherwise;
    if (!text || !*text)
        return true;
    double value = strtod(text, &end);
    if (*end && (unit = strchr(setting->units, *end))) {
        value *= setting->factors[unit - setting->units];
        end++;
    }
    if (*end || !(value > 0 && value <= setting->most))
        return false;
    *out = value;
    return true;
}

double prb_history_setting(enum prb_history_setting which, double otherwise)
{
    double value;
    take(&settings[which], otherwise, &value);
    return value;
}

bool prb_history_check(struct prb_error *err)
{
    double value;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!take(&settings[i], 0, &value))
            return prb_fail(err, PRB_USAGE, "%s must be %s, not \"%.40s\"", settings[i].name,
                            settings[i].must, getenv(settings[i].name));
    return true;
}

bool prb_history_begin(struct prb_bus *bus, struct prb_error *err)
{
    char config[700];
    double age = prb_history_setting(PRB_HISTORY_AGE, AGE);
    snprintf(config, sizeof config, STREAM, prb_history_setting(PRB_HISTORY_BYTES, -1), age * 1e9,
             (age < DUPLICATES ? age : DUPLICATES) * 1e9);
    return prb_bus_make_stream(bus, PRB_HISTORY_STREAM, config, "no history is kept", err);
}
