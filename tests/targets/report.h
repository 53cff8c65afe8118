/*
 * What a target of the injection tests tells: one page of a file named by PRB_TEST_REPORT, written
 * in passing and read by the test through its own mapping, so that telling disturbs nothing.
 * tests/support/injection.py has the same offsets.
 */
#ifndef PRB_TEST_REPORT_H
#define PRB_TEST_REPORT_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LANES_MAX 512

struct report {
    uint64_t ready;
    uint64_t lanes;  /* how many of progress are in use */
    uint64_t damage; /* times that something was not as it must be */
    uint64_t loads;  /* by counted.c, the library that is injected */
    char text[480];  /* the first damage */
    volatile uint64_t progress[LANES_MAX];
};

static struct report *report;

__attribute__((unused)) static struct report *report_map(void)
{
    const char *path = getenv("PRB_TEST_REPORT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    void *page = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

/* What the loader left on the stack would be taken for live frames; call first, from a shallow
 * stack. */
__attribute__((unused, noinline)) static void report_wipe_stack(void)
{
    volatile char room[64 << 10];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
}

__attribute__((unused)) static void report_open(void)
{
    report = report_map();
    report_wipe_stack();
    if (!report) {
        fputs("PRB_TEST_REPORT names no file to report to\n", stderr);
        exit(2);
    }
}

__attribute__((unused, format(printf, 1, 2))) static void report_damage(const char *format, ...)
{
    static int taken;
    if (__atomic_exchange_n(&taken, 1, __ATOMIC_RELAXED) == 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(report->text, sizeof report->text, format, args);
        va_end(args);
    }
    /* After the text: who sees the count reads it. */
    __atomic_fetch_add(&report->damage, 1, __ATOMIC_RELEASE);
}

__attribute__((unused)) static void report_ready(void)
{
    __atomic_store_n(&report->ready, 1, __ATOMIC_RELEASE);
}

/* Until the test closes our standard input. */
__attribute__((unused)) static void report_park(void)
{
    char byte;
    report_ready();
    for (ssize_t got; (got = read(0, &byte, 1)) != 0;)
        if (got < 0) {
            report_damage("read of standard input failed: %m");
            return;
        }
}

#endif
