/*
 * The terminal as a screen, by ncurses' wide-character library.  It is opened like libedit
 * (repl/line.c), as no other command needs it.
 */
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include "cli/top/screen.h"

#include <curses.h>
#include <dlfcn.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/dlopen_note.h"
#include "cli/command.h"
#include "config.h"

#define SYMBOLS(S)                                                                                 \
    S(newterm)                                                                                     \
    S(endwin)                                                                                      \
    S(delscreen)                                                                                   \
    S(cbreak)                                                                                      \
    S(noecho)                                                                                      \
    S(nonl)                                                                                        \
    S(curs_set)                                                                                    \
    S(keypad)                                                                                      \
    S(wtimeout)                                                                                    \
    S(wgetch)                                                                                      \
    S(wmove)                                                                                       \
    S(waddnstr)                                                                                    \
    S(wclrtoeol)                                                                                   \
    S(wclrtobot)                                                                                   \
    S(wrefresh)                                                                                    \
    S(wattrset)                                                                                    \
    S(getmaxx)                                                                                     \
    S(getmaxy)                                                                                     \
    S(has_colors)                                                                                  \
    S(start_color) S(use_default_colors) S(init_pair) S(COLOR_PAIR) S(set_escdelay) S(stdscr)
static struct {
#define POINTER(symbol) __typeof__(symbol) *symbol;
    SYMBOLS(POINTER)
} curses;
static const char *const symbol_names[] = {
#define NAME(symbol) #symbol,
    SYMBOLS(NAME)};

static SCREEN *screen;
static bool colors;

/* ---- lines ---- */

bool prb_lines_begin(struct prb_lines *lines)
{
    *lines = (struct prb_lines){0};
    lines->out = open_memstream(&lines->text, &lines->size);
    return lines->out != NULL;
}

void prb_lines_end(struct prb_lines *lines, enum prb_line_style style)
{
    if (lines->count >= PRB_LINES_MAX)
        return;
    lines->styles[lines->count++] = (unsigned char)style;
    fputc('\n', lines->out);
}

bool prb_lines_finish(struct prb_lines *lines)
{
    bool good = fclose(lines->out) == 0 && lines->text;
    lines->out = NULL;
    return good;
}

void prb_lines_free(struct prb_lines *lines)
{
    if (lines->out)
        fclose(lines->out);
    free(lines->text);
    *lines = (struct prb_lines){0};
}

/* ---- the terminal ---- */

PRB_DLOPEN_NOTE(curses, PRB_SONAME_CURSES, "recommended", "the screen of top");

static bool open_ncurses(void)
{
    void *library = dlopen(PRB_SONAME_CURSES, RTLD_NOW | RTLD_LOCAL);
    void **to = (void **)&curses;
    for (size_t i = 0; library && i < sizeof symbol_names / sizeof *symbol_names; i++)
        if (!(to[i] = dlsym(library, symbol_names[i])))
            return false;
    return library != NULL;
}

bool prb_screen_open(struct prb_error *err)
{
    static const short pairs[][2] = {
        {PRB_LINE_TITLE, COLOR_CYAN}, {PRB_LINE_SUBTLE, COLOR_BLUE}, {PRB_LINE_GOOD, COLOR_GREEN}};
    setlocale(LC_CTYPE, "");
    if (!open_ncurses())
        return prb_cli_fail(err, PRB_UNSUPPORTED, "print lines instead: probing … top | cat",
                            "the screen needs %s, which is not there", PRB_SONAME_CURSES);
    screen = curses.newterm(NULL, stdout, stdin);
    if (!screen)
        return prb_cli_fail(err, PRB_UNSUPPORTED, "set TERM, or print lines: probing … top | cat",
                            "ncurses does not know this terminal");
    WINDOW *window = *curses.stdscr;
    curses.cbreak();
    curses.noecho();
    curses.nonl();
    curses.curs_set(0);
    curses.keypad(window, TRUE);
    curses.wtimeout(window, 0);
    curses.set_escdelay(25);
    colors = curses.has_colors() && curses.start_color() == OK && !getenv("NO_COLOR");
    if (colors)
        curses.use_default_colors();
    for (size_t i = 0; colors && i < sizeof pairs / sizeof *pairs; i++)
        curses.init_pair(pairs[i][0], pairs[i][1], -1);
    return true;
}

void prb_screen_close(void)
{
    if (!screen)
        return;
    curses.endwin();
    curses.delscreen(screen);
    screen = NULL;
}

unsigned prb_screen_columns(void)
{
    int columns = curses.getmaxx(*curses.stdscr);
    return columns > 0 ? (unsigned)columns : 80;
}

unsigned prb_screen_lines(void)
{
    int lines = curses.getmaxy(*curses.stdscr);
    return lines > 0 ? (unsigned)lines : 24;
}

static int attributes(unsigned style)
{
    static const attr_t plain[] = {[PRB_LINE_TITLE] = A_BOLD,      [PRB_LINE_HEAD] = A_REVERSE,
                                   [PRB_LINE_CHOSEN] = A_STANDOUT, [PRB_LINE_SUBTLE] = A_NORMAL,
                                   [PRB_LINE_GOOD] = A_BOLD,       [PRB_LINE_PLAIN] = A_NORMAL};
    bool colored = style == PRB_LINE_TITLE || style == PRB_LINE_SUBTLE || style == PRB_LINE_GOOD;
    return (int)(plain[style] | (colors && colored ? (attr_t)curses.COLOR_PAIR((int)style) : 0));
}

void prb_screen_show(const struct prb_lines *lines)
{
    WINDOW *window = *curses.stdscr;
    const char *at = lines->text;
    unsigned rows = prb_screen_lines();
    for (size_t i = 0; i < lines->count && i < rows; i++) {
        size_t length = strcspn(at, "\n");
        curses.wmove(window, (int)i, 0);
        curses.wattrset(window, attributes(lines->styles[i]));
        curses.waddnstr(window, at, (int)length);
        curses.wattrset(window, A_NORMAL);
        curses.wclrtoeol(window);
        at += length + (at[length] == '\n');
    }
    if (lines->count < rows) {
        curses.wmove(window, (int)lines->count, 0);
        curses.wclrtobot(window);
    }
    curses.wrefresh(window);
}

int prb_screen_key(void)
{
    static const struct {
        int curses, ours;
    } keys[] = {
        {KEY_UP, PRB_KEY_UP},           {KEY_DOWN, PRB_KEY_DOWN}, {KEY_PPAGE, PRB_KEY_PAGE_UP},
        {KEY_NPAGE, PRB_KEY_PAGE_DOWN}, {KEY_HOME, PRB_KEY_HOME}, {KEY_END, PRB_KEY_END},
        {KEY_ENTER, PRB_KEY_ENTER},     {'\r', PRB_KEY_ENTER},    {'\n', PRB_KEY_ENTER},
        {KEY_BACKSPACE, PRB_KEY_BACK},  {127, PRB_KEY_BACK},      {8, PRB_KEY_BACK},
        {KEY_RESIZE, PRB_KEY_RESIZED}};
    int key = curses.wgetch(*curses.stdscr);
    if (key == ERR)
        return PRB_KEY_NONE;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].curses == key)
            return keys[i].ours;
    return key < 0x100 ? key : PRB_KEY_OTHER;
}
