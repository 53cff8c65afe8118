/*
 * Does a job hang, who is to blame, who waits for it.
 *
 * Each rank is looked at twice, some seconds apart: its stacks with native frames, what its threads
 * used of the CPU, local variables, and, where it has a probe, the Flight Recorder of
 * torch.distributed (hang/evidence.c).  The verdict (hang/verdict.c) follows rules in their order:
 * somebody who waits has moved; a rank is gone; one is stopped; who waits for whom by the recorders;
 * calls that do not match; ranks in no collective while others wait; different call sites; all in
 * one.
 */
#ifndef PRB_FLEET_HANG_H
#define PRB_FLEET_HANG_H

#include "fleet/coverage.h"

/* What a thread is at: HANG_KIND(NAME, name in JSON, what is said of it). */
enum prb_hang_kind {
#define HANG_KIND(NAME, name, text) PRB_HANG_##NAME,
#include "fleet/hang/kinds.def"
#undef HANG_KIND
    PRB_HANG_KINDS
};
PRB_API const char *prb_hang_kind_name(enum prb_hang_kind kind);
PRB_API const char *prb_hang_kind_text(enum prb_hang_kind kind);

struct prb_hang_frame {
    const char *name, *file; /* qualified; short */
    int line;
};

/* How far a rank is in a process group, by its recorder. */
struct prb_hang_group {
    const char *name;
    int64_t sequence; /* of the last collective that it began */
    bool open;        /* which has not ended */
    const char *operation, *sizes;
    double begun; /* s since the epoch, by its host's clock; 0: not known */
};

/* What is known of one rank. */
struct prb_hang_rank {
    int rank; /* -1: a process that is looked at by itself */
    pid_t pid;
    const char *host;
    enum prb_coverage_state state; /* what follows is of those that answered */
    const char *reason;            /* or NULL */
    enum prb_hang_kind kind;
    char os_state;            /* of its main thread, letter of /proc/PID/stat */
    const char *wait_channel; /* in the kernel, or "" */
    bool moved;               /* between the views */
    bool looped;              /* if so, in the same function */
    bool works;               /* other threads of its own used the CPU */
    double span;              /* s between the views */
    double cpu;               /* s that the main thread used meanwhile */
    const char *operation;    /* of a collective: "all_reduce"; else "" */
    const char *site;   /* innermost line of the program's own code: "sync (train.py:47)", or "" */
    const char *inside; /* the native function that it is in, or "" */
    const char *holder; /* who has the GIL that it waits for, or "" */
    struct prb_hang_frame *frames; /* Python's, innermost first */
    size_t frame_count;
    struct prb_hang_group *groups; /* NULL: no recorder was read */
    size_t group_count;
};

/* Ranks of one cause, or that wait at one place. */
struct prb_hang_part {
    struct prb_rank_set ranks;
    const struct prb_hang_rank *example; /* the lowest of them */
    enum prb_hang_kind kind;
    char text[400]; /* "is in no collective", "all_reduce #21 of dp0 at sync (train.py:47)" */
};
struct prb_hang_parts {
    struct prb_hang_part *items;
    size_t count, cap;
};

struct prb_hang {
    struct prb_hang_rank *ranks; /* ascending */
    size_t count, cap;
    void *kept; /* the texts: a json_t array */

    /* the verdict */
    bool hung;
    struct prb_hang_parts cause, waiting, slow;
    double span;       /* s that were watched */
    double since;      /* s that it hangs */
    bool since_exact;  /* by a recorder; else it is at least so long */
    size_t recorders;  /* ranks whose recorder was read */
    char summary[200]; /* "no movement in 2.0 s" */
};

/* Begins as {0}; the result of the kind "hang", whose args are every (s between the views), views (2), and of
 * "hang_deep", which loads a probe for the recorder. */
PRB_API void prb_hang_deinit(struct prb_hang *hang);
PRB_DEFINE_AUTO(prb_hang, struct prb_hang, prb_hang_deinit)
/* The verdict on what was collected; coverage (NULL: of one process) has the ranks that did not answer. */
PRB_API bool prb_hang_judge(struct prb_hang *hang, const struct prb_coverage *coverage,
                            struct prb_error *err);
/* Look at one process, whatever it is: at least twice. */
PRB_API bool prb_hang_look(pid_t pid, double every, int views, struct prb_hang *out,
                           struct prb_error *err);
/* {"hung", "cause", "waiting", "slow", "since", "since_at_least", "span", "summary"}, with
 * "coverage" unless that is NULL. */
PRB_API void prb_hang_json(const struct prb_hang *hang, const struct prb_coverage *coverage,
                           FILE *out);
/* "hung for at least 2.1 s". */
PRB_API void prb_hang_since_text(const struct prb_hang *hang, char *out, size_t size);
/* The command to type next for a cause.  job: "@NAME", or NULL: of one process. */
PRB_API void prb_hang_next(const struct prb_hang *hang, const struct prb_hang_part *part,
                           const char *job, char *out, size_t size);

#endif
