/*
 * A pickle of plain values as JSON: what PyTorch writes of its Flight Recorder in half the time of
 * its JSON.  None, booleans, integers, reals, texts, lists, tuples and dicts whose keys are texts;
 * nothing of it is run, and whatever else stands in one is an error.  By Lib/pickletools.py of CPython.
 */
#ifndef PRB_TABLE_PICKLE_H
#define PRB_TABLE_PICKLE_H

#include <jansson.h>

#include "base/error.h"

/* Whether it begins as one of protocol 2 or newer does, which no JSON does. */
bool prb_is_pickle(const char *data, size_t len);
/* NULL: err. */
json_t *prb_pickle_parse(const char *data, size_t len, struct prb_error *err);

#endif
