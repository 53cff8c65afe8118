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

uint32_t prb_utf8_code(const char *character, size_t n)
{
    uint32_t code = (unsigned char)character[0] & (n > 1 ? 0x7fu >> n : 0x7fu);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)character[i] & 0x3f);
    return code;
}

/* Unicode: general categories Cc, Zl and Zp, Bidi_Control, and what cannot be seen beside them. */
bool prb_utf8_is_plain(const char *character, size_t n)
{
    static const struct {
        uint32_t first, last;
    } others[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},
                  {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfffe, 0xffff}};
    uint32_t code = prb_utf8_code(character, n);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (code >= others[i].first && code <= others[i].last)
            return false;
    return true;
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
