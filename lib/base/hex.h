/* Bytes as hexadecimal digits in lower case, and back. */
#ifndef PRB_BASE_HEX_H
#define PRB_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* 2 * len digits and a NUL. */
static inline void prb_hex(const unsigned char *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = '\0';
}

/* Exactly len bytes.  False: text is something else; NULL, too. */
static inline bool prb_unhex(const char *text, unsigned char *out, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    if (!text || strlen(text) != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char *high = strchr(digits, text[2 * i]), *low = strchr(digits, text[2 * i + 1]);
        if (!high || !low)
            return false;
        out[i] = (unsigned char)((high - digits) << 4 | (low - digits));
    }
    return true;
}

#endif
