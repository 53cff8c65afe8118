/*
 * Blocking system calls that nobody ever ends: one that returns early, late or with an error is
 * damage.
 *
 *     calls KIND [HZ]   the first thread makes that call again and again
 *     calls all         each kind on a thread of its own, and the first thread reads its standard
 * input calls list        the kinds
 *
 * HZ: SIGUSR1 with SA_RESTART comes so often meanwhile.  Timed calls wait 0.4 s, measured by
 * CLOCK_MONOTONIC.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "report.h"

#define WAIT_NS 400000000L
#define LATE_NS                                                                                    \
    30000000000L /* a busy machine; a call that starts anew after each stop shows by the count, too \
                 */
#define NEVER (-1)

static int a_pipe[2], pair[2], timed_pair[2], listener, epoll, queue, semaphores, locked;
static const struct timespec wait_for = {0, WAIT_NS};
static sigset_t waited_for;
static pid_t child;

static struct timespec later(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += WAIT_NS;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static long in_poll(void) { return poll(&(struct pollfd){a_pipe[0], POLLIN, 0}, 1, -1); }
static long in_poll_timed(void)
{
    return poll(&(struct pollfd){a_pipe[0], POLLIN, 0}, 1, WAIT_NS / 1000000);
}
static long in_ppoll(void) { return ppoll(&(struct pollfd){a_pipe[0], POLLIN, 0}, 1, NULL, NULL); }
static long in_select_with(struct timeval *time)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(a_pipe[0], &set);
    return select(a_pipe[0] + 1, &set, NULL, NULL, time);
}
static long in_select(void) { return in_select_with(NULL); }
static long in_select_timed(void) { return in_select_with(&(struct timeval){0, WAIT_NS / 1000}); }
static long in_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, -1);
}
static long in_epoll_timed(void)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, WAIT_NS / 1000000);
}
static long read_of(int fd)
{
    char bytes[512];
    return read(fd, bytes, sizeof bytes);
}
static long in_read_pipe(void) { return read_of(a_pipe[0]); }
static long in_read_eventfd(void)
{
    static __thread int fd;
    fd = fd ? fd : eventfd(0, EFD_CLOEXEC);
    return read_of(fd);
}
static long in_read_inotify(void)
{
    static __thread int fd;
    fd = fd ? fd : inotify_init1(IN_CLOEXEC);
    return read_of(fd);
}
static long in_nanosleep(void) { return nanosleep(&wait_for, NULL); }
static long in_clock_nanosleep(void)
{
    return (errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &wait_for, NULL)) ? -1 : 0;
}
static long futex_with(const struct timespec *time)
{
    static __thread uint32_t word;
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, time, NULL, 0);
}
static long in_futex(void) { return futex_with(NULL); }
static long in_futex_timed(void) { return futex_with(&wait_for); }
static long in_cond_timedwait(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until = later(CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    errno = pthread_cond_timedwait(&cond, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return errno ? -1 : 0;
}
static long in_sem_wait(void)
{
    sem_t sem;
    sem_init(&sem, 0, 0);
    return sem_wait(&sem);
}
static long in_sem_timedwait(void)
{
    sem_t sem;
    struct timespec until = later(CLOCK_REALTIME);
    sem_init(&sem, 0, 0);
    return sem_timedwait(&sem, &until);
}
static long in_recv(void)
{
    char byte;
    return recv(pair[0], &byte, 1, 0);
}
static long in_recv_timed(void)
{
    char byte;
    return recv(timed_pair[0], &byte, 1, 0);
}
static long in_accept(void) { return accept(listener, NULL, NULL); }
static long in_msgrcv(void)
{
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(queue, &message, sizeof message.text, 1, 0);
}
static long in_semop(void) { return semop(semaphores, &(struct sembuf){0, -1, 0}, 1); }
static long in_sigwaitinfo(void) { return sigwaitinfo(&waited_for, NULL); }
static long in_sigtimedwait(void) { return sigtimedwait(&waited_for, NULL, &wait_for); }
static long in_wait4(void) { return waitpid(child, NULL, 0); }
static long in_pause(void) { return pause(); }
static long in_fcntl_lock(void)
{
    return fcntl(locked, F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
}

/* How it ends when all is well: NEVER, 0 for "returns 0", or an errno. */
static const struct kind {
    const char *name;
    long (*call)(void);
    int end;
} KINDS[] = {
    {"poll", in_poll, NEVER},
    {"poll-timed", in_poll_timed, 0},
    {"ppoll", in_ppoll, NEVER},
    {"select", in_select, NEVER},
    {"select-timed", in_select_timed, 0},
    {"epoll_wait", in_epoll, NEVER},
    {"epoll_wait-timed", in_epoll_timed, 0},
    {"read-pipe", in_read_pipe, NEVER},
    {"read-eventfd", in_read_eventfd, NEVER},
    {"read-inotify", in_read_inotify, NEVER},
    {"nanosleep", in_nanosleep, 0},
    {"clock_nanosleep", in_clock_nanosleep, 0},
    {"futex", in_futex, NEVER},
    {"futex-timed", in_futex_timed, ETIMEDOUT},
    {"cond_timedwait", in_cond_timedwait, ETIMEDOUT},
    {"sem_wait", in_sem_wait, NEVER},
    {"sem_timedwait", in_sem_timedwait, ETIMEDOUT},
    {"recv", in_recv, NEVER},
    {"recv-timed", in_recv_timed, EAGAIN},
    {"accept", in_accept, NEVER},
    {"msgrcv", in_msgrcv, NEVER},
    {"semop", in_semop, NEVER},
    {"sigwaitinfo", in_sigwaitinfo, NEVER},
    {"sigtimedwait", in_sigtimedwait, EAGAIN},
    {"wait4", in_wait4, NEVER},
    {"pause", in_pause, NEVER},
    {"fcntl-lock", in_fcntl_lock, NEVER},
};
#define KIND_COUNT (sizeof KINDS / sizeof *KINDS)

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *make_calls(void *kind_)
{
    const struct kind *kind = kind_;
    for (volatile uint64_t *count = &report->progress[kind - KINDS];; ++*count) {
        int64_t began = now();
        errno = 0;
        long got = kind->call();
        int error = errno;
        int64_t took = now() - began;
        int as_it_must = kind->end == NEVER ? 0
                         : kind->end        ? got < 0 && error == kind->end
                                            : got == 0;
        if (!as_it_must)
            report_damage("%s returned %ld (%s) after %.3f s", kind->name, got, strerror(error),
                          took / 1e9);
        else if (took < WAIT_NS - 5000000 || took > LATE_NS)
            report_damage("%s took %.3f s", kind->name, took / 1e9);
    }
    return NULL;
}

static int must(int result)
{
    if (result < 0) {
        perror("calls");
        exit(1);
    }
    return result;
}

static void remove_ipc(void)
{
    msgctl(queue, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
}

/* A child holds the file's lock and lives as long as we do. */
static void make_child(void)
{
    char name[] = "/tmp/probing-calls-XXXXXX";
    int told[2];
    must(pipe(told));
    locked = must(mkstemp(name));
    unlink(name);
    child = must(fork());
    if (child == 0) {
        char byte = 0;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(fcntl(locked, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}));
        close(told[0]);
        if (write(told[1], &byte, 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(told[1]);
    char byte;
    if (read(told[0], &byte, 1) != 1)
        exit(1);
}

static void make_things(void)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX}; /* autobind */
    must(pipe(a_pipe));
    make_child();
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, timed_pair));
    must(setsockopt(timed_pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, WAIT_NS / 1000},
                    sizeof(struct timeval)));
    listener = must(socket(AF_UNIX, SOCK_STREAM, 0));
    must(bind(listener, (void *)&any, sizeof(sa_family_t)));
    must(listen(listener, 1));
    epoll = must(epoll_create1(0));
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, a_pipe[0], &(struct epoll_event){.events = EPOLLIN}));
    queue = must(msgget(IPC_PRIVATE, 0600));
    semaphores = must(semget(IPC_PRIVATE, 1, 0600));
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGRTMIN + 5);
    sigprocmask(SIG_BLOCK, &waited_for, NULL);
}

static void tick(int number)
{
    (void)number;
    report->progress[LANES_MAX - 1]++;
}

static void tick_often(int hertz)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, 1000000000 / hertz}, {0, 1000000000 / hertz}};
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = tick, .sa_flags = SA_RESTART}, NULL);
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &often, NULL));
}

/* System V objects outlive a process: so the test ends us by SIGTERM. */
static void stop(int number)
{
    (void)number;
    remove_ipc();
    kill(child, SIGKILL);
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "list"))
        for (size_t i = 0; i < KIND_COUNT; i++)
            puts(KINDS[i].name);
    if (argc < 2 || !strcmp(argv[1], "list"))
        return argc < 2;
    report_open();
    make_things();
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    report->lanes = KIND_COUNT;
    if (argc > 2)
        tick_often(atoi(argv[2]));
    for (size_t i = 0; i < KIND_COUNT; i++) {
        pthread_t thread;
        if (!strcmp(argv[1], KINDS[i].name)) {
            report_ready();
            make_calls((void *)&KINDS[i]);
        }
        if (!strcmp(argv[1], "all"))
            must(-pthread_create(&thread, NULL, make_calls, (void *)&KINDS[i]));
    }
    if (!strcmp(argv[1], "all"))
        report_park();
    stop(0);
}
