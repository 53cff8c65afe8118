/* JSON text made piece by piece, where building a tree first would only cost (RFC 8259). */
#ifndef PRB_BASE_JSON_TEXT_H
#define PRB_BASE_JSON_TEXT_H

#include "base/buf.h"

/* Append text as a JSON string, in quotes.  Bytes that are not UTF-8 become U+FFFD, so that the
 * result always parses. */
void prb_json_add_text(struct prb_buf *out, const char *text, size_t len);

#endif
