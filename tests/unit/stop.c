/* native/stop: threads of a child in every state: what is copied, and that the child does not
 * notice. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "native/unwinder.h"

#define PATIENCE 60000 /* ms at least: for what does not come at all */

struct shared {
    _Atomic int ready, signals, error;
    _Atomic int go_on;
    _Atomic int pid; /* of a child that another process waits for */
};

struct child {
    struct shared *shared;
    pid_t pid;
    struct prb_proc *proc;
    struct prb_mem *mem;
};

static struct shared *in_child;

static void spin(void)
{
    in_child->ready = 1;
    for (;;)
        in_child->go_on++;
}

static void sleep_once(void)
{
    struct timespec time = {.tv_sec = 2}; /* it is looked at meanwhile */
    in_child->ready = 1;
    if (nanosleep(&time, NULL))
        in_child->error = errno;
    in_child->go_on = 1;
    pause();
}

static void wait_for_events(void)
{
    struct epoll_event event;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    in_child->ready = 1;
    if (epoll_wait(epoll, &event, 1, -1) < 0)
        in_child->error = errno;
    pause();
}

static void count_signal(int number)
{
    (void)number;
    in_child->signals++;
}

static void take_signals(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGRTMIN, &action, NULL);
    spin();
}

static pid_t fork_child(struct shared *shared, void (*what)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        in_child = shared;
        alarm(300);
        what();
        _exit(0);
    }
    return pid;
}

static struct child make_child(void)
{
    struct child child = {
        .shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    assert_true(child.shared != MAP_FAILED);
    return child;
}

static void until_ready(struct child *child)
{
    struct prb_error err;
    for (int i = 0; i < PATIENCE && !child->shared->ready; i++)
        poll(NULL, 0, 1);
    assert_true(child->shared->ready);
    assert_ok(child->proc = prb_proc_open(child->pid, &err), err);
    assert_ok(child->mem = prb_proc_mem(child->proc, &err), err);
}

/* A child that does what; ready when it says so. */
static struct child start(void (*what)(void))
{
    struct child child = make_child();
    child.pid = fork_child(child.shared, what);
    until_ready(&child);
    return child;
}

/* The same of another process, which ends once it has waited for it. */
static struct child start_below(void (*what)(void), pid_t *parent_out)
{
    struct child child = make_child();
    *parent_out = fork();
    if (*parent_out == 0) {
        pid_t pid = child.shared->pid = fork_child(child.shared, what);
        _exit(waitpid(pid, NULL, 0) == pid ? 0 : 1);
    }
    for (int i = 0; i < PATIENCE && !child.shared->pid; i++)
        poll(NULL, 0, 1);
    child.pid = child.shared->pid;
    until_ready(&child);
    return child;
}

static void end(struct child *child)
{
    prb_proc_free(child->proc);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    munmap(child->shared, 4096);
}

static char state_of(pid_t pid)
{
    char path[40], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state;
}

static void until_state(pid_t pid, char wanted)
{
    for (int i = 0; i < PATIENCE && state_of(pid) != wanted; i++)
        poll(NULL, 0, 1);
    assert_int_equal(state_of(pid), wanted);
}

static struct prb_stops stops; /* of all tests: a stop that was given up is followed by others */

static int free_stops(void **state)
{
    (void)state;
    prb_stops_deinit(&stops);
    return 0;
}

/* On a busy machine a child may get no CPU, and so not stop, for longer than we wait. */
static bool take(struct child *child, enum prb_stop_rule rule, struct prb_thread_copy *out,
                 struct prb_error *err)
{
    bool taken = false;
    for (int i = 0; i < 30 && !taken && (i == 0 || err->code == PRB_TIMEOUT); i++) {
        *out = (struct prb_thread_copy){0};
        taken = prb_thread_copy_take(child->proc, child->mem, child->pid, rule, NULL, NULL, &stops,
                                     out, err);
    }
    return taken;
}

static void check_whole(const struct prb_thread_copy *copy)
{
    const struct prb_arch *arch = prb_arch_host();
    assert_true(prb_register_known(&copy->registers, arch->sp));
    assert_true(prb_register_known(&copy->registers, arch->pc));
    assert_int_equal(copy->stack_start, copy->registers.value[arch->sp]);
    assert_true(copy->stack_len > 64);
}

static void mark(void *context) { ++*(int *)context; }

static void running(void **state)
{
    (void)state;
    struct child child = start(spin);
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
    assert_false(take(&child, PRB_STOP_NEVER, &copy, &err));
    assert_int_equal(err.code, PRB_BUSY);
    int calls = 0;
    assert_ok(prb_thread_copy_take(child.proc, child.mem, child.pid, PRB_STOP_RUNNING, mark, &calls,
                                   &stops, &copy, &err),
              err);
    assert_int_equal(calls, 1);
    check_whole(&copy);
    assert_true(prb_register_known(&copy.registers, prb_arch_host()->fp));
    assert_true(copy.stopped > 0 && copy.stopped < 30);
    int before = child.shared->go_on;
    for (int i = 0; i < PATIENCE && child.shared->go_on == before; i++)
        poll(NULL, 0, 1);
    assert_int_not_equal(child.shared->go_on, before);
    end(&child);
}

static void blocked_is_not_stopped(void **state)
{
    (void)state;
    struct child child = start(sleep_once);
    until_state(child.pid, 'S');
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
    assert_ok(take(&child, PRB_STOP_NEVER, &copy, &err), err);
    check_whole(&copy);
    assert_false(prb_register_known(&copy.registers, prb_arch_host()->fp));
    assert_true(copy.stopped == 0);
    end(&child);
}

/* A system call that the kernel restarts: stopped where it is of use, and nothing notices. */
static void blocked_may_be_stopped(void **state)
{
    (void)state;
    struct child child = start(sleep_once);
    until_state(child.pid, 'S');
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
    assert_ok(take(&child, PRB_STOP_USEFUL, &copy, &err), err);
    check_whole(&copy);
    assert_true(prb_register_known(&copy.registers, prb_arch_host()->fp));
    assert_true(copy.stopped > 0);
    for (int i = 0; i < PATIENCE && !child.shared->go_on; i++)
        poll(NULL, 0, 1);
    assert_int_equal(child.shared->go_on, 1);
    assert_int_equal(child.shared->error, 0);
    end(&child);
}

/* epoll_wait() would end in EINTR: such a thread is left alone. */
static void fragile_is_never_stopped(void **state)
{
    (void)state;
    struct child child = start(wait_for_events);
    until_state(child.pid, 'S');
    struct prb_error err;
    for (int i = 0; i < 20; i++) {
        PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
        assert_ok(take(&child, PRB_STOP_USEFUL, &copy, &err), err);
        assert_true(copy.stopped == 0);
        check_whole(&copy);
    }
    assert_int_equal(child.shared->error, 0);
    end(&child);
}

/* Stopped by job control: read as it is, and still stopped after. */
static void job_control_stop_stays(void **state)
{
    (void)state;
    struct child child = start(spin);
    kill(child.pid, SIGSTOP);
    until_state(child.pid, 'T');
    struct prb_error err;
    for (int i = 0; i < 3; i++) {
        PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
        assert_ok(take(&child, i ? PRB_STOP_USEFUL : PRB_STOP_RUNNING, &copy, &err), err);
        check_whole(&copy);
        assert_int_equal(state_of(child.pid), 'T');
    }
    kill(child.pid, SIGCONT);
    until_state(child.pid, 'R');
    end(&child);
}

/* Signals that arrive while it is being stopped are passed on: none is lost, none comes twice. */
static void signals_arrive_once(void **state)
{
    (void)state;
    struct child child = start(take_signals);
    struct prb_error err;
    const int rounds = 200;
    int sent = 0;
    for (int i = 0; i < rounds; i++) {
        PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
        while (sigqueue(child.pid, SIGRTMIN, (union sigval){.sival_int = i}) && errno == EAGAIN)
            poll(NULL, 0, 1);
        sent++;
        assert_ok(take(&child, PRB_STOP_RUNNING, &copy, &err), err);
        check_whole(&copy);
    }
    for (int i = 0; i < PATIENCE && child.shared->signals != sent; i++)
        poll(NULL, 0, 1);
    assert_int_equal(child.shared->signals, sent);
    until_state(child.pid, 'R');
    end(&child);
}

/* A stop that is on its way when we come is still there when we leave. */
static void stop_signal_in_between(void **state)
{
    (void)state;
    struct prb_error err;
    for (int i = 0; i < 20; i++) {
        struct child child = start(spin);
        PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
        kill(child.pid, SIGSTOP);
        assert_ok(take(&child, PRB_STOP_RUNNING, &copy, &err), err);
        until_state(child.pid, 'T');
        end(&child);
    }
}

static void traced_by_another(void **state)
{
    (void)state;
    struct child child = start(spin);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t tracer = fork();
    if (tracer == 0) {
        char c = ptrace(PTRACE_SEIZE, child.pid, NULL, NULL) == 0;
        if (write(ready[1], &c, 1) != 1)
            _exit(1);
        alarm(300);
        pause();
        _exit(0);
    }
    char seized = 0;
    assert_int_equal(read(ready[0], &seized, 1), 1);
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
    bool taken = seized && take(&child, PRB_STOP_RUNNING, &copy, &err);
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    end(&child);
    if (!seized)
        skip();
    assert_false(taken);
    assert_int_equal(err.code, PRB_BUSY);
    assert_non_null(strstr(err.text, "traced by process"));
    assert_true(err.remedy[0]);
}

static void ended(void **state)
{
    (void)state;
    struct child child = start(spin);
    kill(child.pid, SIGKILL);
    waitpid(child.pid, NULL, 0);
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy;
    assert_false(take(&child, PRB_STOP_RUNNING, &copy, &err));
    assert_true(err.code == PRB_GONE || err.code == PRB_NOT_FOUND);
    prb_proc_free(child.proc);
    munmap(child.shared, 4096);
}

static void kill_child(void *context) { kill(*(pid_t *)context, SIGKILL); }

/* Killed while we hold it, it ends for its parent, too, which else would wait as long as we live. */
static void killed_while_stopped(void **state)
{
    (void)state;
    pid_t parent, ended = 0;
    struct child child = start_below(spin, &parent);
    struct prb_error err;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy = {0};
    prb_thread_copy_take(child.proc, child.mem, child.pid, PRB_STOP_RUNNING, kill_child, &child.pid,
                         &stops, &copy, &err);
    for (int i = 0; i < PATIENCE && ended == 0; i++) {
        poll(NULL, 0, 1);
        ended = waitpid(parent, NULL, WNOHANG);
    }
    prb_proc_free(child.proc);
    munmap(child.shared, 4096);
    assert_int_equal(ended, parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running),
        cmocka_unit_test(blocked_is_not_stopped),
        cmocka_unit_test(blocked_may_be_stopped),
        cmocka_unit_test(fragile_is_never_stopped),
        cmocka_unit_test(job_control_stop_stays),
        cmocka_unit_test(signals_arrive_once),
        cmocka_unit_test(stop_signal_in_between),
        cmocka_unit_test(traced_by_another),
        cmocka_unit_test(ended),
        cmocka_unit_test(killed_while_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, free_stops);
}
