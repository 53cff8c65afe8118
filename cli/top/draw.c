/* The screen of top as lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print/out.h"
#include "cli/top/draw.h"

#define HEAD_LINES 4  /* above the rows */
#define PLAIN_ROWS 20 /* of output that is not a terminal */

/* ---- cells ---- */

void prb_draw_cell(struct prb_drawing *drawing, const char *text, unsigned columns)
{
    text = text ? text : "";
    size_t length = strlen(text);
    unsigned width = prb_out_width(text, length);
    prb_out_cut(drawing->out->out, text, length, columns);
    if (width < columns)
        prb_out_pad(drawing->out->out, columns - width);
}

void prb_draw_cut(struct prb_drawing *drawing, const char *text, unsigned columns)
{
    if (columns)
        prb_out_cut(drawing->out->out, text, strlen(text), columns);
}

/* "train.step (train.py:12)"; line 0: the function's first. */
static void place(struct prb_drawing *drawing, uint32_t function, int line, unsigned columns)
{
    const struct prb_profile_function *f = &drawing->profile->functions[function];
    const char *name = f->qualname ? f->qualname : f->name ? f->name : "?";
    const char *file = f->short_filename ? f->short_filename : f->filename;
    char where[160] = "";
    line = line ? line : f->first_line;
    const char *slash = f->kind == PRB_FRAME_NATIVE && file ? strrchr(file, '/') : NULL;
    file = slash ? slash + 1 : file;
    if (file && line)
        snprintf(where, sizeof where, " (%s:%d)", file, line);
    else if (file)
        snprintf(where, sizeof where, " (%s)", file);
    unsigned wide = prb_out_width(name, strlen(name)), more = prb_out_width(where, strlen(where));
    while (wide + more > columns && file && line && (slash = strchr(file, '/')) && slash[1]) {
        file = slash + 1; /* folders give way before the name does */
        snprintf(where, sizeof where, " (…/%s:%d)", file, line);
        more = prb_out_width(where, strlen(where));
    }
    if (wide + more <= columns) {
        prb_draw_cut(drawing, name, wide);
        prb_draw_cut(drawing, where, more);
    } else if (more + 12 <= columns) { /* then the name, as far as it stays distinct */
        prb_draw_cut(drawing, name, columns - more);
        prb_draw_cut(drawing, where, more);
    } else {
        prb_draw_cut(drawing, name, columns);
    }
}

/* "99.9" or " 100". */
static void percent(struct prb_drawing *drawing, double part)
{
    double value = 100 * part;
    fprintf(drawing->out->out, value < 99.95 ? "%5.1f" : "%5.0f", value);
}

static void share(struct prb_drawing *drawing, uint64_t part, uint64_t whole)
{
    percent(drawing, whole ? (double)part / (double)whole : 0);
}

/* ---- rows ---- */

bool prb_draw_begin_row(struct prb_drawing *drawing)
{
    size_t row = drawing->row++;
    return row >= drawing->first && row < drawing->last;
}

void prb_draw_end_row(struct prb_drawing *drawing, enum prb_line_style style)
{
    bool chosen = drawing->screen && drawing->row - 1 == drawing->top->chosen;
    prb_lines_end(drawing->out, chosen ? PRB_LINE_CHOSEN : style);
}

static void functions(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    for (size_t i = 0; i < top->function_count; i++) {
        const struct prb_top_function *row = &top->functions[i];
        if (!prb_top_function_shown(top, row) || !prb_draw_begin_row(drawing))
            continue;
        share(drawing, row->own, top->own);
        fputc(' ', drawing->out->out);
        share(drawing, row->total, top->own);
        fputc(' ', drawing->out->out);
        share(drawing, row->own_all, top->own_all);
        fputc(' ', drawing->out->out);
        share(drawing, row->total_all, top->own_all);
        fprintf(drawing->out->out, " %8.2f  ", (double)row->own_all * 1e-9);
        place(drawing, row->function, 0, drawing->columns > 34 ? drawing->columns - 34 : 0);
        prb_draw_end_row(drawing, row->own ? PRB_LINE_PLAIN : PRB_LINE_SUBTLE);
    }
}

static const char *doing(const struct prb_top_thread *row)
{
    return row->gone                            ? "ended"
           : row->state & PRB_SAMPLED_GC        ? "gil, gc"
           : row->state & PRB_SAMPLED_GIL       ? "gil"
           : row->state & PRB_SAMPLED_WANTS_GIL ? "wants GIL"
           : !(row->state & PRB_SAMPLED_IDLE)   ? "runs"
           : row->waits                         ? row->waits
                                                : "idle";
}

static void threads(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    const struct prb_profile *profile = drawing->profile;
    for (size_t i = 0; i < top->thread_count; i++) {
        const struct prb_top_thread *row = &top->threads[i];
        const struct prb_profile_thread *thread = &profile->threads[row->thread];
        char label[32];
        if (!prb_top_thread_shown(top, row) || !prb_draw_begin_row(drawing))
            continue;
        prb_top_process_label(top, thread->process, label);
        prb_draw_cell(drawing, label, 8);
        fprintf(drawing->out->out, "%8d ", (int)thread->tid);
        percent(drawing, row->cpu);
        fputc(' ', drawing->out->out);
        percent(drawing, row->gil);
        fputs("  ", drawing->out->out);
        prb_draw_cell(drawing, doing(row), 11);
        fputc(' ', drawing->out->out);
        prb_draw_cell(drawing, thread->name, 12);
        fputc(' ', drawing->out->out);
        if (row->node && row->node < profile->node_count && drawing->columns > 55) {
            const struct prb_profile_frame *frame =
                &profile->frames[profile->nodes[row->node].frame];
            place(drawing, frame->function, frame->line, drawing->columns - 55);
        }
        prb_draw_end_row(drawing, row->gone                       ? PRB_LINE_SUBTLE
                                  : row->state & PRB_SAMPLED_IDLE ? PRB_LINE_PLAIN
                                                                  : PRB_LINE_GOOD);
    }
}

static void processes(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    for (size_t i = 0; i < top->process_count; i++) {
        const struct prb_top_process *row = &top->processes[i];
        const struct prb_profile_process *process = &drawing->profile->processes[i];
        char rank[16] = "";
        if (!prb_top_process_shown(top, row) || !prb_draw_begin_row(drawing))
            continue;
        if (process->rank >= 0)
            snprintf(rank, sizeof rank, "%d", process->rank);
        fprintf(drawing->out->out, "%8d %4s ", (int)process->pid, rank);
        percent(drawing, row->cpu);
        fputc(' ', drawing->out->out);
        percent(drawing, row->gil);
        fprintf(drawing->out->out, " %7zu %7zu  ", row->threads, row->running);
        unsigned left = drawing->columns > 43 ? drawing->columns - 43 : 0;
        if (process->ended)
            prb_draw_cut(drawing, "ended", left);
        else if (row->function != UINT32_MAX && left > 7) {
            share(drawing, row->own_most, row->own);
            fputs("  ", drawing->out->out);
            place(drawing, row->function, 0, left - 7);
        } else {
            prb_draw_cut(drawing, process->command ? process->command : "", left);
        }
        prb_draw_end_row(drawing, PRB_LINE_PLAIN);
    }
}

static void stack_row(void *context, uint32_t index)
{
    struct prb_drawing *drawing = context;
    const struct prb_profile_frame *frame = &drawing->profile->frames[index];
    if (!prb_draw_begin_row(drawing))
        return;
    fputs("  ", drawing->out->out);
    place(drawing, frame->function, frame->line, drawing->columns > 2 ? drawing->columns - 2 : 0);
    prb_draw_end_row(drawing, PRB_LINE_PLAIN);
}

static void stack(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    for (size_t i = 0; i < top->thread_count; i++)
        if (top->threads[i].thread == top->chosen_thread)
            prb_top_stack_each(drawing->profile, top->threads[i].node, stack_row, drawing);
}

static void function(struct prb_drawing *drawing)
{
    const struct prb_top *top = drawing->top;
    for (size_t i = 0; i < top->spot_count; i++) {
        const struct prb_top_spot *spot = &top->spots[i];
        const struct prb_profile_frame *frame = &drawing->profile->frames[spot->frame];
        if (!prb_draw_begin_row(drawing))
            continue;
        if (spot->caller)
            prb_out_pad(drawing->out->out, 5);
        else
            share(drawing, spot->own, top->spots_whole);
        fputc(' ', drawing->out->out);
        share(drawing, spot->total, top->spots_whole);
        fputs(spot->caller ? "  from " : "  line ", drawing->out->out);
        place(drawing, frame->function, frame->line,
              drawing->columns > 18 ? drawing->columns - 18 : 0);
        prb_draw_end_row(drawing, spot->own ? PRB_LINE_PLAIN : PRB_LINE_SUBTLE);
    }
}

static void help(struct prb_drawing *drawing)
{
    static const char *const lines[] = {
        "f t p e    functions, threads, processes and ranks, steps of training",
        "Tab        the next of them",
        "Up Down    choose a row; also j k, PgUp PgDn, Home End",
        "Enter      stack of the chosen thread, threads of the chosen process,",
        "           lines and callers of the chosen function",
        "s          sort by own, total, and both since the beginning",
        "/          filter by name, file or rank; Enter applies it, Esc drops it,",
        "           in the list, too",
        "Space      pause the display; sampling goes on",
        "q          back, or quit",
        "",
        "%own: which part of the time of all threads that count a function used itself;",
        "%tot: with what it called. First of the last interval, then of all since the",
        "beginning. now: gil, runs, or what a thread waits for, at the last sample.",
        "What ended leaves the list after 5 s; sorted by all, functions stay.",
        "",
        "Steps: tier 1 are the steps that the probe records (probing.torch.profiling),",
        "tier 0 stacks sampled from outside and a number that the program counts.",
        "items: what its DataLoader gives, or tokens or samples a second that it logs.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!prb_draw_begin_row(drawing))
            continue;
        prb_draw_cut(drawing, lines[i], drawing->columns);
        prb_lines_end(drawing->out, PRB_LINE_PLAIN);
    }
}

/* ---- views ---- */

static const struct {
    const char *name, *head, *keys;
    void (*rows)(struct prb_drawing *drawing);
} views[] = {
    [PRB_TOP_FUNCTIONS] = {"functions", " %own %tot   all:own  tot    own s  function",
                           "Enter lines, callers  s sort  t threads  p processes  / filter  "
                           "h help  q quit",
                           functions},
    [PRB_TOP_THREADS] = {"threads",
                         "process      tid  %cpu  %gil  now         name         function",
                         "Enter stack  f functions  p processes  / filter  Space pause  h help  "
                         "q quit",
                         threads},
    [PRB_TOP_PROCESSES] = {"processes",
                           "     pid rank  %cpu  %gil threads running   %own  most of it in",
                           "Enter threads  f functions  t threads  / filter  Space pause  h help  "
                           "q quit",
                           processes},
    [PRB_TOP_STEPS] = {"steps",
                       "process  tier     step  step ms  items/s     loss memory gpu% phases",
                       "f functions  t threads  p processes  / filter  Space pause  h help  "
                       "q quit",
                       prb_draw_steps},
    [PRB_TOP_STACK] = {"stack", "  innermost first", "q back  Space pause  h help", stack},
    [PRB_TOP_FUNCTION] = {"function", " %own  %tot  of all since the beginning",
                          "Enter function of the caller  q back  Space pause  h help", function},
    [PRB_TOP_HELP] = {"help", "", "q back", help},
};

/* " of MainThread, tid 123, rank 0" above a stack, " of rank 0" above one process' threads. */
static void whose_label(const struct prb_top *top, char text[120])
{
    const struct prb_profile_thread *thread = &top->profile->threads[top->chosen_thread];
    char label[32];
    *text = '\0';
    if (top->view == PRB_TOP_FUNCTION) {
        const struct prb_profile_function *f = &top->profile->functions[top->chosen_function];
        const char *name = f->qualname ? f->qualname : f->name;
        snprintf(text, 120, " %.100s", name ? name : "?");
    }
    if (top->view == PRB_TOP_THREADS && top->only) {
        prb_top_process_label(top, top->only_process, label);
        snprintf(text, 120, " of %s%s", *label == 'r' ? "" : "process ", label);
    }
    if (top->view != PRB_TOP_STACK)
        return;
    prb_top_process_label(top, thread->process, label);
    snprintf(text, 120, " of %.60s, tid %d, %s%s", thread->name ? thread->name : "a thread",
             (int)thread->tid, *label == 'r' ? "" : "process ", label);
}

static void processes_line(const struct prb_top *top, char *text, size_t size)
{
    size_t alive = top->process_count - top->ended;
    snprintf(text, size, "%zu process%s", alive, alive == 1 ? "" : "es");
    if (top->ended)
        snprintf(text + strlen(text), size - strlen(text), ", %zu ended", top->ended);
}

static void head(struct prb_drawing *drawing)
{
    static const char *const sorts[] = {"own", "total", "own of all", "total of all"};
    const struct prb_top *top = drawing->top;
    double cpu = 0, gil = 0;
    size_t running = 0, here = 0;
    char line[256], whose[120];
    for (size_t i = 0; i < top->process_count; i++) {
        cpu += top->processes[i].cpu;
        gil += top->processes[i].gil;
        running += top->processes[i].running;
        here += top->processes[i].threads;
    }
    const struct prb_profile_process *first = drawing->profile->processes;
    bool filtered = top->view < PRB_TOP_LISTS && (top->filter[0] || top->typing);
    whose_label(top, whose);
    int used = snprintf(line, sizeof line, "probing top: %s%s%s", views[top->view].name, whose,
                        top->paused ? " [paused]" : "");
    if (filtered)
        snprintf(line + used, sizeof line - (size_t)used, ", filter: %s%s (%zu of %zu match)",
                 top->filter, top->typing ? "_" : "", prb_top_rows(top),
                 prb_top_rows_unfiltered(top));
    prb_draw_cut(drawing, line, drawing->columns);
    prb_lines_end(drawing->out, PRB_LINE_TITLE);
    if (top->process_count == 1)
        snprintf(line, sizeof line, "%d %.160s", (int)first->pid,
                 first->command ? first->command : "");
    else
        processes_line(top, line, sizeof line);
    used = (int)strlen(line);
    if (top->note && *top->note)
        snprintf(line + used, sizeof line - (size_t)used, "; %s", top->note);
    prb_draw_cut(drawing, line, drawing->columns);
    prb_lines_end(drawing->out, PRB_LINE_PLAIN);
    snprintf(line, sizeof line,
             "%.0f s, cpu %.0f %%, gil %.0f %%, %zu of %zu threads run; %" PRIu64
             " samples, %" PRIu64 " dropped, %" PRIu64 " skipped",
             top->seconds, 100 * cpu, 100 * gil, running, here, top->samples, top->dropped,
             top->skipped);
    if (top->view == PRB_TOP_STEPS)
        prb_draw_steps_head(top, line, sizeof line);
    prb_draw_cut(drawing, line, drawing->columns);
    prb_lines_end(drawing->out, PRB_LINE_PLAIN);
    snprintf(line, sizeof line, "%s%s%s", views[top->view].head,
             top->view == PRB_TOP_FUNCTIONS ? "   sorted by " : "",
             top->view == PRB_TOP_FUNCTIONS ? sorts[top->sort] : "");
    prb_draw_cell(drawing, line, drawing->columns);
    prb_lines_end(drawing->out, PRB_LINE_HEAD);
}

size_t prb_top_rows(const struct prb_top *top)
{
    struct prb_lines nowhere = {0};
    struct prb_drawing counting = {
        .top = (struct prb_top *)top, .profile = top->profile, .out = &nowhere};
    views[top->view].rows(&counting); /* none is on the screen: last is 0 */
    return counting.row;
}

size_t prb_top_rows_unfiltered(const struct prb_top *top)
{
    struct prb_top all = *top;
    all.filter[0] = '\0';
    return prb_top_rows(&all);
}

static void last_line(struct prb_drawing *drawing, unsigned lines)
{
    const struct prb_top *top = drawing->top;
    while (drawing->out->count + 1 < lines && drawing->out->count < PRB_LINES_MAX)
        prb_lines_end(drawing->out, PRB_LINE_PLAIN);
    prb_draw_cell(drawing,
                  top->typing ? "Enter apply  Esc drop the filter"
                  : top->view < PRB_TOP_LISTS && top->filter[0] != '\0'
                      ? "Esc drop the filter  / change it  Space pause  h help  q quit"
                      : views[top->view].keys,
                  drawing->columns);
    prb_lines_end(drawing->out, PRB_LINE_HEAD);
}

void prb_top_draw(struct prb_top *top, struct prb_lines *out, unsigned columns, unsigned lines)
{
    struct prb_drawing drawing = {
        .top = top, .profile = top->profile, .out = out, .columns = columns, .screen = lines > 0};
    bool keys = lines > HEAD_LINES + 2;
    size_t room = keys ? lines - HEAD_LINES - 1 : lines ? 1 : PLAIN_ROWS;
    size_t count = prb_top_rows(top);
    prb_top_follow(top);
    if (top->chosen >= count)
        top->chosen = count ? count - 1 : 0;
    if (top->chosen < top->first)
        top->first = top->chosen;
    if (top->chosen >= top->first + room)
        top->first = top->chosen - room + 1;
    drawing.first = lines ? top->first : 0;
    drawing.last = drawing.first + room;
    head(&drawing);
    views[top->view].rows(&drawing);
    if (keys)
        last_line(&drawing, lines);
}
