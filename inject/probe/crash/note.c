/*
 * The text that a handler writes where the writer could not run: what happened, the registers, and
 * the maps, which tell whose code it was; and the line that says that the process is kept.  Two
 * system calls a piece, each bounded.
 */
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "inject/probe/crash/crash.h"
#include "inject/probe/crash/raw.h"

#define TEXT_BYTES 8192
#define MAPS_MAX (1u << 20) /* bytes of the maps that are kept */
#define TOLD_WAIT_S 1       /* for room in a pipe that nobody reads */
#define KEPT_BYTES 256

static char bytes[TEXT_BYTES];

static bool put(long fd, const char *from, size_t len)
{
    while (len) {
        long n = PRB_RAW3(SYS_write, fd, from, len);
        if (n <= 0)
            return false; /* a full disk: no second try */
        from += n;
        len -= (size_t)n;
    }
    return true;
}

/* On the standard error; a pipe that takes some takes as much as this (pipe(7), PIPE_BUF). */
static void tell(const char *from, size_t len)
{
    struct pollfd fd = {.fd = 2, .events = POLLOUT};
    struct timespec wait = {.tv_sec = TOLD_WAIT_S};
    if (PRB_RAW5(SYS_ppoll, &fd, 1, &wait, NULL, sizeof(uint64_t)) == 1 && fd.revents & POLLOUT)
        put(2, from, len);
}

static void add_facts(struct prb_crash_text *text, const struct prb_crash_record *record)
{
    const char *signal = prb_crash_signal_name(record->signal);
    prb_crash_add(text, signal ? signal : record->signal ? "no signal" : "exception");
    prb_crash_add(text, " in process ");
    prb_crash_add_number(text, (uint64_t)record->pid, 10, 1);
    prb_crash_add(text, ", thread ");
    prb_crash_add_number(text, (uint64_t)record->tid, 10, 1);
    if (record->signal && record->address) {
        prb_crash_add(text, ", address 0x");
        prb_crash_add_number(text, record->address, 16, 1);
    }
    prb_crash_add(text, ", ");
    prb_crash_add_time(text, record->time / 1000000000);
    if (record->reason[0]) {
        prb_crash_add(text, "\n");
        prb_crash_add(text, record->reason);
    }
    prb_crash_add(text, "\n");
}

static long open_note(const struct prb_crash_record *record, struct prb_crash_text *path)
{
    prb_crash_add(path, record->folder);
    PRB_RAW3(SYS_mkdirat, AT_FDCWD, record->folder, 0700);
    prb_crash_add(path, "/crash-");
    prb_crash_add_time(path, record->time / 1000000000);
    prb_crash_add(path, prb_crash_plan.rank);
    prb_crash_add(path, "-pid");
    prb_crash_add_number(path, (uint64_t)record->pid, 10, 1);
    prb_crash_add(path, ".txt");
    return PRB_RAW4(SYS_openat, AT_FDCWD, bytes,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void add_registers(struct prb_crash_text *text, const struct prb_crash_record *record)
{
    prb_crash_add(text, "\nregisters, in the kernel's order:\n");
    for (uint32_t i = 0; i < record->word_count; i++) {
        prb_crash_add_number(text, record->words[i], 16, 16);
        prb_crash_add(text, i % 4 == 3 ? "\n" : " ");
    }
    prb_crash_add(text, "\n\nmaps:\n");
}

static void copy_maps(long to)
{
    long from = PRB_RAW4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (from < 0)
        return;
    for (size_t total = 0; total < MAPS_MAX;) {
        long n = PRB_RAW3(SYS_read, from, bytes, sizeof bytes);
        if (n <= 0 || !put(to, bytes, (size_t)n))
            break;
        total += (size_t)n;
    }
    PRB_RAW1(SYS_close, from);
}

void prb_crash_note(const struct prb_crash_record *record)
{
    static char told[PRB_CRASH_FOLDER_MAX + PRB_CRASH_REASON_MAX + 512];
    struct prb_crash_text path = {bytes, bytes + sizeof bytes};
    struct prb_crash_text line = {told, told + sizeof told};
    long fd = open_note(record, &path);
    prb_crash_add(&line, "probing: ");
    add_facts(&line, record);
    prb_crash_add(&line, fd < 0 ? "probing: no crash dump, and nothing can be written to "
                                : "probing: no crash dump could be written, but ");
    prb_crash_add(&line, bytes);
    prb_crash_add(&line, "\n");
    tell(told, (size_t)(line.at - told));
    if (fd < 0)
        return;
    struct prb_crash_text text = {bytes, bytes + sizeof bytes};
    add_facts(&text, record);
    add_registers(&text, record);
    if (put(fd, bytes, (size_t)(text.at - bytes)))
        copy_maps(fd);
    PRB_RAW1(SYS_close, fd);
}

void prb_crash_tell_kept(uint64_t ns)
{
    char told[KEPT_BYTES];
    struct prb_crash_text line = {told, told + sizeof told};
    uint64_t pid = (uint64_t)PRB_RAW0(SYS_getpid);
    prb_crash_add(&line, "probing: kept for ");
    prb_crash_add_number(&line, (ns + 999999999) / 1000000000, 10, 1);
    prb_crash_add(&line, " s for a debugger: `gdb -p ");
    prb_crash_add_number(&line, pid, 10, 1);
    prb_crash_add(&line, "` or `probing ");
    prb_crash_add_number(&line, pid, 10, 1);
    prb_crash_add(&line, " debug --snapshot`; `probing ");
    prb_crash_add_number(&line, pid, 10, 1);
    prb_crash_add(&line, " config probing.crash_hold=0` lets it go\n");
    tell(told, (size_t)(line.at - told));
}
