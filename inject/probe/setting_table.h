/*
 * The settings that there are (settings.def), without their values: for the probe, and for clients
 * that check what they ask before a probe is loaded.  Pure.
 */
#ifndef PRB_PROBE_SETTING_TABLE_H
#define PRB_PROBE_SETTING_TABLE_H

#include "base/error.h"
#include "inject/probe/setting_value.h"

#define PRB_SETTING_TEXT_MAX 512 /* bytes of a value */
#define PRB_SETTINGS_MAX 64

struct prb_setting {
    const char *key;
    enum prb_setting_type type;
    const char *fallback, *unit;
    double least, most; /* both 0: no bound */
    const char *doc;
};

/* What a text means as the value of a setting. */
struct prb_setting_value {
    bool set;
    double number;
    char text[PRB_SETTING_TEXT_MAX]; /* of a TEXT or PROGRAM */
};

/* Whether its value is a text and no number. */
bool prb_setting_is_text(const struct prb_setting *setting);
size_t prb_setting_count(void);
const struct prb_setting *prb_setting_at(size_t index);
/* Index, or -1. */
int prb_setting_find(const char *key);
/* Fill err as NOT_FOUND with the nearest name; false. */
bool prb_setting_unknown(const char *key, struct prb_error *err);
/* Errors: USAGE says what a value must be. */
bool prb_setting_read(int index, const char *text, struct prb_setting_value *out,
                      struct prb_error *err);
void prb_setting_text(int index, const struct prb_setting_value *value, char *out, size_t cap);

#endif
