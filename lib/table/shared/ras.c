/* NCCL's RAS service of a job: see ras.h. */
#include "table/shared/ras.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "inspect/target.h"
#include "proc/ids.h"
#include "sql/db.h"

#define VARIABLE "NCCL_RAS_ADDR="
#define JOBS_TRIED 5 /* several jobs of a user share the port, and the kernel chooses */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static void release_answer(struct prb_ras_answer *answer) { prb_buf_deinit(&answer->text); }
PRB_DEFINE_AUTO(prb_ras_answer, struct prb_ras_answer, release_answer)

/* Another rank of the statement, a lower pid, asks for all. */
static bool another_asks(struct prb_rows *rows, pid_t pid, struct prb_error *err, bool *out)
{
    *out = false;
    if (!prb_rows_db(rows)->of_several)
        return true;
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    PRB_AUTO_FREE bool *chosen = list ? calloc(list->count + 1, sizeof *chosen) : NULL;
    if (!list)
        return false;
    if (!chosen)
        return prb_nomem(err);
    prb_process_choose(list, pid, true, false, chosen);
    for (size_t i = 0; i < list->count; i++)
        *out |= chosen[i] && list->items[i].rank >= 0 && list->items[i].pid < pid;
    return true;
}

static bool shares_network(pid_t pid)
{
    char path[40];
    struct stat its, ours;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    return stat(path, &its) != 0 || stat("/proc/self/ns/net", &ours) != 0 ||
           its.st_ino == ours.st_ino;
}

/* NULL: not set. */
static const char *address_of(struct prb_proc *proc, struct prb_buf *environment)
{
    struct prb_error why;
    if (!prb_proc_text(proc, "environ", environment, &why))
        return NULL;
    for (size_t at = 0; environment->data && at < environment->len;
         at += strlen(environment->data + at) + 1)
        if (strncmp(environment->data + at, VARIABLE, sizeof VARIABLE - 1) == 0)
            return environment->data + at + sizeof VARIABLE - 1;
    return NULL;
}

/* Its pid as itself sees it. */
static pid_t inner_pid(struct prb_proc *proc)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    struct prb_error why;
    return prb_proc_tids(proc, &tasks, &why) && tasks.count ? tasks.items[0].inner_tid
                                                            : prb_proc_pid(proc);
}

/* Some job's report, its own where that can be told.  False: err says why there is none. */
static bool ask(struct prb_proc *proc, double until, struct prb_ras_report *out, bool *own_out,
                struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf environment = {0};
    const char *address = address_of(proc, &environment);
    struct prb_ids ids = {0};
    pid_t pid = inner_pid(proc);
    if (!prb_ids_of(prb_proc_pid(proc), &ids))
        return prb_fail(err, PRB_GONE, "process %d ended", (int)prb_proc_pid(proc));
    *own_out = false;
    for (int tries = 0; !*own_out && tries < JOBS_TRIED; tries++) {
        PRB_AUTO(prb_ras_answer) struct prb_ras_answer answer = {0};
        prb_ras_report_deinit(out);
        *out = (struct prb_ras_report){0};
        if (!prb_ras_ask(address, ids.users[1], until, &answer, err) ||
            !prb_ras_report_read(&answer, out, err))
            return false;
        *own_out = !answer.json || prb_ras_report_has(out, pid); /* a text names few ranks */
    }
    return true;
}

/* A query has one note. */
static void tell_notes(struct prb_rows *rows, struct prb_ras_report *report, bool own)
{
    struct prb_buf *notes = &report->notes;
    if (!own)
        prb_buf_addf(notes,
                     "what NCCL's RAS service told is of another job: process %d is none of "
                     "its ranks\n",
                     (int)prb_rows_target(rows)->info.pid);
    if (!report->comm_count)
        prb_buf_adds(notes, "NCCL's RAS service knows of no communicator\n");
    if (!notes->len || !prb_buf_ok(notes))
        return;
    notes->data[--notes->len] = '\0';
    for (char *end = notes->data; (end = strchr(end, '\n'));)
        *end = ';';
    prb_rows_warn(rows, "%s", notes->data);
}

bool prb_rows_ras(struct prb_rows *rows, struct prb_ras_report *out, struct prb_error *err)
{
    struct prb_proc *proc = prb_rows_target(rows)->proc;
    pid_t pid = prb_proc_pid(proc);
    struct prb_error why = {0};
    bool another, own = false;
    *out = (struct prb_ras_report){0};
    if (!prb_rows_alive(rows, err) || !another_asks(rows, pid, err, &another))
        return false;
    if (another)
        return true;
    if (!shares_network(pid)) {
        prb_rows_warn(rows,
                      "process %d has a network of its own (a container), where NCCL's RAS "
                      "service cannot be reached: query from within it",
                      (int)pid);
        return true;
    }
    if (!ask(proc, prb_rows_db(rows)->view.deadline, out, &own, &why)) {
        if (why.code == PRB_NOMEM && err)
            *err = why;
        if (why.code == PRB_NOMEM)
            return false;
        prb_rows_warn(rows, "%s%s%s", why.text, why.remedy[0] ? "; " : "", why.remedy);
        return true;
    }
    tell_notes(rows, out, own);
    return true;
}

void prb_row_ras_counts(struct prb_rows *rows, const int64_t counts[PRB_RAS_OPS])
{
    for (size_t i = 0; i < PRB_RAS_OPS; i++)
        prb_row_int_unless(rows, counts[i], -1);
}

void prb_row_ras_hash(struct prb_rows *rows, const struct prb_ras_comm *comm)
{
    if (comm->has_hash)
        prb_row_int(rows, (int64_t)comm->hash);
    else
        prb_row_null(rows);
}
