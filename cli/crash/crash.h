/* probing crash: what its parts share. */
#ifndef PRB_CLI_CRASH_H
#define PRB_CLI_CRASH_H

#include "cli/command.h"

/* A dump of a folder, and what it says. */
struct prb_crash_file {
    char *path;
    uint64_t bytes;
    bool opened;                 /* false: a text only, or broken */
    bool crashed;                /* it describes a crash; what follows is about that one */
    double time;                 /* s since the epoch */
    pid_t pid;                   /* of the process */
    int rank;                    /* in its job; -1: none */
    char *title, *place, *group; /* NULL: not known */
};

struct prb_crash_files {
    struct prb_crash_file *items; /* earliest first */
    size_t count, cap;
};

bool prb_crash_files_read(const char *folder, struct prb_crash_files *out, struct prb_error *err);
void prb_crash_files_deinit(struct prb_crash_files *files);
PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_deinit)

bool prb_crash_list(const struct prb_crash_files *files, bool all, struct prb_error *err);
/* The account of one dump: what, whose, the exceptions, the stacks. */
bool prb_crash_show(struct prb_target *target, const char *path, FILE *out, struct prb_error *err);

#endif
