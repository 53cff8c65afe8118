/*
 * What `probing top` shows: the shares of a profile over its last seconds and in all (model.c),
 * drawn as lines (draw.c, draw_steps.c; keys: keys.c) that a terminal (screen.c) or a pipe takes.
 */
#ifndef PRB_CLI_TOP_H
#define PRB_CLI_TOP_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/top/screen.h"
#include "cli/top/steps.h"

enum prb_top_view {
    PRB_TOP_FUNCTIONS,
    PRB_TOP_THREADS,
    PRB_TOP_PROCESSES,
    PRB_TOP_STEPS,
    PRB_TOP_LISTS, /* the views before it can be filtered; the others show one thing */
    PRB_TOP_STACK = PRB_TOP_LISTS,
    PRB_TOP_FUNCTION,
    PRB_TOP_HELP
};

enum prb_top_sort { PRB_TOP_OWN, PRB_TOP_TOTAL, PRB_TOP_OWN_ALL, PRB_TOP_TOTAL_ALL, PRB_TOP_SORTS };

/*
 * What has a row: threads and processes that are there or ended a few seconds ago, and functions
 * that one of those threads was in; ordered by all time, every function.
 *
 * ns; all: since the beginning, else of the last interval
 */
struct prb_top_function {
    uint32_t function;
    uint64_t own, total, own_all, total_all;
    bool there; /* a listed thread was in it */
};

struct prb_top_thread {
    uint32_t thread, node;
    unsigned state; /* PRB_SAMPLED_* */
    const char *waits;
    bool gone; /* not in the last samples */
    /* shares of the last interval: of one CPU; of the samples of its process */
    double cpu, gil, running;
};

/* A line of the chosen function, or a place that calls it; ns since the beginning. */
struct prb_top_spot {
    uint32_t frame;
    bool caller;
    uint64_t own, total;
    uint64_t stamp; /* number of the last stack that counted it, and 1 */
};

struct prb_top_process {
    uint32_t process;
    uint64_t samples;        /* of the last interval */
    size_t threads, running; /* that are there; that did not wait at the last sample */
    double cpu, gil;   /* of one CPU; the share of its samples in which a thread had the GIL */
    uint32_t function; /* with the most own time; UINT32_MAX: none */
    uint64_t own, own_most;
    bool listed; /* it is there, or ended a few seconds ago */
};

/* A view of a profile, valid until the next prb_top_update; unchanged while paused. */
struct prb_top {
    const struct prb_profile *profile;
    struct prb_top_function *functions;
    struct prb_top_thread *threads;
    struct prb_top_process *processes;
    struct prb_top_spot *spots; /* of chosen_function: its lines, then its callers */
    size_t spot_count, spot_cap;
    uint64_t spots_whole; /* ns of all functions */
    size_t function_count, thread_count, process_count;
    struct prb_steps *steps; /* NULL: the view was not shown yet */
    struct prb_steps_row *step_rows;
    size_t step_count, step_cap;
    size_t ended;             /* processes */
    uint64_t own, own_all;    /* ns of all functions */
    double seconds, interval; /* of the profile at the update; since the one before */
    uint64_t samples, dropped, skipped;
    double late;
    const char *note; /* of a job: who does not answer, or NULL */
    /* how it is shown */
    enum prb_top_view view, back;
    enum prb_top_sort sort;
    char filter[64];
    bool typing, paused;
    size_t chosen, first;   /* row of the view; first one on the screen */
    uint32_t chosen_thread; /* whose stack is shown */
    uint32_t chosen_function;
    bool follows; /* the chosen row is that of chosen_thread, wherever that goes */
    bool only;    /* the threads of only_process, no others */
    uint32_t only_process;
    /* the update before */
    uint64_t *weight_before;
    struct {
        uint64_t cpu_ns, samples, gil, idle, dropped;
        double ended; /* s of the profile at the first update without it; 0: it is there */
    } *thread_before;
    struct {
        double ended; /* the same by process */
        uint64_t samples;
    } *process_before;
    uint32_t *stamp, stamps; /* by function: last stack that counted it */
    size_t *places;          /* by function: its index in functions */
    uint64_t *sums;          /* by function: of the process that is added up */
    size_t weight_cap, thread_cap, function_cap, process_cap;
    double seconds_before;
};

void prb_top_deinit(struct prb_top *top);
PRB_DEFINE_AUTO(prb_top, struct prb_top, prb_top_deinit)

/* Compute the shares since the last update.  False: out of memory. */
bool prb_top_update(struct prb_top *top, const struct prb_profile *profile);
/* Order the functions by top->sort. */
void prb_top_order(struct prb_top *top);
/* Make the spots of top->chosen_function.  False: out of memory. */
bool prb_top_spots(struct prb_top *top);
/* Whether a function's name or file has the filter's text in it. */
bool prb_top_passes(const struct prb_top *top, const struct prb_profile_function *function);
/* Whether a function, thread or process has a row in its view: a thread by its name, its process or
 * a function of its stack, a process by its pid, rank or command. */
bool prb_top_function_shown(const struct prb_top *top, const struct prb_top_function *row);
bool prb_top_thread_shown(const struct prb_top *top, const struct prb_top_thread *row);
bool prb_top_process_shown(const struct prb_top *top, const struct prb_top_process *row);
bool prb_top_steps_shown(const struct prb_top *top, const struct prb_steps_row *row);
/* "rank 1", or its pid. */
void prb_top_process_label(const struct prb_top *top, uint32_t index, char text[32]);
/* Innermost first: each(context, frame's index). */
void prb_top_stack_each(const struct prb_profile *profile, uint32_t node,
                        void (*each)(void *, uint32_t), void *context);

/* The screen as lines of at most columns; lines 0: as many as there are rows, top_rows of them. */
void prb_top_draw(struct prb_top *top, struct prb_lines *out, unsigned columns, unsigned lines);
/* Rows that the view has, and those that it had without the filter. */
size_t prb_top_rows(const struct prb_top *top);
size_t prb_top_rows_unfiltered(const struct prb_top *top);
/* The chosen thread keeps its mark when the order changes. */
void prb_top_follow(struct prb_top *top);
/* A key (screen.h); false: quit. */
bool prb_top_key(struct prb_top *top, int key);

#endif
