/* Whether bytes are UTF-8 (RFC 3629), and what stands for those that are not. */
#ifndef PRB_BASE_UTF8_H
#define PRB_BASE_UTF8_H

#include <stdint.h>

#include "base/buf.h"

#define PRB_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the well-formed character that text begins with; 0: none.  len at least 1. */
size_t prb_utf8_length(const char *text, size_t len);
/* How many bytes from the start of text are whole characters. */
size_t prb_utf8_prefix(const char *text, size_t len);
/* The code point of a well-formed character of n bytes. */
uint32_t prb_utf8_code(const char *character, size_t n);
/* Whether a well-formed character of n bytes is safe to show: not a control character, not a mark
 * that is invisible or changes the direction of text, and in XML 1.0's Char (line feeds and tabs
 * are not considered here). */
bool prb_utf8_is_plain(const char *character, size_t n);
/* Append text with each byte that belongs to no character replaced. */
void prb_utf8_add(struct prb_buf *out, const char *text, size_t len);

#endif
