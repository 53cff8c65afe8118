/*
 * Talking to a probe: the client of its control socket (inject/probe/server/protocol.h).
 *
 * Every request gets any number of parts (output as it comes) and exactly one end.  One connection
 * serves one thread of the caller; requests of one connection may overlap (cancel is one).
 *
 * Errors of every request, beside its own: GONE (the probe ended or hung up), TIMEOUT (it accepts
 * no message or does not answer), CORRUPT (its answer cannot be parsed), NOMEM, and those that the
 * probe reports.
 */
#ifndef PRB_INJECT_CONTROL_H
#define PRB_INJECT_CONTROL_H

#include "probing.h"

struct prb_control;

/* Connect to the probe of a process (found through /proc/PID/root, so containers work), or to a
 * socket by its path, and shake hands: both sides check the other's credentials.  NOT_FOUND: there
 * is no probe. */
PRB_API struct prb_control *prb_control_open(pid_t pid, struct prb_error *err);
PRB_API struct prb_control *prb_control_open_path(const char *path, struct prb_error *err);
PRB_API void prb_control_close(struct prb_control *control);
/* To poll(2) on, and the probe's process id as the caller sees it (0: not known). */
PRB_API int prb_control_fd(const struct prb_control *control);
PRB_API pid_t prb_control_pid(const struct prb_control *control);
/* Whether a process has a probe that listens, without connecting. */
PRB_API bool prb_control_present(pid_t pid);
/* The same from /proc alone, for lists: no file of the process is opened, as its file system may
 * hang.  Also true where another user's socket has that name. */
PRB_API bool prb_control_seen(pid_t pid);

enum prb_eval_mode {
    PRB_EVAL_AUTO,   /* the value of the last expression, if the code ends with one */
    PRB_EVAL_SINGLE, /* as the interactive interpreter does; incomplete: more lines are needed */
};

struct prb_eval_options {
    enum prb_eval_mode mode;
    const char *code;
    size_t code_len;
    /* evaluations of one namespace share their names; NULL: those of __main__ are read, what is
     * assigned is their own; "__main__": the program's; "": a new one, without __main__'s */
    const char *name_space;
    uint64_t thread; /* Python thread ident or OS thread id whose frame's names are used; 0: none */
    unsigned frame;  /* of that thread; 0: the innermost */
    const char *function; /* the innermost frame of that function instead; NULL: by number */
    double gil_timeout;   /* s; 0: 1 */
    double timeout;       /* s for the code; 0: none */
    /* Output as it comes; stream 1: stdout, 2: stderr.  False: cancel. */
    bool (*output)(void *context, int stream, const char *text, size_t len);
    /* Called now and then while waiting; true: cancel (Ctrl-C).  NULL: never. */
    bool (*cancelled)(void *context);
    void *context;
};

struct prb_eval_result {
    bool raised;     /* text is the traceback */
    bool incomplete; /* SINGLE: the block is not complete */
    bool none;       /* no value to show */
    char *text;      /* the value's repr, limited in length; freed by prb_eval_result_free */
    double seconds;  /* in the target */
};

/* Run code in the target and wait for its end.  True also when the code raised: see result, freed
 * by prb_eval_result_free.  Errors: BUSY (the GIL could not be acquired, or too many evaluations
 * run; nothing ran), USAGE (code too large). */
PRB_API bool prb_control_eval(struct prb_control *control, const struct prb_eval_options *options,
                              struct prb_eval_result *result, struct prb_error *err);
PRB_API void prb_eval_result_free(struct prb_eval_result *result);
/* Add to a failure for want of the GIL (BUSY) which thread holds it and where that one is, read
 * from outside.  False: err is another failure, or no thread holds it now (the remedy says so). */
PRB_API bool prb_explain_gil(pid_t pid, struct prb_error *err);

/* Strings of an answer, freed by prb_strings_free. */
struct prb_strings {
    char **items;
    size_t count;
};
/* The names that complete text at cursor (bytes); with thread (see prb_eval_options; 0: none) those
 * of its frame, too. */
PRB_API bool prb_control_complete(struct prb_control *control, const char *text, size_t cursor,
                                  uint64_t thread, struct prb_strings *out, struct prb_error *err);
PRB_API void prb_strings_free(struct prb_strings *strings);

/* Settings of the probe.  All, each as "key\tvalue\tdefault\tunit\tdoc". */
PRB_API bool prb_control_config_list(struct prb_control *control, struct prb_strings *out,
                                     struct prb_error *err);
/* One value, freed by the caller.  Errors: NOT_FOUND (no such setting). */
PRB_API bool prb_control_config_get(struct prb_control *control, const char *key, char **value,
                                    struct prb_error *err);
/* Errors: NOT_FOUND; USAGE (not of its kind, or out of its bounds). */
PRB_API bool prb_control_config_set(struct prb_control *control, const char *key, const char *value,
                                    struct prb_error *err);

/* Without a probe: whether "KEY" is a setting, and "KEY=VALUE" could be set.  Errors: NOT_FOUND,
 * USAGE. */
PRB_API bool prb_config_check(const char *word, struct prb_error *err);
/* Whether "KEY" or "KEY=VALUE" names a program that the probe runs: to set it is to run code. */
PRB_API bool prb_config_is_program(const char *word);
/* The settings as a probe has them at first, each as prb_control_config_list gives it.  Errors:
 * NOMEM. */
PRB_API bool prb_config_defaults(struct prb_strings *out, struct prb_error *err);

/* Tell the probe lines of prb_torch_plan() about PyTorch in its process (NULL: nothing).  How far
 * recording is: "" while it is off, "waiting" for PyTorch, "on" and what is not followed, "ending", else why
 * not; and how many steps have ended since it began. */
PRB_API bool prb_control_torch(struct prb_control *control, const char *lines, char *state,
                               size_t size, int64_t *steps_out, struct prb_error *err);

/* A line for people. */
typedef void prb_note_fn(void *context, const char *line);
/* What is recorded of PyTorch was set: wait until it is recorded, and tell the probe what it cannot
 * see from inside (names of modules, the program's own counter of steps), or until nothing of it is
 * in the program any more.  for_probe: it asked, and nobody waits.  UNSUPPORTED: it cannot be
 * recorded. */
PRB_API bool prb_torch_follow(struct prb_control *control, bool for_probe, prb_note_fn *note,
                              void *context, struct prb_error *err);

/* What the Flight Recorder of torch.distributed holds. */
#define PRB_RECORDERS_MAX 2 /* of gloo and its like, of NCCL */
struct prb_recorder {
    struct prb_recorder_text {
        char *data; /* JSON, or a pickle */
        size_t len;
    } texts[PRB_RECORDERS_MAX]; /* as torch writes them */
    size_t count;
    bool with_gil; /* torch has no other way: Python code wrote it */
};
/*
 * Read it, without the GIL where torch can.  pickle: a text may be one, which torch writes in half the time of JSON.
 * go_on(context) is asked now and then, false ends the reading.  Freed by prb_recorder_free.  Errors: NOT_FOUND (no
 * torch, or none that has a recorder), BUSY (the GIL could not be acquired, or another reading has not ended), CORRUPT.
 */
PRB_API bool prb_control_recorder(struct prb_control *control, bool pickle,
                                  bool (*go_on)(void *context), void *context,
                                  struct prb_recorder *out, struct prb_error *err);
PRB_API void prb_recorder_free(struct prb_recorder *recorder);

struct prb_probe_status {
    int64_t version; /* of the protocol */
    char probe_version[32];
    double started; /* s since the epoch */
    unsigned clients, evaluations;
    char data_dir[256]; /* the folder of its rings, as the target sees it */
};
PRB_API bool prb_control_status(struct prb_control *control, struct prb_probe_status *out,
                                struct prb_error *err);
/* End the probe: threads, socket, hooks.  Its code stays mapped. */
PRB_API bool prb_control_detach(struct prb_control *control, struct prb_error *err);

#endif
