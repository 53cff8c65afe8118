/* JSON values that cannot harm a terminal (format.h). */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <wchar.h>

#include "format/piece.h"

/* A copy with U+FFFD for every byte that is not UTF-8: jansson takes nothing else. */
static char *repaired(const char *text, size_t length, size_t *length_out)
{
    PRB_AUTO(prb_utf8) locale_t before = prb_utf8_begin();
    char *copy = malloc(3 * length + 1), *to = copy;
    for (size_t at = 0; copy && at < length;) {
        mbstate_t state = {0};
        size_t taken = text[at] ? mbrtowc(NULL, text + at, length - at, &state) : 1;
        if (taken == (size_t)-1 || taken == (size_t)-2) {
            to = mempcpy(to, "\xef\xbf\xbd", 3);
            at++;
        } else {
            to = mempcpy(to, text + at, taken);
            at += taken;
        }
    }
    *length_out = copy ? (size_t)(to - copy) : 0;
    return copy;
}

/* A character that is not ASCII: as it is, or as \uXXXX.  Returns the bytes it took. */
static size_t print_character(FILE *out, const char *json, size_t length)
{
    char piece[PRB_PIECE_MAX];
    unsigned columns;
    wchar_t c = (unsigned char)json[0];
    mbstate_t state = {0};
    size_t taken = prb_next_piece(json, length, piece, &columns);
    if (piece[0] != '\\') {
        fwrite(json, 1, taken, out);
    } else if (mbrtowc(&c, json, length, &state) == taken && c > 0xffff) {
        c -= 0x10000;
        fprintf(out, "\\u%04lx\\u%04lx", 0xd800 + (unsigned long)(c >> 10),
                0xdc00 + (unsigned long)(c & 0x3ff));
    } else {
        fprintf(out, "\\u%04lx", (unsigned long)c);
    }
    return taken;
}

void prb_out_json(FILE *out, const char *json, size_t length)
{
    PRB_AUTO(prb_utf8) locale_t before = prb_utf8_begin();
    for (size_t at = 0; at < length;) {
        size_t ascii = 0;
        while (at + ascii < length && (unsigned char)json[at + ascii] < 0x7f)
            ascii++;
        fwrite(json + at, 1, ascii, out);
        at += ascii;
        if (at < length)
            at += print_character(out, json + at, length - at);
    }
}

void prb_out_json_text(FILE *out, const char *text, size_t length)
{
    json_t *string = text ? json_stringn(text, length) : json_null();
    if (!string) {
        PRB_AUTO_FREE char *copy = repaired(text, length, &length);
        string = json_stringn(copy ? copy : "", length);
    }
    PRB_AUTO_FREE char *json = json_dumps(string, JSON_ENCODE_ANY);
    if (json)
        prb_out_json(out, json, strlen(json));
    json_decref(string);
}

bool prb_out_real(FILE *out, double value)
{
    char text[40];
    if (!isfinite(value))
        return false;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
    return true;
}
