/* JSON strings. */
#include "base/json_text.h"

/* Length of the well-formed UTF-8 character at text (RFC 3629), or 0. */
static size_t utf8_length(const unsigned char *text, size_t len)
{
    unsigned char c = text[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;
    if (n > len || (c >= 0x80 && c < 0xc2) || c > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && text[1] < 0xa0) || (c == 0xf0 && text[1] < 0x90);
    bool surrogate = c == 0xed && text[1] >= 0xa0, beyond = c == 0xf4 && text[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

void prb_json_add_text(struct prb_buf *out, const char *text, size_t len)
{
    prb_buf_addc(out, '"');
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = utf8_length((const unsigned char *)text + i, len - i);
        if (c == '"' || c == '\\')
            prb_buf_addc(out, '\\');
        if (c == '\n')
            prb_buf_adds(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            prb_buf_addf(out, "\\u%04x", c);
        else if (n)
            prb_buf_add(out, text + i, n);
        else
            prb_buf_adds(out, "\xef\xbf\xbd");
        i += n ? n : 1;
    }
    prb_buf_addc(out, '"');
}
