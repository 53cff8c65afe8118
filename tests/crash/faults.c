/* Faults as native code makes them: what tests/crash/crasher.py calls. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY 8

void fault_null(void) { *(volatile int *)(uintptr_t)8 = 1; }

void fault_abort(void) { abort(); }

void fault_divide(void)
{
#ifdef __x86_64__
    volatile int zero = 0;
    volatile int one = 1;
    one = one / zero;
#else
    abort();
#endif
}

/* x86-64: ud2, which __builtin_trap() is there.  AArch64: udf; its __builtin_trap() is brk. */
void fault_illegal(void)
{
#ifdef __aarch64__
    __asm__ volatile(".inst 0");
#else
    __builtin_trap();
#endif
}

/* After int3 a process goes on, at brk it stays. */
void fault_trap(void)
{
#ifdef __aarch64__
    __builtin_trap();
#else
    __asm__ volatile("int3");
#endif
}

/* A stack overflow of this thread.  Frames are smaller than the page that guards it: none reaches beyond. */
int fault_recurse(int depth)
{
    volatile char room[1024];
    memset((char *)room, depth, sizeof room);
    return fault_recurse(depth + 1) + room[depth % 1024];
}

static const char *dumps;

/* Ends the process as soon as there is a dump: its text is written then. */
static void *kill_meanwhile(void *nothing)
{
    for (;;) {
        DIR *folder = opendir(dumps);
        for (const struct dirent *one; folder && (one = readdir(folder));)
            if (strstr(one->d_name, ".snap"))
                kill(getpid(), SIGKILL);
        if (folder)
            closedir(folder);
    }
    return nothing;
}

void fault_killed(const char *path)
{
    pthread_t thread;
    dumps = path;
    if (pthread_create(&thread, NULL, kill_meanwhile, NULL) == 0)
        fault_null();
}

static void *null_thread(void *nothing)
{
    (void)nothing;
    fault_null();
    return NULL;
}

void fault_in_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, null_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

static pthread_barrier_t barrier;

static void *together(void *nothing)
{
    (void)nothing;
    pthread_barrier_wait(&barrier);
    fault_null();
    return NULL;
}

/* Several threads at once. */
void fault_many(void)
{
    pthread_t threads[MANY];
    pthread_barrier_init(&barrier, NULL, MANY);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], NULL, together, NULL) != 0)
            abort();
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
}

/* Everything malloc knows of its own is overwritten, sizes and links, and then it is used. */
void fault_heap(void)
{
    enum { PIECES = 64, SIZE = 600 };
    char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = malloc(SIZE);
    for (int i = 0; i < PIECES; i += 2)
        free(pieces[i]);
    for (int i = 1; i < PIECES; i += 2)
        memset(pieces[i] - 16, 0x41, SIZE + 32);
    for (int i = 1; i < PIECES; i += 2)
        free(pieces[i]);
    for (int i = 0; i < PIECES; i++)
        memset(malloc(SIZE), 1, SIZE);
    fault_null();
}

/* malloc finds out by itself, with its lock held: a free piece whose size makes no sense. */
void fault_malloc(void)
{
    enum { SIZE = 2000 };
    char *piece = malloc(SIZE), *behind = malloc(SIZE);
    free(piece);
    memset(piece - 8, 0xff, 8);
    piece = malloc(2 * SIZE);
    memset(piece, 1, SIZE);
    free(behind);
    free(piece);
}

static volatile int counted;

static void count(int number)
{
    (void)number;
    __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
}

/* Count a signal as it comes. */
void fault_count(int number)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

int fault_counted(void) { return counted; }
