/* Rows of text in aligned columns; numbers to the right; widths as the terminal shows them. */
#ifndef PRB_CLI_GRID_H
#define PRB_CLI_GRID_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/print/out.h"

#define PRB_GRID_COLUMNS_MAX 2000 /* SQLite's own limit */

struct prb_grid;

/* The header; a name may be "".  NULL when out of memory, which a later failed add tells, too. */
struct prb_grid *prb_grid_new(const char *const *names, size_t columns);
void prb_grid_free(struct prb_grid *grid);
PRB_DEFINE_AUTO_PTR(prb_grid, struct prb_grid, prb_grid_free)

/* The next cell of the current row, rows being filled from left to right; text NULL is empty. */
bool prb_grid_add(struct prb_grid *grid, const char *text, size_t length, bool number);
bool prb_grid_adds(struct prb_grid *grid, const char *text);
bool prb_grid_addf(struct prb_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Print.  terminal: its columns; the widest are cut until all fit.  0: no terminal: nothing is cut,
 * and cells of more than 60 columns stand out of line rather than widen every row.
 */
void prb_grid_print(const struct prb_grid *grid, FILE *out, unsigned terminal);

#endif
