/* Values of settings: texts with units to numbers and back. */
#ifndef PRB_PROBE_SETTING_VALUE_H
#define PRB_PROBE_SETTING_VALUE_H

#include <stdbool.h>
#include <stddef.h>

enum prb_setting_type {
    PRB_SETTING_SWITCH,
    PRB_SETTING_INTEGER,
    PRB_SETTING_REAL,
    PRB_SETTING_BYTES,
    PRB_SETTING_SPAN, /* s */
    PRB_SETTING_TEXT,
    PRB_SETTING_PROGRAM, /* a text: the path of a program that the probe runs */
};

/* The number that a text means: 0 or 1, a count, bytes, s.  unit: of a span's bare number.  False:
 * it means none. */
bool prb_value_parse(enum prb_setting_type type, const char *unit, const char *text, double *out);
/* The text of a number, exact where it has one with a unit. */
void prb_value_format(enum prb_setting_type type, const char *unit, double number, char *out,
                      size_t cap);
/* What a value of this type must look like, for messages. */
const char *prb_value_wanted(enum prb_setting_type type);

#endif
