/* The order of the steps: checks from outside, a thread, the stop, the wait (steps.h). */
#include "inject/inject.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/control.h"
#include "inject/enter/steps.h"
#include "proc/stat.h"

#define WAIT_S 2.0
#define LOCK_WAIT_S 15.0
#define STEP_NS 1000000
#define STOPS_AGAIN_NS 1000000000ull /* a busy machine takes some ms */
#define SCANS_FIRST 60 /* stops in which a stack is only scanned, before it is also unwound */

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

/* Whether a probe is loaded and answers. */
static bool answers(pid_t pid)
{
    PRB_AUTO(prb_control)
    struct prb_control *control = prb_control_present(pid) ? prb_control_open(pid, NULL) : NULL;
    return control != NULL;
}

/* What both methods need. */
struct entry {
    struct prb_proc *proc;
    struct prb_modules modules;
    struct prb_delivery delivery;
    const struct prb_inject_options *options;
    struct prb_inject_report report;
    bool sent; /* a thread was sent: wait for the result, and try nothing else */
};

static bool not_python(struct entry *entry, struct prb_error *err)
{
    prb_fail(err, PRB_NOT_PYTHON, "process %d is not a Python process",
             (int)prb_proc_pid(entry->proc));
    return prb_error_remedy(err, "`probing list` shows the Python processes that run now; --force "
                                 "loads the library anyway");
}

/* Whether every thread is in uninterruptible sleep. */
static bool all_asleep(const struct prb_chooser *chooser)
{
    for (unsigned why = 0; why < PRB_UNFIT_COUNT; why++)
        if (why != PRB_UNFIT_STATE && chooser->unfit[why])
            return false;
    return chooser->unfit[PRB_UNFIT_STATE] > 0;
}

static bool no_thread(const struct prb_chooser *chooser, double wait, struct prb_error *err)
{
    char reasons[240];
    pid_t pid = prb_proc_pid(chooser->proc);
    if (all_asleep(chooser)) {
        prb_fail(err, PRB_TIMEOUT,
                 "process %d is in uninterruptible sleep (state D), as for a disk, a network file "
                 "system or a driver: no code can run in it",
                 (int)pid);
        return prb_error_remedy(err,
                                "Try again when it continues; probing -t %d backtrace --native "
                                "shows where it waits",
                                (int)pid);
    }
    prb_choose_explain(chooser, reasons, sizeof reasons);
    if (chooser->stopped) {
        prb_fail(err, PRB_BUSY, "process %d is stopped where it cannot be entered: %s", (int)pid,
                 reasons);
        return prb_error_remedy(err, "`kill -CONT %d` continues it", (int)pid);
    }
    prb_fail(err, PRB_TIMEOUT, "no thread of process %d could be borrowed safely for %.3g s: %s",
             (int)pid, wait, reasons);
    return prb_error_remedy(err, "Try again, or wait longer (--wait); CPython 3.14 and later "
                                 "can be entered by --method remote-exec");
}

/* Try until a thread was sent, or one is found that was.  TIMEOUT: no thread was fit. */
static bool send_a_thread(struct prb_chooser *chooser, const struct prb_stub_page *page,
                          struct prb_borrowed *borrowed, struct entry *entry, struct prb_error *err)
{
    double wait = entry->options->wait > 0 ? entry->options->wait : WAIT_S;
    uint64_t begin = prb_clock_ns();
    struct prb_inject_report *report = &entry->report;
    for (;;) {
        struct prb_choice choice;
        struct prb_error ended = {0};
        bool chosen = prb_choose(chooser, &choice, &ended);
        if (!chosen && ended.code) {
            if (err)
                *err = ended;
            return false;
        }
        if (chooser->sent) {
            borrowed->stopped = entry->sent = true;
            return true;
        }
        chooser->unwind_stopped = report->tries >= SCANS_FIRST;
        if (chosen && choice.running && !prb_stack_room(chooser, err))
            return false;
        if (chosen) {
            report->tries++;
            if (!prb_borrow(chooser, &choice, page, borrowed, err))
                return false;
            if (borrowed->sent) {
                report->tid = choice.tid;
                entry->sent = true;
                return true;
            }
            chooser->unfit[borrowed->why]++;
            if (choice.running)
                chooser->unfit[choice.counted]--; /* each thread counts once */
        }
        if ((double)(prb_clock_ns() - begin) * 1e-9 > wait)
            return no_thread(chooser, wait, err);
        /* A varying pause, so as not to run in step with the program. */
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS + prb_clock_ns() % 300000}, NULL);
    }
}

/* Let go, the thread is stopped again as soon as it is scheduled.  Until then it looks as if it ran,
 * and whoever enters now would send it once more. */
static void await_stop(pid_t pid, pid_t tid)
{
    char path[64];
    struct prb_stat stat;
    uint64_t begin = prb_clock_ns();
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)tid);
    while (prb_stat_of(path, &stat) && stat.state != 'T' && prb_clock_ns() - begin < STOPS_AGAIN_NS)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static double paused_us(const struct prb_borrowed *borrowed, const struct prb_stub_page *page)
{
    double ns = (double)borrowed->paused_ns;
    /* And what the thread did for us after its release, by the CPU's counter. */
    if (borrowed->clock_hz > 0 && page->clock > borrowed->clock_let_go)
        ns += (double)(page->clock - borrowed->clock_let_go) / borrowed->clock_hz * 1e9;
    return ns * 1e-3;
}

static bool by_thread(struct entry *entry, struct prb_error *err)
{
    PRB_AUTO(prb_addresses) struct prb_addresses addresses = {0};
    struct prb_stub_page page;
    struct prb_borrowed borrowed = {0};
    if (!prb_addresses_init(&addresses, entry->proc, &entry->modules, err) ||
        !prb_delivery_page(&entry->delivery, &addresses, entry->options, &page, err))
        return false;
    PRB_AUTO(prb_chooser)
    struct prb_chooser chooser = {
        .proc = entry->proc, .modules = &entry->modules, .addresses = &addresses};
    chooser.mem = prb_proc_mem(entry->proc, err);
    if (!chooser.mem || !send_a_thread(&chooser, &page, &borrowed, entry, err))
        return false;
    entry->report.method = PRB_INJECT_THREAD;
    entry->report.will_load_later = borrowed.stopped;
    entry->report.paused_us = (double)borrowed.paused_ns * 1e-3;
    if (borrowed.stopped) {
        if (borrowed.sent)
            await_stop(prb_proc_pid(entry->proc), borrowed.tid);
        return true;
    }
    if (!prb_delivery_await(&entry->delivery, entry->proc, &borrowed, &page, err))
        return false;
    entry->report.paused_us = paused_us(&borrowed, &page);
    return true;
}

static bool by_remote_exec(struct entry *entry, struct prb_error *err)
{
    entry->report.method = PRB_INJECT_REMOTE_EXEC;
    return prb_inject_remote_exec(entry->proc, &entry->modules, &entry->delivery, entry->options,
                                  err);
}

/* Whether another method may succeed where this one failed. */
static bool may_try_the_other(const struct prb_error *why)
{
    return why->code == PRB_BUSY || why->code == PRB_TIMEOUT || why->code == PRB_UNSUPPORTED;
}

static bool by_method(struct entry *entry, struct prb_error *err)
{
    struct prb_error refused = {0};
    if (entry->options->method == PRB_INJECT_REMOTE_EXEC)
        return by_remote_exec(entry, err);
    if (prb_inject_untraced(entry->proc, &refused) && by_thread(entry, &refused))
        return true;
    if (entry->options->method == PRB_INJECT_AUTO && !entry->sent && may_try_the_other(&refused) &&
        by_remote_exec(entry, NULL))
        return true;
    if (err)
        *err = refused;
    return false;
}

static bool enter(struct entry *entry, struct prb_error *err)
{
    const struct prb_inject_options *options = entry->options;
    if (!prb_modules_init(&entry->modules, entry->proc, err))
        return false;
    if (!options->force && !options->library && !prb_is_python(&entry->modules))
        return not_python(entry, err);
    if (!prb_delivery_init(&entry->delivery, entry->proc, &entry->modules, options, err))
        return false;
    return by_method(entry, err);
}

bool prb_inject(pid_t pid, const struct prb_inject_options *options,
                struct prb_inject_report *report, struct prb_error *err)
{
    static const struct prb_inject_options defaults = {.method = PRB_INJECT_AUTO};
    uint64_t begin = prb_clock_ns();
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, err);
    struct entry entry = {.proc = proc, .options = options ? options : &defaults};
    if (!proc || !prb_inject_allowed(proc, err))
        return false;
    PRB_AUTO_FD int lock = prb_inject_lock(proc, LOCK_WAIT_S, err);
    if (lock < 0)
        return false;
    bool good = true;
    entry.report.already = !entry.options->library && answers(pid);
    if (!entry.report.already)
        good = enter(&entry, err);
    /* What could not be read or found does not matter then. */
    if (!good && prb_task_ending(pid, pid))
        prb_fail(err, PRB_GONE, "process %d ended", (int)pid);
    entry.report.total_ms = (double)(prb_clock_ns() - begin) * 1e-6;
    if (good && report)
        *report = entry.report;
    prb_delivery_deinit(&entry.delivery);
    prb_modules_deinit(&entry.modules);
    return good;
}
