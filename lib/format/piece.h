/* Text cut into characters as they may be printed: what text.c and json.c share. */
#ifndef PRB_FORMAT_PIECE_H
#define PRB_FORMAT_PIECE_H

#include <locale.h>

#include "base/cleanup.h"
#include "format/format.h"

#define PRB_PIECE_MAX 16 /* bytes of one character: UTF-8, or its escape such as \U0001f600 */

/* The calling thread reads UTF-8 until the end of scope:
 *     PRB_AUTO(prb_utf8) locale_t before = prb_utf8_begin(); */
locale_t prb_utf8_begin(void);
void prb_utf8_end(const locale_t *before);
PRB_DEFINE_AUTO(prb_utf8, locale_t, prb_utf8_end)

/* The next character as it may be printed, and its columns; returns the bytes of text that it
 * took (at least 1).  In UTF-8 only. */
size_t prb_next_piece(const char *text, size_t length, char piece[PRB_PIECE_MAX],
                      unsigned *columns);

#endif
