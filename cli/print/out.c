/* Text, colours and JSON values on the way out: see out.h.  Character classes and widths are the C
 * library's. */
#include "cli/print/out.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "cli/command.h"

#define PIECE_MAX                                                                                  \
    16 /* bytes of one character as printed: UTF-8, or its escape such as \U0001f600 */

static bool colored;

void prb_out_color(const char *when)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool fit =
        isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    colored = strcmp(when, "always") == 0 || (fit && strcmp(when, "never") != 0);
}

void prb_out_style(FILE *out, enum prb_style style)
{
    static const char *const codes[] = {
        [PRB_STYLE_PLAIN] = "0",    [PRB_STYLE_TITLE] = "1",  [PRB_STYLE_FUNCTION] = "32",
        [PRB_STYLE_PLACE] = "36",   [PRB_STYLE_SUBTLE] = "2", [PRB_STYLE_GOOD] = "1;32",
        [PRB_STYLE_WARNING] = "33",
    };
    if (colored)
        fprintf(out, "\033[%sm", codes[style]);
}

static unsigned terminal_size(const char *variable, bool lines)
{
    const char *text = getenv(variable);
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (text && atoi(text) > 0)
        return (unsigned)atoi(text);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return lines ? size.ws_row : size.ws_col;
}

unsigned prb_out_columns(void) { return terminal_size("COLUMNS", false); }
unsigned prb_out_lines(void) { return terminal_size("LINES", true); }

/* Widths need a UTF-8 locale whatever the user's is; the C library carries one. */
static void use_utf8(void)
{
    static locale_t utf8;
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (utf8)
        uselocale(utf8);
}

/* Marks that turn the direction of text around, or hide in it (Unicode, Bidi_Control and line
 * separators). */
static bool deceives(wchar_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x061c || c == 0xfeff;
}

/* The next character as it may be printed; returns the bytes it took of text (at least 1). */
static size_t next_piece(const char *text, size_t length, char piece[PIECE_MAX], unsigned *columns)
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
        snprintf(piece, PIECE_MAX, "\\x%02x", first);
        taken = 1;
    } else if (first < 0x80) {
        snprintf(piece, PIECE_MAX, "\\%c", escape[1]);
    } else if (c < 0xa0 || deceives(c) || (width = wcwidth(c)) < 0) {
        snprintf(piece, PIECE_MAX, c > 0xffff ? "\\U%08lx" : "\\u%04lx", (unsigned long)c);
    } else {
        memcpy(piece, text, taken);
        piece[taken] = '\0';
        *columns = (unsigned)width;
        return taken;
    }
    *columns = (unsigned)strlen(piece);
    return taken;
}

unsigned prb_out_width(const char *text, size_t length)
{
    unsigned all = 0, columns;
    char piece[PIECE_MAX];
    use_utf8();
    for (size_t at = 0; at < length; all += columns)
        at += next_piece(text + at, length - at, piece, &columns);
    return all;
}

void prb_out_cut(FILE *out, const char *text, size_t length, unsigned limit)
{
    unsigned all = 0, columns;
    char piece[PIECE_MAX];
    use_utf8();
    bool cut = limit && prb_out_width(text, length) > limit;
    for (size_t at = 0; at < length; all += columns) {
        at += next_piece(text + at, length - at, piece, &columns);
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

/* Bytes at the end of text that begin a character and do not end it. */
static size_t unfinished(const char *text, size_t length)
{
    for (size_t n = 1; n <= 3 && n <= length; n++) {
        unsigned char c = (unsigned char)text[length - n];
        if (c >= 0xc0)
            return n < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? n : 0;
        if (c < 0x80)
            return 0;
    }
    return 0;
}

static void print_harmless(FILE *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t n = at;
        while (n < length && text[n] != '\n' && text[n] != '\t')
            n++;
        prb_out_cut(out, text + at, n - at, 0);
        if (n < length)
            fputc(text[n++], out);
        at = n;
    }
}

bool prb_out_stream(struct prb_out_stream *stream, const char *text, size_t length)
{
    if (!isatty(fileno(stream->file))) {
        fwrite(text, 1, length, stream->file);
        return fflush(stream->file) == 0;
    }
    PRB_AUTO_FREE char *all = malloc(stream->held_length + length);
    if (!all && stream->held_length + length)
        return false;
    if (stream->held_length)
        memcpy(all, stream->held, stream->held_length);
    if (length)
        memcpy(all + stream->held_length, text, length);
    length += stream->held_length;
    stream->held_length = unfinished(all, length);
    length -= stream->held_length;
    print_harmless(stream->file, all, length);
    if (stream->held_length)
        memcpy(stream->held, all + length, stream->held_length);
    return fflush(stream->file) == 0;
}

void prb_out_stream_end(struct prb_out_stream *stream)
{
    prb_out_cut(stream->file, stream->held, stream->held_length, 0);
    stream->held_length = 0;
    fflush(stream->file);
}

void prb_out_pad(FILE *out, unsigned columns) { fprintf(out, "%*s", (int)columns, ""); }

/* A copy with U+FFFD for every byte that is not UTF-8, for jansson takes nothing else. */
static char *repaired(const char *text, size_t length, size_t *length_out)
{
    char *copy = malloc(3 * length + 1), *to = copy;
    use_utf8();
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

void prb_out_json(FILE *out, const char *json, size_t length)
{
    char piece[PIECE_MAX];
    unsigned columns;
    use_utf8();
    for (size_t at = 0; at < length;) {
        size_t ascii = 0;
        while (at + ascii < length && (unsigned char)json[at + ascii] < 0x7f)
            ascii++;
        fwrite(json + at, 1, ascii, out);
        at += ascii;
        if (at == length)
            break;
        wchar_t c = (unsigned char)json[at];
        mbstate_t state = {0};
        size_t taken = next_piece(json + at, length - at, piece, &columns);
        if (piece[0] != '\\') {
            fwrite(json + at, 1, taken, out);
        } else if (mbrtowc(&c, json + at, length - at, &state) == taken && c > 0xffff) {
            c -= 0x10000;
            fprintf(out, "\\u%04lx\\u%04lx", 0xd800 + (unsigned long)(c >> 10),
                    0xdc00 + (unsigned long)(c & 0x3ff));
        } else {
            fprintf(out, "\\u%04lx", (unsigned long)c);
        }
        at += taken;
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

/* A library message may have several lines, such as the SQL with a mark below. */
static void print_lines(FILE *out, const char *text, const char *indent)
{
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n");
        fputs(indent, out);
        prb_out_cut(out, at, n, 0);
        fputc('\n', out);
        indent = "  ";
        at += n + (at[n] == '\n');
    }
}

void prb_out_error(const struct prb_error *err)
{
    print_lines(stderr, err->text[0] ? err->text : prb_code_name(err->code), "probing: ");
    print_lines(stderr, err->remedy, "  ");
}

void prb_out_note(const char *text)
{
    fputs("probing: note: ", stderr);
    prb_out_text(stderr, text);
    fputc('\n', stderr);
}

bool prb_out_finish(struct prb_error *err)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    /* It failed earlier, and nobody kept why: one byte more fails alike. */
    if (!errno && fputc('\n', stdout) == '\n')
        fflush(stdout);
    return prb_cli_fail(err, PRB_IO, "", "standard output did not take everything: %s",
                        strerror(errno ? errno : EIO));
}

void prb_out_bytes(char *text, size_t size, double bytes)
{
    static const char units[] = "BKMGTPE";
    const char *unit = units;
    while (bytes >= 1023.5 && unit[1]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, unit > units && bytes < 9.95 ? "%.1f%c" : "%.0f%c", bytes, *unit);
}
