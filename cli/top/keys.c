/* What the keys of top do. */
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"

/* The row of a thread that passes; SIZE_MAX: none. */
static size_t row_of_thread(const struct prb_top *top, uint32_t thread)
{
    size_t row = 0;
    for (size_t i = 0; i < top->thread_count; i++) {
        if (!prb_top_thread_shown(top, &top->threads[i]))
            continue;
        if (top->threads[i].thread == thread)
            return row;
        row++;
    }
    return SIZE_MAX;
}

void prb_top_follow(struct prb_top *top)
{
    size_t row = top->view == PRB_TOP_THREADS && top->follows
                     ? row_of_thread(top, top->chosen_thread)
                     : SIZE_MAX;
    if (row != SIZE_MAX)
        top->chosen = row;
}

static void turn_to(struct prb_top *top, enum prb_top_view view)
{
    if (view >= PRB_TOP_LISTS && top->view < PRB_TOP_LISTS)
        top->back = top->view;
    top->follows = top->view == PRB_TOP_STACK && view == PRB_TOP_THREADS;
    top->view = view;
    top->chosen = top->first = 0;
}

static void type(struct prb_top *top, int key)
{
    enum { ESCAPE = 27 };
    size_t length = strlen(top->filter);
    if (key == PRB_KEY_ENTER || key == ESCAPE)
        top->typing = false;
    if (key == ESCAPE)
        top->filter[0] = '\0';
    if (key == PRB_KEY_BACK && length)
        top->filter[length - 1] = '\0';
    if (key >= ' ' && key < 127 && length + 1 < sizeof top->filter) {
        top->filter[length] = (char)key;
        top->filter[length + 1] = '\0';
    }
}

/* The thread of the chosen row. */
static bool note_chosen(struct prb_top *top)
{
    size_t row = 0;
    for (size_t i = 0; top->view == PRB_TOP_THREADS && i < top->thread_count; i++)
        if (prb_top_thread_shown(top, &top->threads[i]) && row++ == top->chosen) {
            top->chosen_thread = top->threads[i].thread;
            return true;
        }
    return false;
}

static void move(struct prb_top *top, int key)
{
    enum { PAGE = 10 };
    size_t count = prb_top_rows(top), last = count ? count - 1 : 0, at = top->chosen;
    if (key == PRB_KEY_UP || key == 'k')
        at = at ? at - 1 : 0;
    else if (key == PRB_KEY_DOWN || key == 'j')
        at++;
    else if (key == PRB_KEY_PAGE_UP)
        at = at > PAGE ? at - PAGE : 0;
    else if (key == PRB_KEY_PAGE_DOWN)
        at += PAGE;
    else if (key == PRB_KEY_HOME)
        at = 0;
    else if (key == PRB_KEY_END)
        at = last;
    top->chosen = at < last ? at : last;
    top->follows =
        top->chosen > 0 && note_chosen(top); /* the first row is whoever is the busiest */
}

static void open_function(struct prb_top *top, uint32_t function)
{
    top->chosen_function = function;
    turn_to(top, prb_top_spots(top) ? PRB_TOP_FUNCTION : PRB_TOP_FUNCTIONS);
}

/* The stack of the chosen thread, the threads of the chosen process, the lines and callers of the
 * chosen function; of a caller, too. */
static void open_row(struct prb_top *top)
{
    size_t row = 0;
    if (top->view == PRB_TOP_FUNCTION && top->chosen < top->spot_count &&
        top->spots[top->chosen].caller) {
        open_function(top, top->profile->frames[top->spots[top->chosen].frame].function);
        return;
    }
    for (size_t i = 0; top->view == PRB_TOP_FUNCTIONS && i < top->function_count; i++)
        if (prb_top_function_shown(top, &top->functions[i]) && row++ == top->chosen) {
            open_function(top, top->functions[i].function);
            return;
        }
    if (note_chosen(top)) {
        turn_to(top, PRB_TOP_STACK);
        return;
    }
    for (size_t i = 0; top->view == PRB_TOP_PROCESSES && i < top->process_count; i++)
        if (prb_top_process_shown(top, &top->processes[i]) && row++ == top->chosen) {
            turn_to(top, PRB_TOP_THREADS);
            top->only = true;
            top->only_process = top->processes[i].process;
        }
}

/* From the threads of one process to the processes, where that one is marked still. */
static void close_process(struct prb_top *top)
{
    size_t row = 0;
    turn_to(top, PRB_TOP_PROCESSES);
    for (size_t i = 0; i < top->process_count && i < top->only_process; i++)
        row += prb_top_process_shown(top, &top->processes[i]);
    top->chosen = row;
    top->only = false;
}

/* To the functions, where the one that was shown is marked still. */
static void close_function(struct prb_top *top)
{
    size_t row = 0;
    turn_to(top, PRB_TOP_FUNCTIONS);
    for (size_t i = 0; i < top->function_count; i++) {
        if (!prb_top_function_shown(top, &top->functions[i]))
            continue;
        if (top->functions[i].function == top->chosen_function)
            top->chosen = row;
        row++;
    }
}

/* False: quit. */
static bool go_back(struct prb_top *top, bool quit)
{
    if (top->view == PRB_TOP_FUNCTION)
        close_function(top);
    else if (top->view >= PRB_TOP_LISTS)
        turn_to(top, top->back);
    else if (!quit && top->filter[0])
        top->filter[0] = '\0';
    else if (top->only)
        close_process(top);
    else
        return !quit;
    return true;
}

static void turn_by_key(struct prb_top *top, enum prb_top_view view)
{
    if (view != PRB_TOP_HELP)
        top->only = false;
    turn_to(top, view);
}

bool prb_top_key(struct prb_top *top, int key)
{
    static const struct {
        int key;
        enum prb_top_view view;
    } turns[] = {{'f', PRB_TOP_FUNCTIONS}, {'t', PRB_TOP_THREADS}, {'p', PRB_TOP_PROCESSES},
                 {'r', PRB_TOP_PROCESSES}, {'e', PRB_TOP_STEPS},   {'h', PRB_TOP_HELP},
                 {'?', PRB_TOP_HELP}};
    enum { ESCAPE = 27 };
    if (top->typing) {
        type(top, key);
        return true;
    }
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if (turns[i].key == key)
            turn_by_key(top, turns[i].view);
    if (key == 'q' || key == ESCAPE) {
        return go_back(top, key == 'q');
    } else if (key == '\t') {
        turn_by_key(top, top->view < PRB_TOP_STEPS ? top->view + 1 : PRB_TOP_FUNCTIONS);
    } else if (key == ' ') {
        top->paused = !top->paused;
    } else if (key == '/') {
        top->typing = top->view < PRB_TOP_LISTS;
        top->chosen = top->first = 0;
        top->follows = false;
    } else if (key == 's') {
        top->sort = (top->sort + 1) % PRB_TOP_SORTS;
        prb_top_order(top);
    } else if (key == PRB_KEY_ENTER) {
        open_row(top);
    } else {
        move(top, key);
    }
    return true;
}
