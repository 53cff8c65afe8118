/* Whether bytes are UTF-8 (RFC 3629), and what stands for those that are not. */
#ifndef PRB_BASE_UTF8_H
#define PRB_BASE_UTF8_H

#include "base/buf.h"

#define PRB_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the well-formed character that text begins with; 0: none.  len at least 1. */
size_t prb_utf8_length(const char *text, size_t len);
/* How many bytes from the start of text are whole characters. */
size_t prb_utf8_prefix(const char *text, size_t len);
/* Append text with each byte that belongs to no character replaced. */
void prb_utf8_add(struct prb_buf *out, const char *text, size_t len);

#endif
