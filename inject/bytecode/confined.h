/*
 * What confines a target, so that a process of ours can be put under the same (run.h says
 * when that is possible).  Relies on proc(5), namespaces(7), capabilities(7), credentials(7).
 */
#ifndef PRB_INJECT_BYTECODE_CONFINED_H
#define PRB_INJECT_BYTECODE_CONFINED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "proc/ids.h"

struct prb_confined {
    int program; /* its file, to be executed */
    int root;    /* its root folder; -1: ours */
    bool ours;   /* it is confined by nothing that we are not */
    bool drops;  /* its ids are to be taken on */
    struct prb_ids ids;
    char path[4096];        /* the program's, as the target sees it */
    char *libraries, *home; /* "LD_LIBRARY_PATH=...", "PYTHONHOME=...", or NULL */
};

/* False: we cannot see to it, or its program is no python.  Deinit in any case. */
bool prb_confined_look(struct prb_confined *out, pid_t pid);
void prb_confined_deinit(struct prb_confined *confined);
PRB_DEFINE_AUTO(prb_confined, struct prb_confined, prb_confined_deinit)
/* In a child after fork(2), with system calls alone: take it on, our session's keys and the right
 * to make processes given up.  False: end. */
bool prb_confined_enter(const struct prb_confined *confined);

#endif
