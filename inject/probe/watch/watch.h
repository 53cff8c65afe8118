/*
 * Watched variables, read in the probe: "loss@train" of a program that trains.
 *
 * The functions are found by the name of their code, which CPython interns: a frame's code has the
 * very string that the name here is.  So nothing is looked up outside, and code that is made later,
 * or made anew, is found as well.  Values are read from memory by the layout of the interpreter's
 * version; no object is changed, none is called.  A thread's own frames and what their locals refer
 * to are read directly; what lies deeper, where the GIL is not held, through the kernel.
 *
 * MOMENTS.  A variable is read when its function returns (returns.c), when an outermost backward
 * ends and when the anchor's step ends (torch/hooks.h); where the step's thread asks for a batch next,
 * once more then, as "loss = train_step(batch)" has its value only after the anchor's step.  The last
 * value of a step makes its row.  As long as there are no steps, each return makes one.
 *
 * THREADS.  Moments come on the program's threads, some without the GIL: one lock, held for less
 * than a microsecond.
 */
#ifndef PRB_PROBE_WATCH_WATCH_H
#define PRB_PROBE_WATCH_WATCH_H

#include "inject/probe/python/api.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/hooks.h"
#include "inject/probe/torch/spec.h"
#include "py/layout/layout.h"
#include "training/watched.h"

#define PRB_WATCH_TEXT_MAX 256 /* bytes of a str's value, and of a type's name */

/* ---- facts.c: what is found of the interpreter, once ---- */

struct prb_watch_facts {
    struct prb_layout layout;
    struct prb_py *(*intern)(const char *text); /* with the GIL; NULL: not found yet */
    struct prb_py *(*new_reference)(struct prb_py *object, struct prb_py *callback);
    const char *cell, *none, *module_key; /* "__module__", interned */
    const char *float_type, *int_type, *bool_type, *str_type, *dict_type, *list_type, *tuple_type;
};
extern struct prb_watch_facts prb_watch_facts;

/* With the GIL.  UNSUPPORTED: this interpreter cannot be read. */
bool prb_watch_facts_find(const struct prb_py_api *py, struct prb_error *err);

/* How memory is read: directly, or through the kernel, where it may go meanwhile. */
struct prb_watch_reader {
    bool direct;
};
bool prb_watch_read(const struct prb_watch_reader *reader, const char *at, void *out, size_t len);
/* A field of the layout, of at most 8 bytes, as a number; absent: false. */
bool prb_watch_field(const struct prb_watch_reader *reader, const char *at, enum prb_field field,
                     uint64_t *out);
#define PRB_WATCH_FIELD(reader, at, struct_, name, out)                                            \
    prb_watch_field(reader, at, PRB_F_##struct_##_##name, out)
const char *prb_watch_type_of(const struct prb_watch_reader *reader, const char *object);

/* ---- follow.c: attributes, keys and indices ---- */

/* key: an interned str.  NULL: there is none. */
const char *prb_watch_dict_get(const struct prb_watch_reader *reader, const char *dict,
                               const char *key);
const char *prb_watch_attribute(const struct prb_watch_reader *reader, const char *object,
                                const char *key);
const char *prb_watch_item(const struct prb_watch_reader *reader, const char *sequence,
                           int64_t index);

/* ---- value.c ---- */

struct prb_watch_value {
    bool bound;      /* the variable had a value; else all is NULL */
    bool has_number; /* of an int, float or bool, a numpy scalar, a tensor of one element */
    double number;
    const char *type;      /* its name; it stays */
    bool why;              /* text says why there is no value */
    unsigned ticket;       /* it is on its way from a device (device.c); 0: no */
    unsigned char element; /* … and what it is of */
    size_t text_len;
    char text[PRB_WATCH_TEXT_MAX]; /* of a str, and of an int that a double does not hold */
};
void prb_watch_value(const struct prb_watch_reader *reader, const char *object,
                     struct prb_watch_value *out);
/* With the bytes that came from the device. */
void prb_watch_value_arrived(uint64_t bytes, struct prb_watch_value *out);
void prb_watch_value_of_int(int64_t number, struct prb_watch_value *out);
/* No value: object has not what the rest of the text names, from its place at on. */
void prb_watch_value_ends(const struct prb_watch_reader *reader, const char *object,
                          const char *text, size_t at, size_t end, struct prb_watch_value *out);
/* bytes of UTF-8; 0: it cannot be read. */
size_t prb_watch_str(const struct prb_watch_reader *reader, const char *str, char *out, size_t cap);

/* ---- locals.c ---- */

/* The place of a local in frames of a code; -1: it has none of that name. */
int prb_watch_local_index(const char *code, const char *name);
/* Whether its variables are in a dict, as those of a module's body: any name may come to be. */
bool prb_watch_has_names(const char *code);
/* The variable itself; reader: for the body of a module, whose names are in a dict; *number_out: an int that the frame has instead of an object.  NULL and no
 * number: not bound. */
const char *prb_watch_local(const struct prb_watch_reader *reader, const char *frame,
                            const char *code, int index, const char *name, bool *is_number,
                            int64_t *number_out);

/* ---- list.c: what is watched ---- */

struct prb_watch_function {
    char name[PRB_WATCHED_TEXT_MAX];   /* as it was written */
    char module[PRB_WATCHED_TEXT_MAX]; /* "": any */
    struct prb_py *last;               /* interned: co_name; NULL: whoever calls, see caller.c */
    const char *text;                  /* co_name that may not be interned; else NULL */
    bool dotted;                       /* name is a qualified one */
    bool ends_step;                    /* as probing.torch.step says */
    unsigned on_stack;                 /* steps in a row at whose end a frame of it was found */
    bool found;                        /* at this moment */
};

struct prb_watch_variable {
    char text[PRB_WATCHED_TEXT_MAX];
    unsigned function;
    bool asked; /* else it is read along, for training_logs */
    struct prb_py *name;
    size_t step_count;
    struct prb_watch_step {
        bool is_attribute, is_index;
        struct prb_py *key;
        int64_t index;
        size_t at; /* where it is written in text */
    } steps[PRB_WATCHED_STEPS_MAX];
    char where[PRB_WATCHED_TEXT_MAX]; /* the function in which it was found, where none is named */
    bool read;                        /* since the last row */
    bool by_return;                   /* … outside of all moments */
    int64_t thread;
    const char *code; /* whose frame it was read from, to compare alone */
    struct prb_watch_value value;
    /* What the step that ended last has, until the next thing begins. */
    struct prb_watch_held {
        bool is;
        bool again; /* it stands in a frame that may still change it */
        int64_t thread;
        struct prb_watch_value value;
    } held;
    bool late; /* it got its value after the end of the anchor's step, in the step before */
};

#define PRB_WATCH_VARIABLES_MAX (3 * PRB_WATCHED_MAX)
#define PRB_WATCH_FUNCTIONS_MAX (PRB_WATCHED_MAX + 1) /* with that which ends a step */
struct prb_watch_list {
    unsigned function_count, variable_count;
    struct prb_watch_function functions[PRB_WATCH_FUNCTIONS_MAX];
    struct prb_watch_variable variables[PRB_WATCH_VARIABLES_MAX];
};

/* With the GIL: "loss@train,acc1@train" with names interned, and the function whose return ends a
 * step ("": none). */
bool prb_watch_list_make(const struct prb_py_api *py, const char *exprs, const char *step,
                         struct prb_watch_list *out, struct prb_error *err);
void prb_watch_list_drop(struct prb_watch_list *list);
/* Whether the co_name of a code is this text, such as "<module>": 3.11 does not intern that one. */
bool prb_watch_is_named(const char *name, const char *text);
/* Whether a code object is of a function; of the one that nobody named, none is. */
bool prb_watch_is(const struct prb_watch_function *function, const char *code);

/* ---- caller.c ---- */

/* "loss@" is the variable of the innermost frame outside of PyTorch in which it has a value. */
bool prb_watch_is_torch(const char *code);
/* co_name */
void prb_watch_function_name(const char *code, char out[PRB_WATCHED_TEXT_MAX]);

/* ---- rate.c: the learning rate; with moments.c's lock ---- */

/* With the GIL: forget, and hold nothing. */
void prb_watch_rate_begin(void);
/* An optimizer that is to get a weak reference: a reference to it, or NULL. */
struct prb_py *prb_watch_rate_at(const struct prb_torch_now *now);
/* With the GIL, without the lock, as the program's code may run: that reference, or NULL. */
struct prb_py *prb_watch_rate_refer(struct prb_py *optimizer);
/* With the GIL: it is kept; what comes back is to be dropped. */
struct prb_py *prb_watch_rate_keep(struct prb_py *optimizer, struct prb_py *reference);
/* What was read since; NULL: nothing. */
const struct prb_watch_value *prb_watch_rate_take(void);

/* ---- device.c: values on a device; with moments.c's lock ---- */

/* Begin to copy an element; its ticket, 0: not now. */
unsigned prb_watch_device_begin(const void *from, size_t size, int device);
/* It is taken later, however long that lasts.  False: another one has its place. */
bool prb_watch_device_keep(unsigned ticket);
/* False: it has not come yet. */
bool prb_watch_device_take(unsigned ticket, uint64_t *out);
void prb_watch_device_forget(void);
void prb_watch_device_forked(void);

/* ---- moments.c ---- */

/* With the GIL: watch these from now on; NULL: nothing.  What was watched comes back, to be freed. */
struct prb_watch_list *prb_watch_set(struct prb_watch_list *list);
/* With the GIL, on a thread of the program: a frame of a watched function ends. */
void prb_watch_returned(const char *frame, const char *code);
/* Whether a code object may be of a watched function, by the name alone. */
bool prb_watch_knows(const char *code);
/* Rows go there from now on; false: err. */
bool prb_watch_rows_begin(struct prb_error *err);
/* Values that still wait for their step become rows. */
void prb_watch_rows_end(void);
void prb_watch_moments_forked(void);

/* ---- returns.c (3.12+), evaluator.c (3.6 to 3.11): with the GIL ---- */

/* NOT_FOUND: this interpreter has none. */
bool prb_watch_monitoring_begin(const struct prb_py_api *py, struct prb_error *err);
void prb_watch_monitoring_end(const struct prb_py_api *py);
bool prb_watch_evaluator_begin(const struct prb_py_api *py, struct prb_error *err);
/* In only where a function is not found on the stack when steps end. */
void prb_watch_evaluator_needed(bool needed);
void prb_watch_evaluator_end(void);
void prb_watch_evaluator_forked(void);

#endif
