/*
 * One process that is sampled: its threads' seats, and how a raw sample becomes stacks of the
 * profile.
 *
 * A seat remembers what its thread's last stack was named, frame by frame from the outermost:
 * only what differs is named anew, and the code objects of the rest are proven the same
 * (py/code.h).
 *   member.c  the process, its threads, one sample
 *   rest.c    samples in which most threads rest, and are not even visited
 *   name.c    a chain of frames made into a stack of the profile
 *   native.c  the same with native frames
 *   async.c   the tasks of asyncio between a loop's frames and those of the task that it runs
 *   count.c   what a thread does, what counts by mode, and its stays
 */
#ifndef PRB_SAMPLE_MEMBER_H
#define PRB_SAMPLE_MEMBER_H

#include "inspect/target.h"
#include "profile/profile.h"
#include "sample/doing.h"

/* A frame as it was named: its node is the stack from the outermost down to it. */
struct prb_named {
    const struct prb_code_object *code; /* NULL: a shim, which has no name */
    int32_t instruction;
    uint32_t node;
};

/* Rows of the profile that stand above a frame: the tasks that wait for the one whose own frame
 * it is, and that one. */
struct prb_between {
    prb_addr frame; /* of the target; 0: none */
    uint32_t *rows; /* frames of the profile, outermost first */
    size_t count, cap;
};

struct prb_seat {
    uint32_t runtime;
    prb_addr tstate;
    uint64_t thread_id, native_id;
    uint32_t thread;         /* of the profile */
    uint64_t seen;           /* the member's sample that found it in the list */
    uint64_t counted;        /* and the last one that it was counted in */
    size_t raw;              /* in that sample: index in its runtime's threads */
    bool told;               /* in that sample: node is its stack */
    struct prb_named *chain; /* outermost first */
    size_t count, cap;
    uint32_t node;     /* the stack of its Python frames */
    uint32_t whole;    /* and with the tasks between them, if wanted */
    uint32_t whole_of; /* the node whose whole it is */
    struct prb_between between;
    uint32_t shown;  /* and the one that is counted: with native frames, if wanted */
    uint32_t weight; /* of thread and weight_node; PRB_NO_ITEM: none yet */
    uint32_t weight_node;
    bool has_task;
    unsigned asked; /* how often its name and task were looked for */
    struct prb_doing doing;
    unsigned unasked;     /* samples since doing was looked at */
    unsigned asked_every; /* looked at in one of so many samples while it rests; 0: at once */
    /* processor time used in such samples and not counted yet, below one period */
    uint64_t owed_ns;
    /* with native frames: the stack of native_of, taken when its thread came to wait */
    uint32_t native_node;
    uint32_t native_of;
    uint64_t native_turns; /* doing.turns then; no turn since: it stands there still */
    bool native_kept;
    bool open; /* a stay under way */
    struct {
        uint32_t node;
        unsigned state;
        uint64_t start, samples, ns;
    } stay;
};

/* Where an instruction of a code object stands in the profile. */
struct prb_place {
    const struct prb_code_object *code;
    int32_t instruction;
    uint32_t frame;
};

/* What is known of a program counter. */
struct prb_spot {
    prb_addr pc;
    const char *symbol; /* kept, or NULL: it has none */
    uint32_t frame;
};

struct prb_naming {         /* one for each runtime of the target */
    struct prb_view *codes; /* identities of the code objects in use */
    struct prb_folders folders;
    uint64_t asyncio_after; /* ns: when asyncio is looked for again */
    bool asyncio;           /* it is imported */
    uint32_t *seat_of;      /* by raw thread: seats[…], PRB_NO_ITEM: none */
    size_t seat_of_cap;
    uint64_t serial; /* of the reading that it is of */
};

struct prb_member {
    struct prb_target *target;
    const struct prb_profiler_options *options; /* borrowed */
    struct prb_profile_box *box;                /* borrowed */
    uint32_t process;
    int pidfd;
    bool ended;
    uint64_t number; /* of its samples */
    struct prb_naming *naming;
    struct prb_seat **seats;
    size_t seat_count, seat_cap;
    struct prb_index seat_index;
    uint64_t *due; /* by seat: the sample in which to visit it next */
    size_t due_cap;
    bool may_rest; /* seats that are not visited in the next sample rest */
    struct prb_place *places;
    size_t place_count, place_cap;
    struct prb_index place_index;
    struct prb_spot *spots;
    size_t spot_count, spot_cap;
    struct prb_index spot_index;
    uint64_t spots_of;       /* prb_unwinder_code when they were named */
    uint64_t renew_after;    /* ns: when the target's maps are read again */
    struct prb_arena arena;  /* folders */
    bool newcomers;          /* seats whose name and task are not known */
    size_t task_names;       /* of tasks, that are shown by them */
    uint64_t identify_after; /* ns; looking for them again before costs too much */
    unsigned failures;       /* samples in a row that told nothing */
};

/* The clock of one sample, ns since the profile's start. */
struct prb_moment {
    uint64_t now;
    uint64_t period; /* what one sample stands for */
};

struct prb_member *prb_member_new(struct prb_profile_box *box,
                                  const struct prb_profiler_options *options, pid_t pid,
                                  double start, struct prb_error *err);
void prb_member_free(struct prb_member *member);
PRB_DEFINE_AUTO_PTR(prb_member, struct prb_member, prb_member_free)
/* False: this look told nothing. */
bool prb_member_sample(struct prb_member *member, const struct prb_moment *moment,
                       struct prb_error *err);
/* Its process ended, or the profile does: stays that are under way end. */
void prb_member_close(struct prb_member *member, uint64_t now);

/* The samples that resting seats were left out of are counted.  To be asked before the profile
 * is read. */
void prb_member_catch_up(struct prb_member *member);

/* ---- rest.c ---- */
/* After a sample that visited all seats: which need no visit in the next ones. */
void prb_rest_begin(struct prb_member *member);
/* Whether the readings just taken prove that only the seats that are due need a visit; marks the
 * active ones as due. */
bool prb_rest_stands(struct prb_member *member);
/* A seat was visited: count the samples before that it was left out of; choose the next visit. */
void prb_rest_missed(struct prb_member *member, struct prb_seat *seat, uint64_t samples);
uint64_t prb_rest_next(const struct prb_member *member, const struct prb_seat *seat);

/* ---- name.c ---- */
/* Name the chain of raw thread k for its seat: sets told and node.  False: it could not be told. */
bool prb_name_thread(struct prb_member *member, struct prb_seat *seat, size_t k);
uint32_t prb_name_frame(struct prb_member *member, size_t runtime,
                        const struct prb_code_object *code, int32_t instruction);
/* Make room for what is read later; forgets names when the code cache has grown too large. */
void prb_name_begin(struct prb_member *member, size_t runtime);

/* ---- native.c ---- */
/* Before the seats of one sample are counted. */
bool prb_native_begin(struct prb_member *member, uint64_t now, struct prb_error *err);
/*
 * The stack of a seat's thread with its native frames, taken now: sets shown.  False: there is
 * none.  *waits_out: what the innermost native frames wait for although the thread runs
 * ("CUDA"), or NULL.
 */
bool prb_native_name(struct prb_member *member, struct prb_seat *seat, const char **waits_out);

/* ---- async.c ---- */
/* Before the seats of one sample of a runtime are named. */
void prb_async_begin(struct prb_member *member, size_t runtime, uint64_t now);
/* The stack of a seat that was told, with the tasks between. */
uint32_t prb_async_stack(struct prb_member *member, struct prb_seat *seat, size_t k);
uint32_t prb_async_add(struct prb_member *member, const struct prb_between *between, prb_addr frame,
                       uint32_t node);

/* ---- count.c ---- */
void prb_count_seat(struct prb_member *member, struct prb_seat *seat,
                    const struct prb_moment *moment);
/* Whether the seat's thread waited when it was asked, and nothing moved it since. */
bool prb_count_rests(const struct prb_member *member, const struct prb_seat *seat);
void prb_close_stay(struct prb_member *member, struct prb_seat *seat, uint64_t now);

#endif
