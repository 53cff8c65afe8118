/* What of the command line a client may run: commands that look, with the words that may follow. */
#ifndef PRB_SERVE_LOOKS_H
#define PRB_SERVE_LOOKS_H

#include <sys/types.h>

#include "serve/serve.h"

#define PRB_LOOK_WORDS 24

struct prb_look {
    const char *word, *name; /* as a client and as the command line have it */
    const char *options;     /* separated by spaces; "--thread=": with any value */
    bool target;             /* it needs a process */
    enum {
        PRB_LOOK_NONE,
        PRB_LOOK_THREAD,
        PRB_LOOK_SQL,
        PRB_LOOK_NAMES,
        PRB_LOOK_SKILL,
        PRB_LOOK_SECONDS
    } argument;
    const char *help; /* NULL: another word for one above */
};
extern const struct prb_look prb_looks[]; /* ends with word NULL */

/* By the first len bytes of its word; NULL: there is none. */
const struct prb_look *prb_look_named(const char *word, size_t len);

/*
 * Append what the command line gets for it to words: the command, then count words as given, options
 * as "--name" or "--name=value", "--" before arguments that begin with '-'.  Output goes to standard
 * output.  False: something may not be said, or they are more than PRB_LOOK_WORDS.
 */
bool prb_look_take(const struct prb_look *look, const char *const *given, size_t count,
                   const char **words, size_t *word_count);

#define PRB_LOOK_ROOM 4096
/*
 * Before it is run by a server for some processes: a list is of these alone (its words get an option,
 * which lies in room), other ranks of the job of pid are looked at where all are of these.  words has
 * PRB_LOOK_WORDS + 1.  PERMISSION.
 */
bool prb_look_bind(const struct prb_serve *serve, const struct prb_look *look, pid_t pid,
                   const char **words, size_t *count, char room[PRB_LOOK_ROOM],
                   struct prb_error *err);

#endif
