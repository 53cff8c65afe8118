/*
 * The probe's settings (settings.def): typed values with units, from the environment at the start
 * and from clients. Any thread may ask and set; nothing here blocks.  libc only.
 */
#ifndef PRB_PROBE_SETTINGS_H
#define PRB_PROBE_SETTINGS_H

#include "base/buf.h"
#include "base/error.h"
#include "inject/probe/setting_table.h"

/* All back to their defaults. */
void prb_settings_reset(void);
/* The value as text: as a set would take it, in its unit where it has one.  The length, -1: no such
 * key. */
int prb_settings_get(const char *key, char *out, size_t cap);
/* The value as a number: bytes, s, ratio, 0 or 1.  fallback: no such key, or a text. */
double prb_settings_number(const char *key, double fallback);
/* Errors: NOT_FOUND names the nearest key, USAGE says what a value must be.  Nothing changes on
 * failure. */
bool prb_settings_set(const char *key, const char *value, struct prb_error *err);
/* Lines "key=value", empty lines and blanks around ignored; all are checked before any is set. */
bool prb_settings_set_lines(const char *lines, struct prb_error *err);
/* One "NAME=value" of an environment.  PROBING_A_B, and the older PROBE_ names; others are left
 * alone (true).  False: it names a setting, but its value cannot be parsed. */
bool prb_settings_set_variable(const char *variable, struct prb_error *err);
/* Called after every change, on the thread that made it; NULL: nothing. */
void prb_settings_on_change(void (*changed)(void));
/* Whether somebody set it. */
bool prb_settings_given(const char *key);
/* Whether the environment had a value for it that could not be parsed, and nobody set it since. */
bool prb_settings_refused(const char *key);
/* Each setting: "key\tvalue\tdefault\tunit\tdoc". */
size_t prb_settings_count(void);
void prb_settings_describe(size_t index, struct prb_buf *out);
const char *prb_settings_key(size_t index);

/* Around fork(2): nobody changes a setting meanwhile. */
void prb_settings_lock(void);
void prb_settings_unlock(void);

#endif
