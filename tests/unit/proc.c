/* proc: a live process (this one and its children), stat's text, permissions. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/arch.h"
#include "proc/same_cpu.h"
#include "proc/source.h"
#include "proc/stat.h"

static void stat_text(void **state)
{
    (void)state;
    struct prb_stat stat;
    assert_true(prb_stat_parse("42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 7 0 "
                               "12345 1000 100 18446744073709551615 93 94 95 0 0 0 0 0 0 0 0 0 "
                               "17 3 0 1",
                               &stat));
    assert_int_equal(stat.field[PRB_STAT_PROCESSOR], 3);
    assert_int_equal(stat.field[PRB_STAT_POLICY], 1);
    assert_int_equal(stat.pid, 42);
    assert_string_equal(stat.comm, "a) b (c)");
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.field[PRB_STAT_FLAGS], 4194560);
    assert_int_equal(stat.field[PRB_STAT_UTIME], 11);
    assert_int_equal(stat.field[PRB_STAT_STIME], 22);
    assert_int_equal(stat.field[PRB_STAT_THREADS], 7);
    assert_int_equal(stat.field[PRB_STAT_STARTTIME], 12345);
    assert_int_equal(stat.field[PRB_STAT_STARTCODE], 93);
    assert_int_equal(stat.field[PRB_STAT_STARTSTACK], 95);
    assert_int_equal(stat.count, 41);
    assert_int_equal(stat.field[8], -1);
    assert_int_equal(stat.field[25], INT64_MAX);
    assert_true(prb_stat_parse("1 (x) R", &stat));
    assert_int_equal(stat.count, 3);
    assert_int_equal(stat.field[PRB_STAT_UTIME], 0);
    static const char *const bad[] = {"", "1", "1 (x", "1 x) R", ")(", "1 (x)", "1 (x) "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(prb_stat_parse(bad[i], &stat));
    char longer[300];
    memset(longer, 'n', sizeof longer);
    memcpy(longer, "1 (", 3);
    memcpy(longer + sizeof longer - 5, ") R ", 5);
    assert_true(prb_stat_parse(longer, &stat));
    assert_int_equal(strlen(stat.comm), sizeof stat.comm - 1);
}

static void ending(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(prb_task_ending(child, child)); /* not collected yet */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(prb_task_ending(child, child));
    assert_false(prb_task_ending(getpid(), getpid()));
}

struct waiting {
    pid_t tid;
    int ready[2], end[2];
};

static void *wait_here(void *argument)
{
    struct waiting *waiting = argument;
    char byte = 0;
    waiting->tid = (pid_t)syscall(SYS_gettid);
    pthread_setname_np(pthread_self(), "waits (here)");
    assert_int_equal(write(waiting->ready[1], &byte, 1), 1);
    assert_int_equal(read(waiting->end[0], &byte, 1), 1);
    return NULL;
}

static void tasks_and_system_calls(void **state)
{
    (void)state;
    struct waiting waiting;
    char byte = 0;
    assert_int_equal(pipe(waiting.ready) | pipe(waiting.end), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_here, &waiting), 0);
    assert_int_equal(read(waiting.ready[0], &byte, 1), 1);
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    assert_non_null(proc);
    struct prb_syscall call = {.running = true};
    for (int i = 0; i < 10000 && call.running; i++) {
        assert_ok(prb_proc_syscall(proc, waiting.tid, &call, &err), err);
        usleep(1000); /* the thread may wait for a CPU */
    }
    assert_int_equal(call.number, SYS_read);
    assert_int_equal(call.args[0], waiting.end[0]);
    assert_int_equal(call.args[2], 1);
    assert_true(call.sp && call.pc);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    assert_ok(prb_proc_tasks(proc, &tasks, &err), err);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(tasks.items[0].tid, getpid());
    assert_int_equal(tasks.items[1].tid, waiting.tid);
    assert_int_equal(tasks.items[1].state, 'S');
    assert_string_equal(tasks.items[1].comm, "waits (here)");
    assert_true(tasks.items[1].inner_tid > 0);
    assert_true(prb_proc_live(proc) && !prb_proc_is_snapshot(proc));
    assert_int_equal(prb_proc_pid(proc), getpid());
    struct prb_registers registers;
    assert_false(prb_proc_registers(proc, getpid(), &registers, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
    assert_int_equal(write(waiting.end[1], &byte, 1), 1);
    pthread_join(thread, NULL);
    assert_false(prb_proc_syscall(proc, 0, &call, &err));
    for (int i = 0; i < 10000 && prb_proc_syscall(proc, waiting.tid, &call, NULL); i++)
        usleep(1000); /* joined, and on its way out of the kernel */
    assert_false(prb_proc_syscall(proc, waiting.tid, &call, &err));
}

static pid_t child_that(void (*act)(void))
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            act();
    }
    return child;
}

static void sleep_long(void) { pause(); }

static void compute(void) {}

static pid_t sleeper(void) { return child_that(sleep_long); }

/* On the processor of the one it reads, and then back, with the same turns as before. */
static void beside_and_back(void **state)
{
    (void)state;
    struct prb_error err;
    cpu_set_t before, after, one;
    struct prb_schedule turn_before, turn_after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(syscall(SYS_sched_getattr, 0, &turn_before, sizeof turn_before, 0), 0);
    pid_t child = child_that(compute);
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, &err);
    assert_non_null(proc);
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, &before))
            continue;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        struct prb_task task = {.tid = child};
        assert_int_equal(sched_setaffinity(child, sizeof one, &one), 0);
        do
            assert_true(prb_proc_task_read(proc, &task));
        while (task.cpu != processor);
        PRB_AUTO(prb_same_cpu) struct prb_same_cpu same = {0};
        assert_true(prb_same_cpu_begin(&same, proc, child));
        assert_int_equal(sched_getcpu(), processor);
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(syscall(SYS_sched_getattr, 0, &turn_after, sizeof turn_after, 0), 0);
    assert_memory_equal(&turn_before, &turn_after, sizeof turn_before);
    /* Not beside a real-time thread: there might be no turn for us. */
    struct prb_same_cpu same;
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(child, SCHED_FIFO, &first) == 0)
        assert_false(prb_same_cpu_begin(&same, proc, child));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(prb_same_cpu_begin(&same, proc, child));
}

/* Two places that are mapped by turns, among enough others that the map comes in pieces. */
static void map_and_unmap(void)
{
    static char *places;
    enum { COUNT = 400, STEP = 2 * 4096 };
    if (!places) {
        places = mmap(NULL, (COUNT + 1) * STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < COUNT; i++)
            mprotect(places + i * STEP, 4096, PROT_READ);
    }
    for (int i = 0; i < COUNT; i++) {
        mprotect(places + i * STEP, STEP, PROT_READ);
        mprotect(places + i * STEP + 4096, 4096, PROT_NONE);
    }
}

static void maps_that_change(void **state)
{
    (void)state;
    struct prb_error err;
    pid_t child = child_that(map_and_unmap);
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, &err);
    assert_non_null(proc);
    for (int i = 0; i < 1000; i++) {
        const struct prb_maps *maps = prb_proc_maps(proc, true, &err);
        if (!maps)
            print_error("%s\n", err.text);
        assert_non_null(maps);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void ended_process_is_gone(void **state)
{
    (void)state;
    struct prb_error err;
    pid_t child = sleeper();
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, &err);
    assert_non_null(proc);
    assert_ok(prb_proc_check(proc, &err), err);
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    assert_false(prb_proc_check(proc, &err)); /* a zombie */
    assert_int_equal(err.code, PRB_GONE);
    waitpid(child, NULL, 0);
    assert_false(prb_proc_check(proc, &err));
    assert_int_equal(err.code, PRB_GONE);
    struct prb_tasks tasks;
    assert_false(prb_proc_tasks(proc, &tasks, &err));
    assert_int_equal(err.code, PRB_GONE);
    assert_null(prb_proc_maps(proc, true, &err));
    assert_int_equal(err.code, PRB_GONE);
    assert_null(prb_proc_open(child, &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    assert_true(err.remedy[0]);
    assert_null(prb_proc_open(-1, &err));
}

/* The same file again: told by its new stack. */
static void exec_is_gone(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    int go[2];
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        dup2(ready[1], 1);
        execl("/proc/self/exe", "proc", "wait", (char *)NULL);
        _exit(1);
    }
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(child, &err);
    assert_non_null(proc);
    assert_ok(prb_proc_check(proc, &err), err);
    char byte = 0;
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_false(prb_proc_check(proc, &err));
    assert_int_equal(err.code, PRB_GONE);
    if (!strstr(err.text, "exec"))
        fail_msg("%s", err.text);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* A mapped file that was deleted, and one that another took the place of. */
static void mapped_files(void **state)
{
    (void)state;
    char name[] = "/tmp/prb-unit-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(pwrite(fd, "first", 5, 0), 5);
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    const struct prb_maps *maps = prb_proc_maps(proc, false, &err);
    const struct prb_map *map = prb_maps_find(maps, (uintptr_t)mapped);
    assert_non_null(map);
    assert_string_equal(map->path, name);
    char text[5];
    int opened = prb_proc_open_map(proc, map, &err);
    assert_true(opened >= 0);
    assert_true(fcntl(opened, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pread(opened, text, 5, 0), 5);
    close(opened);

    unlink(name);
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "other", 5), 5);
    close(fd);
    opened = prb_proc_open_map(proc, map, &err);
    /* Only root may open what has no path any more; nobody gets the other file. */
    if (opened >= 0) {
        assert_int_equal(pread(opened, text, 5, 0), 5);
        assert_memory_equal(text, "first", 5);
        close(opened);
    } else {
        assert_int_equal(err.code, PRB_NOT_FOUND);
        assert_true(err.remedy[0]);
    }
    unlink(name);
    munmap(mapped, 4096);
    assert_int_equal(prb_proc_open_map(proc, &(struct prb_map){.start = 1}, &err), -1);
    assert_int_equal(err.code, PRB_NOT_FOUND);
}

/* As a user without rights, in a child: what it says goes through a pipe. */
static void refusals_name_their_rule(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int words[2];
    assert_int_equal(pipe(words), 0);
    pid_t target = getpid();
    pid_t child = fork();
    if (child == 0) {
        struct prb_error err = {0};
        if (setgid(65534) || setuid(65534))
            _exit(2);
        struct prb_proc *proc = prb_proc_open(target, &err);
        bool refused = proc && !prb_proc_mem(proc, &err);
        ssize_t n = write(words[1], &err, sizeof err);
        _exit(refused && n == sizeof err ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    struct prb_error err;
    assert_int_equal(read(words[0], &err, sizeof err), sizeof err);
    assert_int_equal(err.code, PRB_PERMISSION);
    assert_non_null(strstr(err.text, "it belongs to user id 0 and you are user id 65534"));
    assert_non_null(strstr(err.remedy, "sudo"));
}

/* One's own process, but not to be dumped. */
static void not_dumpable(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int words[2], ready[2];
    assert_int_equal(pipe(words) | pipe(ready), 0);
    char byte = 0;
    pid_t target = fork();
    if (target == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 0) ||
            write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    pid_t child = fork();
    if (child == 0) {
        struct prb_error err = {0};
        if (setgid(65534) || setuid(65534))
            _exit(2);
        struct prb_proc *proc = prb_proc_open(target, &err);
        bool refused = proc && !prb_proc_maps(proc, false, &err);
        ssize_t n = write(words[1], &err, sizeof err);
        _exit(refused && n == sizeof err ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    assert_int_equal(status, 0);
    struct prb_error err;
    assert_int_equal(read(words[0], &err, sizeof err), sizeof err);
    assert_int_equal(err.code, PRB_PERMISSION);
    if (!strstr(err.text, "not dumpable"))
        fail_msg("%s", err.text);
}

static void texts_are_kept(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_buf_adds(&text, "before ");
    assert_ok(prb_proc_text(proc, "comm", &text, &err), err);
    assert_null(prb_proc_saved_text(proc, "comm"));
    prb_proc_record(proc);
    assert_ok(prb_proc_text(proc, "comm", &text, &err), err);
    const struct prb_proc_text *kept = prb_proc_saved_text(proc, "comm");
    assert_non_null(kept);
    assert_int_equal(text.len, 7 + 2 * kept->text.len);
    assert_memory_equal(text.data + 7, kept->text.data, kept->text.len);
    assert_false(prb_proc_text(proc, "no-such-text", &text, &err));
    assert_int_equal(err.code, PRB_NOT_FOUND);
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "task/%d/stat", i);
            assert_true(prb_proc_save_text(proc, name, name, strlen(name) - (size_t)round));
        }
    }
    assert_int_equal(proc->text_count, 1001);
    kept = prb_proc_saved_text(proc, "task/77/stat");
    assert_string_equal(kept->text.data, "task/77/sta");
    assert_null(prb_proc_saved_text(proc, "task/1000/stat"));
}

/* Of a process that stands a text is read once. */
static void still(void **state)
{
    (void)state;
    struct prb_error err;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(getpid(), &err);
    PRB_AUTO(prb_buf) struct prb_buf before = {0}, now = {0}, after = {0};
    char name[16];
    prctl(PR_GET_NAME, name);
    prb_proc_record(proc);
    assert_ok(prb_proc_text(proc, "comm", &before, &err), err);
    prctl(PR_SET_NAME, "another");
    assert_ok(prb_proc_text(proc, "comm", &now, &err), err);
    assert_string_equal(now.data, "another\n");
    prb_proc_set_stopped(proc);
    prctl(PR_SET_NAME, name);
    prb_buf_adds(&after, "> ");
    assert_ok(prb_proc_text(proc, "comm", &after, &err), err);
    assert_string_equal(after.data, "> another\n");
    assert_string_not_equal(before.data, now.data);
}

/* ---- what a debugger holds ---- */

static char shown_otherwise[] = "the program's own bytes", kept_back[] = "what it does not give";

static size_t debugger_reads(void *context, prb_addr addr, void *buf, size_t len)
{
    ++*(int *)context;
    if (addr != (prb_addr)(uintptr_t)shown_otherwise)
        return 0;
    memset(buf, 'd', len);
    return len + 100; /* more than was asked for is not believed */
}

static bool debugger_registers(void *context, pid_t tid, const char *const *names, size_t count,
                               uint64_t *values)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        values[i] = names[i][0] ? 1000 + i : 0;
    return tid != 7;
}

static void held_by_a_debugger(void **state)
{
    (void)state;
    struct prb_error err = {0};
    struct prb_registers registers;
    int reads = 0;
    char buf[8];
    PRB_AUTO(prb_proc)
    struct prb_proc *proc = prb_proc_of_debugger(prb_proc_open(getpid(), &err), debugger_reads,
                                                 debugger_registers, &reads, &err);
    assert_non_null(proc);
    assert_true(prb_proc_exists(proc) && !prb_proc_live(proc));
    assert_true(prb_proc_check(proc, &err));
    assert_int_equal(prb_proc_pid(proc), getpid());
    assert_non_null(prb_proc_maps(proc, false, &err));
    struct prb_mem *mem = prb_proc_mem(proc, &err);
    assert_true(prb_mem_read(mem, (prb_addr)(uintptr_t)shown_otherwise, buf, 8, &err));
    assert_memory_equal(buf, "dddddddd", 8);
    assert_true(prb_mem_read(mem, (prb_addr)(uintptr_t)kept_back, buf, 8, &err));
    assert_memory_equal(buf, kept_back, 8);
    assert_int_equal(reads, 2);
    assert_false(prb_mem_read(mem, 8, buf, 8, &err));
    assert_true(prb_proc_registers(proc, getpid(), &registers, &err));
    assert_int_equal(registers.value[prb_arch_host()->sp] / 1000, 1);
    /* Nobody traces this process, and it has no such thread. */
    assert_false(prb_proc_registers(proc, 7, &registers, &err));
    assert_int_equal(err.code, PRB_BUSY);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    assert_true(prb_proc_tasks(proc, &tasks, &err));
    assert_int_equal(tasks.items[0].tid, getpid());
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* what exec_is_gone runs */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (write(1, argv[0], 1) == 1)
            pause();
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_text),
        cmocka_unit_test(ending),
        cmocka_unit_test(tasks_and_system_calls),
        cmocka_unit_test(beside_and_back),
        cmocka_unit_test(maps_that_change),
        cmocka_unit_test(ended_process_is_gone),
        cmocka_unit_test(exec_is_gone),
        cmocka_unit_test(mapped_files),
        cmocka_unit_test(refusals_name_their_rule),
        cmocka_unit_test(not_dumpable),
        cmocka_unit_test(texts_are_kept),
        cmocka_unit_test(still),
        cmocka_unit_test(held_by_a_debugger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
