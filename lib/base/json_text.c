/* JSON strings. */
#include "base/json_text.h"

#include "base/utf8.h"

void prb_json_add_text(struct prb_buf *out, const char *text, size_t len)
{
    prb_buf_addc(out, '"');
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = prb_utf8_length(text + i, len - i);
        if (c == '"' || c == '\\')
            prb_buf_addc(out, '\\');
        if (c == '\n')
            prb_buf_adds(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            prb_buf_addf(out, "\\u%04x", c);
        else if (n)
            prb_buf_add(out, text + i, n);
        else
            prb_buf_adds(out, PRB_UTF8_REPLACEMENT);
        i += n ? n : 1;
    }
    prb_buf_addc(out, '"');
}
