/*
 * The text that a handler writes where the writer could not run: what happened, the registers, and
 * the maps, which show whose code it was; and the line that says that the process is held.  Two
 * system calls a piece, each bounded.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "base/raw.h"
#include "inject/probe/crash/crash.h"

#define TEXT_BYTES 8192
#define MAPS_MAX (1u << 20) /* bytes of the maps that are kept */
#define ERROR_WAIT_S 1      /* for room in a pipe that nobody reads */
#define KEPT_BYTES 256

static char bytes[TEXT_BYTES];

/* 0, or the error, without a second try. */
static long put(long fd, const char *from, size_t len)
{
    while (len) {
        long n = PRB_RAW3(SYS_write, fd, from, len);
        if (n <= 0)
            return n ? n : -EIO;
        from += n;
        len -= (size_t)n;
    }
    return 0;
}

/* On the standard error; a pipe that takes some takes as much as this (pipe(7), PIPE_BUF). */
static void write_error(const char *from, size_t len)
{
    struct pollfd fd = {.fd = 2, .events = POLLOUT};
    struct timespec wait = {.tv_sec = ERROR_WAIT_S};
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

/* ---- where: found anew each time, as the program may have closed any descriptor, and anybody may
 * have taken a name that somebody cleaned away ---- */

/* A folder of this user alone below another one, made when it is not there; negative: the error. */
static long open_own(long above, const char *name)
{
    struct stat info;
    long made = PRB_RAW3(SYS_mkdirat, above, name, 0700);
    long fd = PRB_RAW4(SYS_openat, above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return made < 0 && made != -EEXIST ? made : fd;
    if (PRB_RAW4(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) == 0 && S_ISDIR(info.st_mode) &&
        info.st_uid == (uid_t)PRB_RAW0(SYS_geteuid) && !(info.st_mode & 077))
        return fd;
    PRB_RAW1(SYS_close, fd);
    return -EPERM;
}

/* The same as prb_crash_dump_folder() takes, its path to `path`. */
static long open_default(struct prb_crash_text *path)
{
    char *start = path->at;
    struct stat space = {0};
    PRB_RAW4(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/user", &space, 0);
    long folder = -ENOENT;
    for (size_t i = 0; i < PRB_CRASH_PLACES && folder < 0; i++) {
        path->at = start;
        prb_crash_add(path, prb_crash_places[i].path);
        prb_crash_add_number(path, (uint64_t)PRB_RAW0(SYS_geteuid), 10, 1);
        if (prb_crash_places[i].of_namespace) {
            prb_crash_add(path, "-");
            prb_crash_add_number(path, space.st_ino, 10, 1);
        }
        long above = open_own(AT_FDCWD, start);
        folder = above < 0 ? above : open_own(above, "crash");
        if (above >= 0)
            PRB_RAW1(SYS_close, above);
        prb_crash_add(path, "/crash");
    }
    return folder;
}

static long open_folder(const struct prb_crash_record *record, struct prb_crash_text *path)
{
    if (!record->folder[0])
        return open_default(path);
    prb_crash_add(path, record->folder); /* as the user named it */
    PRB_RAW3(SYS_mkdirat, AT_FDCWD, record->folder, 0700);
    return PRB_RAW4(SYS_openat, AT_FDCWD, record->folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

struct note {
    char path[PRB_CRASH_FOLDER_MAX + 128];
    const char *name;  /* in path */
    long folder, file; /* negative: the error */
};

static void open_note(const struct prb_crash_record *record, struct note *note)
{
    struct prb_crash_text path = {note->path, note->path + sizeof note->path};
    note->folder = open_folder(record, &path);
    prb_crash_add(&path, "/");
    note->name = path.at;
    prb_crash_add(&path, "crash-");
    prb_crash_add_time(&path, record->time / 1000000000);
    prb_crash_add(&path, prb_crash_plan.rank);
    prb_crash_add(&path, "-pid");
    prb_crash_add_number(&path, (uint64_t)record->pid, 10, 1);
    prb_crash_add(&path, ".txt");
    note->file = note->folder;
    if (note->folder >= 0)
        note->file = PRB_RAW4(SYS_openat, note->folder, note->name,
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* ---- what ---- */

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
        if (n <= 0 || put(to, bytes, (size_t)n) < 0)
            break;
        total += (size_t)n;
    }
    PRB_RAW1(SYS_close, from);
}

/* Negative: the error, and there is no file. */
static long write_note(const struct prb_crash_record *record, const struct note *note)
{
    struct prb_crash_text text = {bytes, bytes + sizeof bytes};
    if (note->file < 0)
        return note->file;
    add_facts(&text, record);
    add_registers(&text, record);
    long wrong = put(note->file, bytes, (size_t)(text.at - bytes));
    if (wrong < 0) /* half a text is none */
        PRB_RAW3(SYS_unlinkat, note->folder, note->name, 0);
    else
        copy_maps(note->file);
    PRB_RAW1(SYS_close, note->file);
    return wrong;
}

static const char *cause(long wrong)
{
    switch (-wrong) {
    case ENOSPC:
    case EDQUOT:
        return ": no space left";
    case EMFILE:
    case ENFILE:
        return ": too many open files";
    case EEXIST:
        return ": it is there already";
    case EPERM:
    case EACCES:
        return ": not this user's alone, or not to be written";
    default:
        return "";
    }
}

void prb_crash_note(const struct prb_crash_record *record)
{
    static char text[PRB_CRASH_FOLDER_MAX + PRB_CRASH_REASON_MAX + 512];
    static struct note note;
    struct prb_crash_text line = {text, text + sizeof text};
    open_note(record, &note);
    long wrong = write_note(record, &note);
    if (note.folder >= 0)
        PRB_RAW1(SYS_close, note.folder);
    prb_crash_add(&line, "probing: ");
    add_facts(&line, record);
    prb_crash_add(&line, wrong < 0 ? "probing: no crash dump, and nothing can be written to "
                                   : "probing: no crash dump could be written, but ");
    prb_crash_add(&line, note.path);
    prb_crash_add(&line, wrong < 0 ? cause(wrong) : "");
    prb_crash_add(&line, "\n");
    write_error(text, (size_t)(line.at - text));
}

void prb_crash_say_held(uint64_t ns)
{
    char room[KEPT_BYTES];
    struct prb_crash_text line = {room, room + sizeof room};
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
    write_error(room, (size_t)(line.at - room));
}
