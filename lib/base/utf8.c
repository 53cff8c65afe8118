/* UTF-8. */
#include "base/utf8.h"

size_t prb_utf8_length(const char *bytes, size_t len)
{
    const unsigned char *text = (const unsigned char *)bytes;
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

size_t prb_utf8_prefix(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        size_t n = prb_utf8_length(text + i, len - i);
        if (!n)
            break;
        i += n;
    }
    return i;
}

void prb_utf8_add(struct prb_buf *out, const char *text, size_t len)
{
    while (len) {
        size_t good = prb_utf8_prefix(text, len);
        prb_buf_add(out, text, good);
        text += good;
        len -= good;
        if (len) {
            prb_buf_adds(out, PRB_UTF8_REPLACEMENT);
            text++;
            len--;
        }
    }
}
