/*
 * Columns: CPython counts bytes of UTF-8 (PEP 657), clients count UTF-16 units.  The source is
 * read as the target sees it; files of ASCII, which are nearly all, are read once.
 */
#ifndef PRB_DAP_COLUMNS_H
#define PRB_DAP_COLUMNS_H

#include "dap/session/session.h"

#define PRB_DAP_PLAIN_MAX 4096        /* files that are remembered as ASCII */
#define PRB_DAP_SOURCE_MAX (16 << 20) /* bytes of a file that is looked at */

/* The UTF-16 column of a byte column in a line of a file, all from 1; where the file cannot be
 * had, column itself. */
json_int_t prb_dap_column_of(struct prb_dap_session *session, const char *path, json_int_t line,
                             json_int_t column);
/* UTF-16 units of the first len bytes of text in UTF-8; a byte that is none counts as one. */
size_t prb_dap_utf16_units(const char *text, size_t len);

#endif
