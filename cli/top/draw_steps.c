/* The view "steps": a row for each process, and the phases of the chosen one. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/real.h"
#include "cli/print/out.h"
#include "cli/top/draw.h"

#define FIXED 62       /* columns before the bar */
#define PHASE_FIXED 40 /* the same of a phase's line */
#define BAR_LEAST 8

/* A number in so many columns, to the right; NAN: none. */
static void number(FILE *out, double value, int columns, int digits)
{
    char text[400] = "";
    int len = isnan(value) ? 0 : snprintf(text, sizeof text, "%.*f", digits, value);
    for (int exact = 2; len >= columns && exact >= 0; exact--) /* a loss that diverges */
        len = snprintf(text, sizeof text, "%.*e", exact, value);
    fprintf(out, "%*s", columns, text);
}

static void bytes(FILE *out, double value, int columns)
{
    char text[32] = "";
    if (!isnan(value))
        prb_out_bytes(text, sizeof text, value);
    fprintf(out, "%*s", columns, text);
}

/* As many digits as a number of this size needs. */
static int digits_of(double value)
{
    return fabs(value) >= 1000 ? 0 : fabs(value) >= 100 ? 1 : fabs(value) >= 10 ? 2 : 3;
}

static double sum_of(const struct prb_steps_row *row)
{
    double sum = 0;
    for (size_t i = 0; i < PRB_STEPS_PHASES; i++)
        sum += row->shares[i];
    return sum;
}

/* Letters of the phases, as long as their shares: their ends are rounded, so that all fill it. */
static void bar(FILE *out, const struct prb_steps_row *row, unsigned columns)
{
    double sum = sum_of(row), until = 0;
    unsigned drawn = 0;
    for (size_t i = 0; sum > 0 && i < PRB_STEPS_PHASES; i++) {
        until += row->shares[i] / sum;
        for (unsigned end = (unsigned)prb_round(until * columns); drawn < end; drawn++)
            fputc(prb_steps_names[i].letter, out);
    }
}

static void label(const struct prb_steps_row *row, char text[16])
{
    if (row->rank >= 0)
        snprintf(text, 16, "rank %d", row->rank);
    else
        snprintf(text, 16, "%d", (int)row->pid);
}

bool prb_top_steps_shown(const struct prb_top *top, const struct prb_steps_row *row)
{
    char text[16], pid[16];
    label(row, text);
    snprintf(pid, sizeof pid, "%d", (int)row->pid);
    return !top->filter[0] || strcasestr(text, top->filter) || strcasestr(pid, top->filter) ||
           strcasestr(row->command, top->filter);
}

static void process(struct prb_drawing *drawing, const struct prb_steps_row *row)
{
    FILE *out = drawing->out->out;
    char text[16];
    label(row, text);
    prb_draw_cell(drawing, text, 8);
    if (row->ended || row->problem[0]) {
        fputs("  ", out);
        prb_draw_cut(drawing, row->ended ? "ended" : row->problem,
                     drawing->columns > 10 ? drawing->columns - 10 : 0);
        return;
    }
    fprintf(out, "%5d ", row->tier);
    if (row->step == INT64_MIN)
        fprintf(out, "%8s ", "");
    else
        fprintf(out, "%8" PRId64 " ", row->step);
    number(out, row->length * 1e3, 8, digits_of(row->length * 1e3));
    number(out, row->items, 9, digits_of(row->items));
    number(out, row->loss, 9, fabs(row->loss) < 10 ? 4 : digits_of(row->loss));
    bytes(out, row->memory, 7);
    number(out, row->gpu, 5, 0);
    fputc(' ', out);
    if (drawing->columns >= FIXED + BAR_LEAST)
        bar(out, row, drawing->columns - FIXED);
}

/* The share in which the thread waits, whatever the phase. */
static void waits(struct prb_drawing *drawing, const struct prb_steps_row *row)
{
    if (row->waits <= 0 || !prb_draw_begin_row(drawing))
        return;
    fprintf(drawing->out->out, "    of it waits  %5.1f %%", 100 * row->waits);
    prb_draw_end_row(drawing, PRB_LINE_SUBTLE);
}

/* One phase of the chosen process: its share and time. */
static void phase(struct prb_drawing *drawing, const struct prb_steps_row *row, size_t i)
{
    FILE *out = drawing->out->out;
    double share = row->shares[i] / sum_of(row);
    if (!prb_draw_begin_row(drawing))
        return;
    fprintf(out, "  %c ", prb_steps_names[i].letter);
    prb_draw_cell(drawing, prb_steps_names[i].name, 14);
    fprintf(out, "%5.1f %%", 100 * share);
    if (isnan(row->length))
        prb_out_pad(out, 12);
    else
        fprintf(out, "%9.*f ms", digits_of(1e3 * share * row->length), 1e3 * share * row->length);
    fputs("  ", out);
    unsigned room = drawing->columns > PHASE_FIXED ? drawing->columns - PHASE_FIXED : 0;
    for (unsigned k = (unsigned)prb_round(share * room); k > 0; k--)
        fputc('#', out);
    prb_draw_end_row(drawing, PRB_LINE_SUBTLE);
}

void prb_draw_steps(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    const struct prb_steps_row *chosen = NULL;
    size_t shown = 0;
    for (size_t i = 0; i < top->step_count; i++) {
        const struct prb_steps_row *row = &top->step_rows[i];
        if (!prb_top_steps_shown(top, row))
            continue;
        if (!chosen || (drawing->screen && shown <= top->chosen))
            chosen = row;
        shown++;
        if (!prb_draw_begin_row(drawing))
            continue;
        process(drawing, row);
        prb_draw_end_row(drawing, row->ended ? PRB_LINE_SUBTLE : PRB_LINE_PLAIN);
    }
    if (!chosen || sum_of(chosen) <= 0 || (!drawing->screen && shown > 1))
        return;
    for (size_t i = 0; i < PRB_STEPS_PHASES; i++)
        if (chosen->shares[i] > 0)
            phase(drawing, chosen, i);
    waits(drawing, chosen);
}

/* Of a job that is gone: how old it is. */
static void kept_until(double seconds, char *text, size_t size)
{
    char when[32] = "";
    time_t whole = (time_t)seconds;
    struct tm parts;
    if (localtime_r(&whole, &parts))
        strftime(when, sizeof when, ", until %Y-%m-%d %H:%M:%S", &parts);
    snprintf(text, size, "tier 1, kept: means of the last steps%s", when);
}

/* Which tier is shown, and what that means. */
void prb_draw_steps_head(const struct prb_top *top, char *text, size_t size)
{
    size_t traced = 0, count = 0;
    const char *clock = "";
    double kept = 0;
    for (size_t i = 0; i < top->step_count; i++) {
        const struct prb_steps_row *row = &top->step_rows[i];
        kept = row->seen > kept ? row->seen : kept;
        if (row->ended || row->problem[0])
            continue;
        count++;
        traced += row->tier == 1;
        clock = row->clock[0] ? row->clock : clock;
    }
    if (!count)
        snprintf(text, size, "no step was seen yet");
    else if (kept > 0)
        kept_until(kept, text, size);
    else if (traced == count)
        snprintf(text, size, "tier 1: PyTorch is traced, means of the last steps");
    else if (traced)
        snprintf(text, size,
                 "tier 1: traced, means of the last steps; tier 0: sampled from outside");
    else
        snprintf(text, size, "tier 0: sampled from outside, nothing loaded; %s%s",
                 *clock ? "steps by " : "nothing counts steps", clock);
}
