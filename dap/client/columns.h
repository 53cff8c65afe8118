/*
 * Columns: CPython counts bytes of UTF-8 (PEP 657), clients count UTF-16 units.  The source is read
 * as the target sees it; a file in ASCII, as nearly all are, is read once.
 */
#ifndef PRB_DAP_COLUMNS_H
#define PRB_DAP_COLUMNS_H

#include "dap/session/session.h"

#define PRB_DAP_ASCII_MAX 4096        /* files known to be ASCII */
#define PRB_DAP_SOURCE_MAX (16 << 20) /* bytes of a file that is read */

/* The UTF-16 column of a byte column in a line of a file, all from 1; column itself, if the file
 * cannot be read. */
json_int_t prb_dap_column_of(struct prb_dap_session *session, const char *path, json_int_t line,
                             json_int_t column);
/* UTF-16 units of the first len bytes of text in UTF-8; a byte that is not UTF-8 counts as one. */
size_t prb_dap_utf16_units(const char *text, size_t len);

#endif
