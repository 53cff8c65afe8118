/* Text that cannot harm a terminal (format.h).  Character classes and widths are the C library's. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "format/piece.h"

/* Widths need a UTF-8 locale whatever the caller's is; the C library has one built in. */
locale_t prb_utf8_begin(void)
{
    static locale_t utf8;
    locale_t known = __atomic_load_n(&utf8, __ATOMIC_ACQUIRE), none = (locale_t)0;
    if (!known && (known = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)) &&
        !__atomic_compare_exchange_n(&utf8, &none, known, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        freelocale(known); /* another thread was first */
        known = none;
    }
    return uselocale(known);
}

void prb_utf8_end(const locale_t *before) { uselocale(*before); }

/* Marks that turn the direction of text around, or hide in it (Unicode, Bidi_Control and line
 * separators). */
static bool deceives(wchar_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x061c || c == 0xfeff;
}

size_t prb_next_piece(const char *text, size_t length, char piece[PRB_PIECE_MAX], unsigned *columns)
{
    unsigned char first = (unsigned char)text[0];
    if (first >= 0x20 && first < 0x7f) {
        piece[0] = (char)first, piece[1] = '\0', *columns = 1;
        return 1;
    }
    static const char escapes[] = "\aa\bb\tt\nn\vv\ff\rr";
    const char *escape = first ? strchr(escapes, first) : NULL;
    wchar_t c = 0;
    mbstate_t state = {0};
    size_t taken = first < 0x80 ? 1 : mbrtowc(&c, text, length, &state);
    int width;
    if (taken == (size_t)-1 || taken == (size_t)-2 || (first < 0x80 && !escape)) {
        snprintf(piece, PRB_PIECE_MAX, "\\x%02x", first);
        taken = 1;
    } else if (first < 0x80) {
        snprintf(piece, PRB_PIECE_MAX, "\\%c", escape[1]);
    } else if (c < 0xa0 || deceives(c) || (width = wcwidth(c)) < 0) {
        snprintf(piece, PRB_PIECE_MAX, c > 0xffff ? "\\U%08lx" : "\\u%04lx", (unsigned long)c);
    } else {
        memcpy(piece, text, taken);
        piece[taken] = '\0';
        *columns = (unsigned)width;
        return taken;
    }
    *columns = (unsigned)strlen(piece);
    return taken;
}

/* How many bytes at the start are printable ASCII, as nearly all text is: one column each. */
static size_t plain(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

static unsigned width_of(const char *text, size_t length)
{
    unsigned all = 0, columns;
    char piece[PRB_PIECE_MAX];
    for (size_t at = 0; at < length; all += columns)
        at += prb_next_piece(text + at, length - at, piece, &columns);
    return all;
}

unsigned prb_out_width(const char *text, size_t length)
{
    if (plain(text, length) == length)
        return (unsigned)length;
    PRB_AUTO(prb_utf8) locale_t before = prb_utf8_begin();
    return width_of(text, length);
}

void prb_out_cut(FILE *out, const char *text, size_t length, unsigned limit)
{
    if (plain(text, length) == length && (!limit || length <= limit)) {
        fwrite(text, 1, length, out);
        return;
    }
    PRB_AUTO(prb_utf8) locale_t before = prb_utf8_begin();
    unsigned all = 0, columns;
    char piece[PRB_PIECE_MAX];
    bool cut = limit && width_of(text, length) > limit;
    for (size_t at = 0; at < length; all += columns) {
        at += prb_next_piece(text + at, length - at, piece, &columns);
        if (cut && all + columns + 1 > limit) {
            fputs("…", out);
            return;
        }
        fputs(piece, out);
    }
}

void prb_out_text(FILE *out, const char *text)
{
    if (text)
        prb_out_cut(out, text, strlen(text), 0);
}

char *prb_text_safe(const char *text, size_t length, unsigned columns)
{
    char *safe = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&safe, &size);
    if (!out)
        return NULL;
    prb_out_cut(out, text, length, columns);
    bool ok = !ferror(out);
    if (fclose(out) == 0 && ok)
        return safe;
    free(safe);
    return NULL;
}
