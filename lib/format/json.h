/*
 * Parts that the JSON of several results has in common.
 */
#ifndef PRB_FORMAT_JSON_H
#define PRB_FORMAT_JSON_H

#include <jansson.h>

#include "probing.h"

/* A new reference, null for NULL, U+FFFD for what is no UTF-8; NULL when out of memory. */
json_t *prb_json_text(const char *value);
/* A value of a SQL row: a blob as hexadecimal text, null for what is no finite number. */
json_t *prb_json_value(const struct prb_value *value);
/* A frame by backtrace.schema.json. */
json_t *prb_json_frame(const struct prb_frame *frame);

#endif
