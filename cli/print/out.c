/* Colours, messages and what is printed as it comes: see out.h. */
#include "cli/print/out.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"

static bool colored;

void prb_out_color(const char *when)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool fit =
        isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    colored = strcmp(when, "always") == 0 || (fit && strcmp(when, "never") != 0);
}

bool prb_out_is_colored(void) { return colored; }

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
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n");
        fputs("probing: note: ", stderr);
        prb_out_cut(stderr, at, n, 0);
        fputc('\n', stderr);
        at += n + (at[n] == '\n');
    }
}

bool prb_out_finish(struct prb_error *err)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    /* It failed earlier, and the reason was not saved: one byte more fails in the same way. */
    if (!errno && fputc('\n', stdout) == '\n')
        fflush(stdout);
    if (errno == EPIPE) {
        signal(SIGPIPE, SIG_DFL); /* libnats has set it to be ignored */
        raise(SIGPIPE);
    }
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
