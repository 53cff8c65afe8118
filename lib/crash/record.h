/*
 * What a crashing process says about its crash: one struct in the memory of the probe, read from
 * outside by the program that writes the crash dump (lib/crash/write.c).  Both sides.
 */
#ifndef PRB_CRASH_RECORD_H
#define PRB_CRASH_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_CRASH_MAGIC UINT64_C(0x70726f6263723031)
#define PRB_CRASH_WORDS 48 /* of a register set: x86-64 has 27, AArch64 34 */
#define PRB_CRASH_FOLDER_MAX 512
#define PRB_CRASH_REASON_MAX 512

/* The signals that may be reported, signal(7). */
#define PRB_CRASH_SIGNALS(S)                                                                       \
    S(SIGSEGV) S(SIGBUS) S(SIGFPE) S(SIGILL) S(SIGTRAP) S(SIGABRT) S(SIGTERM)

/* "SIGSEGV"; NULL: none of them.  Within a signal handler, too. */
static inline const char *prb_crash_signal_name(int number)
{
    switch (number) {
#define PRB_CRASH_NAME(signal)                                                                     \
    case signal:                                                                                   \
        return #signal;
        PRB_CRASH_SIGNALS(PRB_CRASH_NAME)
#undef PRB_CRASH_NAME
    default:
        return NULL;
    }
}

enum prb_crash_kind {
    PRB_CRASH_SIGNAL,    /* it ends the process */
    PRB_CRASH_EXCEPTION, /* that nobody handled */
    PRB_CRASH_ASKED,     /* SIGTERM */
    PRB_CRASH_MEMORY,    /* the control group has nearly no memory left */
};

struct prb_crash_record {
    uint64_t magic;
    uint32_t size, kind;
    int32_t pid, tid; /* the thread that it came to, as the process sees them */
    int32_t signal, code;
    uint64_t address;                /* si_addr of a fault */
    int64_t time;                    /* ns since the epoch */
    uint64_t words[PRB_CRASH_WORDS]; /* the kernel's register set where the signal came */
    uint32_t word_count;             /* 0: none */
    int32_t sender;                  /* who sent it: a pid; 0: the kernel */
    uint64_t dump_bytes, folder_bytes;
    char folder[PRB_CRASH_FOLDER_MAX]; /* "": the default */
    char reason[PRB_CRASH_REASON_MAX]; /* one line */
};

/* What the default folder lies in, best first: another user may have made the name before.  Each is
 * followed by the user's number, and where it says so by "-" and that of the user namespace. */
static const struct {
    const char *path;
    bool of_namespace;
} prb_crash_places[] = {
    {"/tmp/probing-", false}, {"/tmp/probing-", true}, {"/var/tmp/probing-", false}};
enum { PRB_CRASH_PLACES = sizeof prb_crash_places / sizeof *prb_crash_places };

/* What the writer says through its pipe when it is done. */
#define PRB_CRASH_WRITTEN 'w'

#endif
