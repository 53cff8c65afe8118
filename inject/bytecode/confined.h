/*
 * What confines a target, so that a process of ours can be confined alike (run.h says when that is
 * possible).  Relies on proc(5), namespaces(7), capabilities(7), credentials(7).
 */
#ifndef PRB_INJECT_BYTECODE_CONFINED_H
#define PRB_INJECT_BYTECODE_CONFINED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "proc/ids.h"

struct prb_confined {
    int program; /* its executable */
    int root;    /* its root folder; -1: ours */
    bool ours;   /* it is confined no more than we are */
    bool drops;  /* the child has to switch to its ids */
    struct prb_ids ids;
    char path[4096];        /* the program's, as the target sees it */
    char *libraries, *home; /* "LD_LIBRARY_PATH=...", "PYTHONHOME=...", or NULL */
};

/* False: we cannot confine a child alike, or its program is not Python.  Always deinit. */
bool prb_confined_look(struct prb_confined *out, pid_t pid);
void prb_confined_deinit(struct prb_confined *confined);
PRB_DEFINE_AUTO(prb_confined, struct prb_confined, prb_confined_deinit)
/* In a child after fork(2), by system calls alone: confine it, without our session's keys and the
 * right to make processes.  False: the child must exit. */
bool prb_confined_enter(const struct prb_confined *confined);

#endif
