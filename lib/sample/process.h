/*
 * One process that is sampled: its threads, and how a raw sample becomes stacks of the profile.
 *
 * Per thread the names of the last stack are saved, outermost first, so that only changed frames
 * are looked up again; the code objects of the others are proven to be the same (py/code.h).
 *   process.c  the process, its threads, one sample
 *   idle.c     samples in which most threads are idle, and are not even visited
 *   name.c     a chain of frames made into a stack of the profile
 *   native.c   the same with native frames
 *   async.c    the tasks of asyncio between a loop's frames and those of the task that it runs
 *   count.c    what a thread does, what counts by mode, and its intervals in the timeline
 */
#ifndef PRB_SAMPLE_PROCESS_H
#define PRB_SAMPLE_PROCESS_H

#include "inspect/target.h"
#include "profile/profile.h"
#include "sample/activity.h"

/* A frame as it was named: its node is the stack from the outermost down to it. */
struct prb_named_frame {
    const struct prb_code_object *code; /* NULL: a shim, which has no name */
    int32_t instruction;
    uint32_t node;
};

/* Rows of the profile above a frame, which is a task's first: the tasks that wait for this task,
 * and the task itself. */
struct prb_task_rows {
    prb_addr frame; /* of the target; 0: none */
    uint32_t *rows; /* frames of the profile, outermost first */
    size_t count, cap;
};

struct prb_sampled_thread {
    uint32_t runtime;
    prb_addr tstate;
    uint64_t thread_id, native_id;
    uint32_t index;                /* among the profile's threads */
    uint64_t seen;                 /* the last sample of the process that found it */
    uint64_t counted;              /* the last sample that it was counted in */
    size_t raw;                    /* in that sample: its index in the runtime's threads */
    bool has_stack;                /* in that sample: node is its stack */
    struct prb_named_frame *chain; /* outermost first */
    size_t count, cap;
    uint32_t node;          /* the stack of its Python frames */
    uint32_t with_tasks;    /* the same with the tasks between them, if wanted */
    uint32_t with_tasks_of; /* the node that with_tasks was made of */
    struct prb_task_rows task_rows;
    uint32_t counted_node; /* the stack that is counted: with native frames, if wanted */
    uint32_t weight;       /* of the thread and weight_node; PRB_NO_ITEM: none yet */
    uint32_t weight_node;
    bool has_task;
    unsigned name_tries; /* how often its name and task were looked for */
    struct prb_activity activity;
    unsigned activity_age;   /* samples since activity was read */
    unsigned activity_every; /* read in one of so many samples while it is idle; 0: in the next */
    /* CPU time used in the samples between and not counted yet, below one period */
    uint64_t uncounted_ns;
    /* native frames: native_node is native_of with them, as it was when the thread began to wait */
    uint32_t native_node;
    uint32_t native_of;
    uint64_t native_turns; /* activity.turns then: as long as it is the same, nothing moved */
    bool native_known;
    /* the native frames that lead to its outermost Python frame, and that one's function: for
     * samples whose native frames cannot be read; 0: not known yet */
    uint32_t native_root, native_root_function;
    bool open; /* an interval is under way */
    struct {
        uint32_t node;
        unsigned state;
        uint64_t start, samples, ns;
    } interval;
};

/* Where an instruction of a code object stands in the profile. */
struct prb_named_instruction {
    const struct prb_code_object *code;
    int32_t instruction;
    uint32_t frame;
};

/* What is known of a program counter. */
struct prb_named_pc {
    prb_addr pc;
    const char *symbol; /* of the profile's texts; NULL: it has none */
    uint32_t frame;
};

struct prb_runtime_names {  /* one for each runtime of the target */
    struct prb_view *codes; /* identities of the code objects in use */
    struct prb_folders folders;
    uint64_t asyncio_after; /* ns: when to look for asyncio again */
    bool asyncio;           /* it is imported */
    uint32_t *thread_of;    /* by raw thread: threads[…], PRB_NO_ITEM: none */
    size_t thread_of_cap;
    uint64_t serial; /* of the reading that thread_of belongs to */
    uint64_t ended;  /* of the code objects that ended until the last naming; 0: not known */
    uint64_t named;  /* of the last reading whose stacks were named */
    unsigned stood;  /* readings until then with the stacks and code objects of the one before */
};

struct prb_sampled_process {
    struct prb_target *target;
    const struct prb_profiler_options *options; /* borrowed */
    struct prb_profile_box *box;                /* borrowed */
    uint32_t index;                             /* among the profile's processes */
    int pidfd;
    bool ended;
    uint64_t number; /* of its samples */
    struct prb_runtime_names *names;
    struct prb_sampled_thread **threads;
    size_t thread_count, thread_cap;
    struct prb_index thread_index;
    uint64_t *due; /* by thread: the sample in which to visit it next */
    size_t due_cap;
    bool may_skip; /* threads that the next sample does not visit are idle */
    struct prb_named_instruction *instructions;
    size_t instruction_count, instruction_cap;
    struct prb_index instruction_index;
    struct prb_named_pc *pcs;
    size_t pc_count, pc_cap;
    struct prb_index pc_index;
    uint64_t pcs_of;         /* prb_unwinder_code when they were named */
    uint64_t renew_after;    /* ns: when to read the target's maps again */
    struct prb_arena arena;  /* folders */
    bool unnamed;            /* the name and kernel thread of some thread are not known */
    size_t task_names;       /* tasks that are shown by their own names */
    uint64_t identify_after; /* ns; looking for names before would cost too much */
    unsigned failures;       /* samples in a row that failed */
};

/* The clock of one sample, ns since the profile's start. */
struct prb_moment {
    uint64_t now;
    uint64_t period; /* what one sample stands for */
};

struct prb_sampled_process *prb_sampled_process_new(struct prb_profile_box *box,
                                                    const struct prb_profiler_options *options,
                                                    pid_t pid, double start, struct prb_error *err);
void prb_sampled_process_free(struct prb_sampled_process *process);
PRB_DEFINE_AUTO_PTR(prb_sampled_process, struct prb_sampled_process, prb_sampled_process_free)
/* One sample.  False: nothing could be read. */
bool prb_sampled_process_sample(struct prb_sampled_process *process,
                                const struct prb_moment *moment, struct prb_error *err);
/* The process ended, or the profile does: end the intervals that are under way. */
void prb_sampled_process_close(struct prb_sampled_process *process, uint64_t now);

/* Count the samples that idle threads were left out of.  Call it before the profile is read. */
void prb_sampled_process_catch_up(struct prb_sampled_process *process);

/* ---- idle.c ---- */
/* After a sample that visited all threads: choose which need no visit in the next ones. */
void prb_idle_begin(struct prb_sampled_process *process);
/* Whether the readings just taken prove that only the threads that are due need a visit; marks the
 * active ones as due. */
bool prb_idle_proven(struct prb_sampled_process *process);
/* A thread is visited: count the samples before that it was left out of. */
void prb_idle_count_missed(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                           uint64_t samples);
/* The sample in which to visit it next. */
uint64_t prb_idle_next_visit(const struct prb_sampled_process *process,
                             const struct prb_sampled_thread *thread);

/* ---- name.c ---- */
/* Name the chain of raw thread k: sets has_stack and node.  False: there is no stack to count. */
bool prb_name_thread(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     size_t k);
uint32_t prb_name_frame(struct prb_sampled_process *process, size_t runtime,
                        const struct prb_code_object *code, int32_t instruction);
/* Before the threads of one sample are named.  Forgets names when the code cache is too large. */
void prb_name_begin(struct prb_sampled_process *process, size_t runtime);

/* ---- native.c ---- */
/* Before the threads of one sample are counted. */
bool prb_native_begin(struct prb_sampled_process *process, uint64_t now, struct prb_error *err);
/*
 * The stack of a thread with its native frames, taken now: sets counted_node.  False: there is
 * none.  *waits_out: what the innermost native frames wait for although the thread runs ("CUDA"),
 * or NULL.
 */
bool prb_native_name(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     const char **waits_out);

/* ---- async.c ---- */
/* Before the threads of one sample of a runtime are named. */
void prb_async_begin(struct prb_sampled_process *process, size_t runtime, uint64_t now);
/* The stack of a thread that has one, with its tasks. */
uint32_t prb_async_stack(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                         size_t k);
/* node, with the tasks' rows on top where frame is the one that they stand above. */
uint32_t prb_async_add(struct prb_sampled_process *process, const struct prb_task_rows *tasks,
                       prb_addr frame, uint32_t node);

/* ---- count.c ---- */
void prb_count_thread(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                      const struct prb_moment *moment);
/* Samples more of a thread that was unmoved in them, as in its last one. */
void prb_count_again(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     uint64_t samples);
bool prb_thread_unmoved(const struct prb_sampled_process *process,
                        const struct prb_sampled_thread *thread);
/* Whether the thread waited when its activity was read, and nothing moved it since. */
bool prb_thread_still_waits(const struct prb_sampled_process *process,
                            const struct prb_sampled_thread *thread);
void prb_close_interval(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                        uint64_t now);

#endif
