/*
 * What a look at a process costs at least: the system calls that it cannot do without, made bare.
 *
 *     floor PID ROUNDS     one line of JSON, microseconds of CPU, each the least of the rounds
 *
 *   list     open, read and close /proc/N/stat of every process of the machine
 *   stat     open, read and close /proc/PID/task/TID/stat of every thread
 *   maps     read /proc/PID/maps
 *   readings two process_vm_readv(2), each with 1 KB for every thread
 *   copy     1 MB by process_vm_readv(2)
 *   sample   one process_vm_readv(2) of five ranges: a thread that stands, its state, its frames,
 *            where its C stack calls Python, the runtime, its interpreter; one after the other
 *   slept    the same after a sleep of 1 ms each, with the sleep's own CPU time; the mean
 *   nap      such a sleep alone
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 4096
#define EACH 1024

static double cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static pid_t pid;
static pid_t threads[THREADS_MAX];
static size_t count;
static unsigned long start, end; /* of the largest map that can be read and written */

static void find_threads(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder)) && count < THREADS_MAX;)
        if (atoi(entry->d_name) > 0)
            threads[count++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
}

static void find_memory(void)
{
    char path[64], line[512], flags[8];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    for (unsigned long from, to; maps && fgets(line, sizeof line, maps);)
        if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3 && flags[0] == 'r' &&
            flags[1] == 'w' && to - from > end - start) {
            start = from;
            end = to;
        }
    if (maps)
        fclose(maps);
}

static void read_stat(void)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%d/stat", (int)threads[i]);
        int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof text) < 0)
            exit(1);
        close(fd);
    }
    close(folder);
}

static size_t processes;

static void read_processes(void)
{
    char path[64], text[1024];
    DIR *folder = opendir("/proc");
    processes = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (atoi(entry->d_name) <= 0)
            continue;
        snprintf(path, sizeof path, "%d/stat", atoi(entry->d_name));
        int fd = openat(dirfd(folder), path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue; /* it ended */
        processes += read(fd, text, sizeof text) > 0;
        close(fd);
    }
    if (folder)
        closedir(folder);
}

static void read_maps(void)
{
    static char text[65536];
    snprintf(text, sizeof text, "/proc/%d/maps", (int)pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, text, sizeof text) > 0)
        ;
    close(fd);
}

static void read_memory(size_t pieces, size_t each)
{
    static char to[1 << 20];
    static struct iovec here[THREADS_MAX], there[THREADS_MAX];
    size_t step = (end - start) / (pieces + 1) / 64 * 64, done = 0;
    for (size_t i = 0; i < pieces; i++) {
        here[i] = (struct iovec){to + i * each % sizeof to, each};
        there[i] = (struct iovec){(void *)(start + i * step), each};
    }
    while (done < pieces) {
        size_t n = pieces - done < 1024 ? pieces - done : 1024; /* IOV_MAX */
        if (process_vm_readv(pid, here + done, n, there + done, n, 0) < 0)
            exit(1);
        done += n;
    }
}

static void readings(void)
{
    read_memory(count, EACH);
    read_memory(count, EACH);
}

static void copy(void) { read_memory(1, (end - start < 1 << 20) ? end - start : 1 << 20); }

#define BATCH 100
static void sample(void) { read_memory(5, 768); }

static void samples(void)
{
    for (int i = 0; i < BATCH; i++)
        sample();
}

static void nap(void) { ppoll(NULL, 0, &(struct timespec){.tv_nsec = 1000000}, NULL); }

static void naps(void)
{
    for (int i = 0; i < BATCH; i++)
        nap();
}

static void slept(void)
{
    for (int i = 0; i < BATCH; i++) {
        nap();
        sample();
    }
}

static double least(int rounds, void (*what)(void))
{
    double best = 0;
    for (int i = 0; i < rounds; i++) {
        double before = cpu_us();
        what();
        double took = cpu_us() - before;
        best = i && best < took ? best : took;
    }
    return best;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    pid = atoi(argv[1]);
    int rounds = atoi(argv[2]);
    find_threads();
    find_memory();
    if (!count || !start)
        return 1;
    printf("{\"threads\": %zu, \"stat\": %.1f, \"maps\": %.1f, \"readings\": %.1f, \"copy\": %.1f, "
           "\"sample\": %.2f, \"slept\": %.2f, \"nap\": %.2f, ",
           count, least(rounds, read_stat), least(rounds, read_maps), least(rounds, readings),
           least(rounds, copy), least(rounds, samples) / BATCH, least(3, slept) / BATCH,
           least(3, naps) / BATCH);
    double listed = least(3, read_processes);
    printf("\"list\": %.1f, \"processes\": %zu}\n", listed, processes);
    return 0;
}
