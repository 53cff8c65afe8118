/* Drawing the views of top: what their files share. */
#ifndef PRB_CLI_DRAW_H
#define PRB_CLI_DRAW_H

#include "cli/top/top.h"

struct prb_drawing {
    struct prb_top *top;
    const struct prb_profile *profile;
    struct prb_lines *out;
    unsigned columns;
    size_t row, first, last; /* which rows of the view are on the screen */
    bool screen;
};

/* Text of a fixed width, to the left; and text of at most so many columns. */
void prb_draw_cell(struct prb_drawing *drawing, const char *text, unsigned columns);
void prb_draw_cut(struct prb_drawing *drawing, const char *text, unsigned columns);
/* Whether the next row of the view is on the screen: then it is drawn, and ended. */
bool prb_draw_begin_row(struct prb_drawing *drawing);
void prb_draw_end_row(struct prb_drawing *drawing, enum prb_line_style style);

/* The view "steps" (draw_steps.c), and its line above the columns. */
void prb_draw_steps(struct prb_drawing *drawing);
void prb_draw_steps_head(const struct prb_top *top, char *text, size_t size);

#endif
