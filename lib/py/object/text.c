/* A text of bounded length: counts characters, cuts with "…", never past its limit. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "py/object/reader.h"

#define ELLIPSIS "\xe2\x80\xa6"

void prb_text_init(struct prb_text *text, struct prb_buf *out, size_t limit)
{
    *text = (struct prb_text){.out = out, .limit = limit ? limit : 1, .cut_at = out->len};
}

size_t prb_text_room(const struct prb_text *text)
{
    return text->full ? 0 : text->limit - text->chars + 1;
}

static void cut(struct prb_text *text)
{
    text->out->len = text->cut_at;
    prb_buf_adds(text->out, ELLIPSIS);
    text->full = true;
}

/* Before one more character; false when there is no room for it. */
static bool advance(struct prb_text *text)
{
    if (!text->full && text->chars == text->limit)
        cut(text);
    if (text->full || !prb_buf_ok(text->out))
        return false;
    if (text->chars == text->limit - 1)
        text->cut_at = text->out->len;
    text->chars++;
    return true;
}

void prb_text_char(struct prb_text *text, unsigned code_point)
{
    if (advance(text))
        prb_buf_add_utf8(text->out, code_point);
}

void prb_text_ascii(struct prb_text *text, const char *ascii, size_t len)
{
    if (!text->full && len < text->limit - text->chars) {
        prb_buf_add(text->out, ascii, len);
        text->chars += len;
        return;
    }
    for (size_t i = 0; i < len && advance(text); i++)
        prb_buf_addc(text->out, ascii[i]);
}

void prb_text_add(struct prb_text *text, const char *utf8)
{
    size_t ascii = 0;
    while (*utf8) {
        while ((signed char)utf8[ascii] > 0) /* char has no sign on AArch64 */
            ascii++;
        if (ascii) {
            prb_text_ascii(text, utf8, ascii);
            utf8 += ascii;
            ascii = 0;
            continue;
        }
        size_t n = 1;
        while ((utf8[n] & 0xc0) == 0x80)
            n++;
        if (!advance(text))
            return;
        prb_buf_add(text->out, utf8, n);
        utf8 += n;
    }
}

void prb_text_addf(struct prb_text *text, const char *format, ...)
{
    char piece[256];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    prb_text_add(text, piece);
}

void prb_text_finish(struct prb_text *text)
{
    if (!text->cut || text->full)
        return;
    if (text->chars == text->limit)
        cut(text);
    else
        prb_buf_adds(text->out, ELLIPSIS);
    text->full = true;
}
