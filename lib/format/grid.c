/* Aligned columns (format.h).  Cells are saved until they are printed: only then are the widths
 * known. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "format/grid.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

#define GAP 2
#define CELL_MIN 8   /* no column is cut below this */
#define CELL_WIDE 60 /* and none made wider than this by one cell, where none is cut */

struct cell {
    char *text;
    size_t length;
    unsigned width;
    bool number;
};

struct prb_grid {
    size_t columns;
    struct cell *cells; /* the header first, then rows */
    size_t count, capacity;
    unsigned *widths; /* of the columns; NULL: not measured yet */
    bool *right;      /* which have numbers */
    bool headed;      /* the header is printed */
};

static bool add(struct prb_grid *grid, const char *text, size_t length, bool number)
{
    if (grid->count == grid->capacity) {
        size_t capacity = grid->capacity ? 2 * grid->capacity : 64;
        struct cell *cells = reallocarray(grid->cells, capacity, sizeof *cells);
        if (!cells)
            return false;
        grid->cells = cells;
        grid->capacity = capacity;
    }
    struct cell *cell = &grid->cells[grid->count];
    *cell = (struct cell){.text = malloc(length + 1), .length = length, .number = number};
    if (!cell->text)
        return false;
    if (length)
        memcpy(cell->text, text, length);
    cell->text[length] = '\0';
    cell->width = prb_out_width(cell->text, length);
    grid->count++;
    return true;
}

struct prb_grid *prb_grid_new(const char *const *names, size_t columns)
{
    PRB_AUTO(prb_grid) struct prb_grid *grid = calloc(1, sizeof *grid);
    if (!grid || columns == 0 || columns > PRB_GRID_COLUMNS_MAX)
        return NULL;
    grid->columns = columns;
    for (size_t i = 0; i < columns; i++)
        if (!add(grid, names[i], strlen(names[i]), false))
            return NULL;
    return PRB_STEAL(grid);
}

/* The cells from first on. */
static void forget(struct prb_grid *grid, size_t first)
{
    for (size_t i = first; i < grid->count; i++)
        free(grid->cells[i].text);
    grid->count = first < grid->count ? first : grid->count;
}

void prb_grid_free(struct prb_grid *grid)
{
    if (!grid)
        return;
    forget(grid, 0);
    free(grid->cells);
    free(grid->widths);
    free(grid->right);
    free(grid);
}

bool prb_grid_add(struct prb_grid *grid, const char *text, size_t length, bool number)
{
    return grid && add(grid, text, text ? length : 0, number);
}

bool prb_grid_adds(struct prb_grid *grid, const char *text)
{
    return prb_grid_add(grid, text, text ? strlen(text) : 0, false);
}

bool prb_grid_addf(struct prb_grid *grid, const char *format, ...)
{
    PRB_AUTO_FREE char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length >= 0 && prb_grid_add(grid, text, (size_t)length, true);
}

static unsigned column_width(const struct prb_grid *grid, size_t column)
{
    unsigned width = 0;
    for (size_t i = column; i < grid->count; i += grid->columns)
        if (grid->cells[i].width > width)
            width = grid->cells[i].width;
    return width;
}

/* Cut the widest column again and again until all fit: what is narrow stays whole. */
static void fit(unsigned *widths, size_t columns, unsigned terminal)
{
    size_t all = GAP * (columns - 1);
    for (size_t i = 0; i < columns; i++)
        all += widths[i];
    while (all > terminal) {
        size_t widest = 0;
        unsigned second = CELL_MIN;
        for (size_t i = 1; i < columns; i++)
            if (widths[i] >= widths[widest])
                widest = i;
        for (size_t i = 0; i < columns; i++)
            if (i != widest && widths[i] > second)
                second = widths[i];
        if (widths[widest] <= CELL_MIN)
            return;
        unsigned target = second < widths[widest] ? second : widths[widest] - 1;
        unsigned gain = widths[widest] - target;
        if (gain > all - terminal)
            gain = (unsigned)(all - terminal);
        widths[widest] -= gain;
        all -= gain;
    }
}

/* Where nothing is cut a few long cells widen no column: their row is longer, and comes back into
 * line where there is room. */
static void bound(unsigned *widths, const struct prb_grid *grid)
{
    for (size_t i = 0; i < grid->columns; i++) {
        unsigned most = 0;
        for (size_t c = i; c < grid->count; c += grid->columns) {
            unsigned width = grid->cells[c].width;
            if (width <= CELL_WIDE && width > most)
                most = width;
        }
        if (widths[i] > CELL_WIDE)
            widths[i] = most;
    }
}

/* A row is being printed: the column that was reached, and the one where the next cell begins. */
struct place {
    size_t at, next;
};

static void print_cell(const struct cell *cell, FILE *out, struct place *place, unsigned width,
                       bool right, bool cut)
{
    unsigned used = cut && cell->width > width ? width : cell->width;
    size_t start = place->next + (right && used < width ? width - used : 0);
    size_t least = place->at ? place->at + GAP : 0;
    if (start < least)
        start = least;
    if (used) {
        fprintf(out, "%*s", (int)(start - place->at), "");
        prb_out_cut(out, cell->text, cell->length, cut ? width : 0);
        place->at = start + used;
    }
    place->next += width + GAP;
}

static bool measure(struct prb_grid *grid, unsigned terminal)
{
    grid->widths = calloc(grid->columns, sizeof *grid->widths);
    grid->right = calloc(grid->columns, sizeof *grid->right);
    if (!grid->widths || !grid->right)
        return false;
    for (size_t i = 0; i < grid->columns; i++) {
        grid->widths[i] = column_width(grid, i);
        for (size_t c = grid->columns + i; c < grid->count && !grid->right[i]; c += grid->columns)
            grid->right[i] = grid->cells[c].number;
    }
    if (terminal)
        fit(grid->widths, grid->columns, terminal);
    else
        bound(grid->widths, grid);
    return true;
}

void prb_grid_print(struct prb_grid *grid, FILE *out, unsigned terminal, bool color)
{
    bool first = !grid->headed;
    struct place place = {0};
    if (!grid->widths && !measure(grid, terminal))
        return;
    grid->headed = true;
    for (size_t i = 0; i < grid->count; i++) {
        size_t column = i % grid->columns;
        bool header = first && i < grid->columns;
        if (header && color)
            fputs(BOLD, out);
        print_cell(&grid->cells[i], out, &place, grid->widths[column], grid->right[column],
                   terminal > 0);
        if (header && color)
            fputs(PLAIN, out);
        if (column + 1 == grid->columns) {
            fputc('\n', out);
            place = (struct place){0};
        }
    }
    forget(grid, 0);
}

bool prb_grid_fits(struct prb_grid *grid, unsigned terminal)
{
    size_t all = GAP * (grid->columns - 1);
    if (!terminal || (!grid->widths && !measure(grid, terminal)))
        return true;
    for (size_t i = 0; i < grid->columns; i++)
        all += grid->widths[i];
    return all <= terminal;
}

void prb_grid_print_vertical(struct prb_grid *grid, size_t number, FILE *out, bool color)
{
    unsigned widest = 0;
    for (size_t i = 0; i < grid->columns; i++)
        if (grid->cells[i].width > widest)
            widest = grid->cells[i].width;
    for (size_t i = grid->columns; i < grid->count; i++) {
        const struct cell *cell = &grid->cells[i], *name = &grid->cells[i % grid->columns];
        if (i % grid->columns == 0)
            fprintf(out, "%s-- row %zu --%s\n", color ? DIM : "", number++, color ? PLAIN : "");
        fprintf(out, "%*s", (int)(widest - name->width), "");
        prb_out_cut(out, name->text, name->length, 0);
        fputs(": ", out);
        prb_out_cut(out, cell->text, cell->length, 0);
        fputc('\n', out);
    }
    forget(grid, grid->columns);
}
