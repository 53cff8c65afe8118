/*
 * A profile under construction: the tables of struct prb_profile, every entry once, and the
 * timeline.
 *
 * Out of memory is sticky: failed is set, and later additions do nothing.
 */
#ifndef PRB_PROFILE_PROFILE_H
#define PRB_PROFILE_PROFILE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/index.h"
#include "proc/ids.h"

#define PRB_PROFILE_NODES_MAX 4000000  /* stacks; another is counted as its longest known part */
#define PRB_PROFILE_THREADS_MAX 100000 /* all later ones are counted as one */

/* When each stack was seen: intervals in the order in which they ended, as variable-length numbers.
 * What exceeds PRB_TIMELINE_KEPT goes to a file without a name (timeline.c). */
#define PRB_TIMELINE_KEPT (8u << 20)
struct prb_timeline {
    bool wanted;
    struct prb_buf bytes;
    int fd; /* -1: none */
    uint64_t spilled;
    uint64_t last_start; /* ns */
    bool lost;           /* writing to the file failed: some are missing */
};

/* Root folders of sampled processes, kept open (root.c). */
#define PRB_PROFILE_ROOTS_MAX 64
struct prb_root {
    uint64_t device, inode, mount_inode;
    /* the folder, and its mount namespace: the mounts would end with the last process */
    int folder, mounts;
};
struct prb_where {
    int root;           /* in roots; -1: not known */
    struct prb_ids ids; /* whose file rights it had */
    const char *folder; /* its working folder below that, or NULL */
};

struct prb_profile_box {
    struct prb_profile profile; /* first; its arrays are those below */
    struct prb_arena arena;     /* texts */
    const char **texts;
    struct prb_profile_process *processes;
    struct prb_profile_thread *threads;
    struct prb_profile_function *functions;
    struct prb_profile_frame *frames;
    struct prb_profile_node *nodes;
    struct prb_profile_weight *weights;
    size_t text_count, text_cap, process_cap, thread_cap, function_cap, frame_cap, node_cap,
        weight_cap;
    struct prb_index text_index, function_index, frame_index, node_index, weight_index;
    struct prb_index process_index, thread_index; /* of those that prb_profile_add added */
    struct prb_timeline timeline;
    struct prb_root roots[PRB_PROFILE_ROOTS_MAX];
    struct prb_where *wheres; /* by process */
    size_t root_count, where_count, where_cap;
    bool failed;
};

struct prb_profile_box *prb_profile_new(struct prb_error *err);
PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

/* The string, saved once, as UTF-8 (U+FFFD for other bytes); NULL for NULL, and when out of
 * memory. */
const char *prb_profile_text(struct prb_profile_box *box, const char *text);
/* Indices; the strings of function must come from prb_profile_text. */
uint32_t prb_profile_process(struct prb_profile_box *box,
                             const struct prb_profile_process *process);
uint32_t prb_profile_thread(struct prb_profile_box *box, const struct prb_profile_thread *thread);
uint32_t prb_profile_function(struct prb_profile_box *box,
                              const struct prb_profile_function *function);
uint32_t prb_profile_frame(struct prb_profile_box *box, uint32_t function, int line);
uint32_t prb_profile_node(struct prb_profile_box *box, uint32_t parent, uint32_t frame);
uint32_t prb_profile_weight(struct prb_profile_box *box, uint32_t thread, uint32_t node);
/* Add an interval to the timeline, if there is one.  Times in ns since the start. */
void prb_profile_add_interval(struct prb_profile_box *box, uint32_t thread, uint32_t node,
                              unsigned state, uint64_t start, uint64_t end, uint64_t samples,
                              uint64_t ns);

/* root.c: remember where a live process finds its files; open a regular file for reading, with its rights, by the
 * name that the process uses for it.  -1 with errno. */
void prb_profile_find_root(struct prb_profile_box *box, uint32_t process, pid_t pid);
int prb_profile_open_file(const struct prb_profile *profile, uint32_t process, const char *path);
void prb_roots_deinit(struct prb_profile_box *box);

/* timeline.c */
void prb_timeline_add(struct prb_timeline *timeline, const struct prb_profile_interval *interval,
                      uint64_t start, uint64_t end);
void prb_timeline_deinit(struct prb_timeline *timeline);

#endif
