/*
 * The mechanism "frame evaluation" between its files: one state for the interpreter, guarded by
 * the GIL.
 *
 * A frame whose events are wanted runs with our trace function in its thread's state; any other
 * runs without, even beneath such a frame.  The frame evaluator (PEP 523) is where that is
 * switched: before a frame runs and after it has ended.  Sources: Python/ceval.c (call_trace,
 * maybe_call_line_trace, PyEval_SetTrace), Python/pystate.c, Objects/codeobject.c of 3.6 to 3.11.
 */
#ifndef PRB_PROBE_DEBUG_EVALUATION_EVALUATION_H
#define PRB_PROBE_DEBUG_EVALUATION_EVALUATION_H

#include <string.h>

#include "inject/probe/debug/debug.h"
#include "py/layout/layout.h"

#define PRB_EVALUATION_LINES_MAX 10000u      /* planted in one code object */
#define PRB_EVALUATION_FRAMES_MAX (1u << 20) /* that run when the hook comes */
#define PRB_EVALUATION_ENTRIES_MAX 4096u     /* threads with a trace function of the program's */

#define PRB_EVALUATION_PLAIN_CODES 1024u
#define PRB_EVALUATION_NOTED_PLACES 4096u

/* Py_tracefunc (Include/pystate.h) and what it is called with. */
typedef int (*prb_trace_function)(struct prb_py *object, struct prb_py *frame, int what,
                                  struct prb_py *value);
enum { PRB_TRACE_CALL, PRB_TRACE_EXCEPTION, PRB_TRACE_LINE, PRB_TRACE_RETURN };

/* result, member, name, parameters: what this mechanism needs beyond python/api.h. */
#define PRB_EVALUATION_FUNCTIONS(F)                                                                \
    F(ptrdiff_t, request_extra, _PyEval_RequestCodeExtraIndex, (void (*)(void *)))                 \
    F(int, get_extra, _PyCode_GetExtra, (struct prb_py *, ptrdiff_t, void **))                     \
    F(int, set_extra, _PyCode_SetExtra, (struct prb_py *, ptrdiff_t, void *))                      \
    F(char *, this_thread, PyThreadState_Get, (void))                                              \
    F(char *, first_thread, PyInterpreterState_ThreadHead, (void *))                               \
    F(char *, next_thread, PyThreadState_Next, (void *))                                           \
    F(int, line_of_frame, PyFrame_GetLineNumber, (struct prb_py *))                                \
    F(int, line_of_code, PyCode_Addr2Line, (struct prb_py *, int))                                 \
    F(int, set_traceback, PyException_SetTraceback, (struct prb_py *, struct prb_py *))            \
    F(void, set_trace, PyEval_SetTrace, (prb_trace_function, struct prb_py *))                     \
    F(struct prb_py *, system, PySys_GetObject, (const char *))                                    \
    F(unsigned long, number, PyLong_AsUnsignedLong, (struct prb_py *))                             \
    F(struct prb_py *, item, PyTuple_GetItem, (struct prb_py *, ptrdiff_t))                        \
    F(void, normalize, PyErr_NormalizeException,                                                   \
      (struct prb_py **, struct prb_py **, struct prb_py **))                                      \
    F(void, restore, PyErr_Restore, (struct prb_py *, struct prb_py *, struct prb_py *))

/* What is wanted of a code object: its extra (PEP 523), freed with it. */
struct prb_evaluation_code {
    struct prb_py *code; /* borrowed: it owns this */
    struct prb_evaluation_code *next, **link;
    unsigned step;     /* events */
    unsigned reported; /* to that watch_new_code(), by its number */
    size_t count;
    int *lines; /* sorted */
};

struct prb_evaluation {
    /* What each call of the program reads, together. */
    bool on;         /* between begin and end */
    bool foreign;    /* beneath our hook lies another evaluator, whose end may take ours out */
    unsigned taken;  /* threads that have our trace function */
    unsigned epoch;  /* counts the changes of what is wanted */
    unsigned raised; /* RAISE, UNWIND of all frames */
    void *default_evaluator;
    int32_t tracefunc, code; /* offsets that the hook needs */

    bool ready; /* all that is found once: */
    const struct prb_py_api *py;
#define F(result, member, name, parameters) result(*member) parameters;
    PRB_EVALUATION_FUNCTIONS(F)
#undef F
    struct prb_layout layout;
    char *runtime; /* _PyRuntime, where the layout needs it */
    ptrdiff_t extra;
    char *interp;

    unsigned gate;      /* events of all frames */
    unsigned new_code;  /* counts watch_new_code(true); 0: off */
    unsigned new_codes; /* its last number */
    unsigned wanting;   /* codes with lines or steps */
    bool plain;         /* no call of the interpreter now */
    struct prb_evaluation_code *codes;
    /* Codes of which nothing is wanted, by address: to be passed on quickly. */
    const struct prb_py *plain_codes[PRB_EVALUATION_PLAIN_CODES];
};
extern struct prb_evaluation prb_evaluation __attribute__((visibility("hidden")));

static inline char *prb_evaluation_word(const char *at, int32_t offset)
{
    char *word;
    memcpy(&word, at + offset, sizeof word);
    return word;
}

/* ---- find.c ---- */

bool prb_evaluation_find(const struct prb_py_api *py, struct prb_error *err);

/* ---- code.c ---- */

/* Where a code object stands among plain_codes.  What stands there is right until something else is
 * wanted, when all go; an address that another object has by then had no data of ours, or went. */
static inline const struct prb_py **prb_evaluation_plain(const struct prb_py *code)
{
    return &prb_evaluation.plain_codes[((uintptr_t)code >> 4) * 0x9e3779b9u >> 16 &
                                       (PRB_EVALUATION_PLAIN_CODES - 1)];
}
/* NULL: nothing is known of it. */
static inline struct prb_evaluation_code *prb_evaluation_code(struct prb_py *code)
{
    void *extra = NULL;
    prb_evaluation.get_extra(code, prb_evaluation.extra, &extra);
    return extra;
}
void prb_evaluation_release_code(void *extra); /* a freefunc */
bool prb_evaluation_plant(struct prb_py *code, const int *lines, size_t count);
bool prb_evaluation_step(struct prb_py *code, unsigned events);
/* It counts as reported now. */
void prb_evaluation_reported(struct prb_py *code);
bool prb_evaluation_planted(const struct prb_evaluation_code *known, int line);
void prb_evaluation_drop_codes(void);
/* Nothing is wanted of any, without a call of the interpreter. */
void prb_evaluation_forget_codes(void);

/* Events for which a frame of it is traced.  Exceptions that leave a frame are not among them: the
 * hook sees those. */
static inline unsigned prb_evaluation_running(const struct prb_evaluation_code *known)
{
    unsigned events = prb_evaluation.gate | (prb_evaluation.raised & PRB_DEBUG_RAISE);
    if (known)
        events |= known->step | (known->count ? PRB_DEBUG_LINE : 0u);
    return events;
}
/* Whether it is to be reported as new. */
static inline bool prb_evaluation_is_new(const struct prb_evaluation_code *known)
{
    return prb_evaluation.new_code && !(known && known->reported == prb_evaluation.new_code);
}

/* ---- thread.c: threads' states and frames ---- */

/* The frame that runs in a thread: a PyFrameObject up to 3.10, else an _PyInterpreterFrame. */
char *prb_evaluation_frame(const char *thread);
char *prb_evaluation_caller(const char *frame);
/* The one of a PyFrameObject. */
char *prb_evaluation_inner(struct prb_py *frame);
/* The PyFrameObject of one, or NULL when it has none. */
struct prb_py *prb_evaluation_outer(char *frame);
/* The line that a LINE event of a frame is about. */
int prb_evaluation_line(struct prb_py *frame, struct prb_py *code);
/* Whether its next instruction is its first. */
bool prb_evaluation_starts(const char *frame);
static inline struct prb_py *prb_evaluation_frame_code(const char *frame)
{
    return (struct prb_py *)prb_evaluation_word(frame, prb_evaluation.code);
}
/* Let a thread's state be right for a frame of which these events are wanted. */
void prb_evaluation_set(char *thread, unsigned events);
/* The same for the frame that it is in. */
void prb_evaluation_apply(char *thread);
void prb_evaluation_apply_all(void);
bool prb_evaluation_tracing(const char *thread); /* it is in a trace function */
/* One level of a trace function, as CPython's call_trace() does it. */
void prb_evaluation_enter(char *thread);
void prb_evaluation_leave(char *thread);
/* The exception that the thread handles, or NULL. */
struct prb_py *prb_evaluation_handled(const char *thread);

/* ---- thread_table.c ---- */

/* What is kept of a thread that has our trace function. */
struct prb_evaluation_entry {
    const char *thread;
    uint64_t id;                 /* the interpreter's number of it, 0: it has none */
    prb_trace_function original; /* the program's, when ours came */
    bool quiet;                  /* it does not count among the threads with a trace function */
    struct prb_py *raised;       /* what passes a noted frame, until its next event */
};
extern size_t prb_evaluation_entry_count;
struct prb_evaluation_entry *prb_evaluation_entry_find(const char *thread);
static inline struct prb_evaluation_entry *prb_evaluation_entry_of(const char *thread)
{
    return prb_evaluation_entry_count ? prb_evaluation_entry_find(thread) : NULL;
}
/* The one of this thread, made when it has none; NULL: no memory. */
struct prb_evaluation_entry *prb_evaluation_entry_make(const char *thread);
/* As it is in the interpreter: another thread may have its place by now. */
uint64_t prb_evaluation_thread_id(const char *thread);
/* It has our function no more. */
void prb_evaluation_keep_less(const char *thread);
/* When no thread has it any more. */
void prb_evaluation_keep_none(void);

/* ---- hook.c ---- */

int prb_evaluation_trace(struct prb_py *object, struct prb_py *frame, int what,
                         struct prb_py *value);
/* Have the hook in the interpreter or not. */
bool prb_evaluation_hook(bool wanted);
/* Back in its place, when another evaluator's end took it out. */
void prb_evaluation_hook_again(void);
/* A trace function at all: ours, or one that the program put in its place. */
static inline bool prb_evaluation_has_function(const char *thread)
{
    return prb_evaluation_word(thread, prb_evaluation.tracefunc) != NULL;
}
static inline bool prb_evaluation_traces(const char *thread)
{
    return prb_evaluation_word(thread, prb_evaluation.tracefunc) ==
           (char *)(uintptr_t)prb_evaluation_trace;
}

/* ---- frames.c: frames that ran before the hook came, so that nothing happens at their
 * end ---- */

bool prb_evaluation_note_frames(void);
void prb_evaluation_forget_frames(void);
extern size_t prb_evaluation_noted; /* how many there still are */
/* How many noted frames have each place: most frames have one where none has. */
extern unsigned char prb_evaluation_noted_places[PRB_EVALUATION_NOTED_PLACES]
    __attribute__((visibility("hidden")));
static inline unsigned char *prb_evaluation_noted_place(const char *frame)
{
    return &prb_evaluation_noted_places[((uintptr_t)frame >> 4) * 0x9e3779b9u >> 20 &
                                        (PRB_EVALUATION_NOTED_PLACES - 1)];
}
bool prb_evaluation_is_noted(const char *frame);
void prb_evaluation_forget_frame(const char *frame);

#endif
