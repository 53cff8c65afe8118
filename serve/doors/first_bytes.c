/*
 * A method word and a space is HTTP, RFC 9112 section 3.  CONNECT, TRACE and HTTP/2's preface ("PRI ")
 * are what nobody asks us for; 0x16 and 3 begin a TLS handshake, RFC 8446 section 5.1.
 */
#include <string.h>

#include "serve/doors/doors.h"

static const char *const spoken[] = {"GET ",    "HEAD ",    "POST ", "PUT ",
                                     "DELETE ", "OPTIONS ", "PATCH "};
static const char *const unwanted[] = {"CONNECT ", "TRACE ", "PRI "};

/* 1: it begins with word; 0: it may still; -1: it does not. */
static int begins(const char *bytes, size_t count, const char *word)
{
    size_t len = strlen(word), n = count < len ? count : len;
    if (memcmp(bytes, word, n) != 0)
        return -1;
    return n == len;
}

enum prb_first_bytes prb_first_bytes(const char *bytes, size_t count)
{
    bool may = count == 0;
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
        int found = begins(bytes, count, unwanted[i]);
        if (found > 0)
            return PRB_FIRST_CLOSE;
        may = may || found == 0;
    }
    for (size_t i = 0; i < sizeof spoken / sizeof *spoken; i++) {
        int found = begins(bytes, count, spoken[i]);
        if (found > 0)
            return PRB_FIRST_HTTP;
        may = may || found == 0;
    }
    if (may)
        return PRB_FIRST_WAIT;
    if (bytes[0] == 0x16 && (count < 2 || bytes[1] == 3))
        return count < 2 ? PRB_FIRST_WAIT : PRB_FIRST_TLS;
    unsigned char first = (unsigned char)bytes[0];
    bool control = first < 0x20 && first != '\n' && first != '\r' && first != '\t' && first != 3;
    return control || first == 0x7f ? PRB_FIRST_CLOSE : PRB_FIRST_TEXT;
}
