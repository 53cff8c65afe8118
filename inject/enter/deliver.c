/*
 * How the library reaches the target, and the wait for the result: by its path where the target
 * sees the same file there; else through a sealed memory file that the new thread makes and we
 * fill; else as a file below the target's root, which is removed once it is loaded (carry.c).
 *
 * The page that we share with the new thread is the target's memory: its other threads may write
 * anything there.  So what it says never makes us do more than we would do anyway.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "inject/enter/steps.h"
#include "proc/elf_file.h"

#define LIBRARY_MAX (256u << 20)
#define LOAD_WAIT_S 10
#define BEGIN_WAIT_S 1 /* until the new thread runs, and until it takes the file */
#define CLEAR_WAIT_NS 200000000
#define CLEAR_WAIT_FRAME_NS 1000000000 /* one that ran may have to wait for a CPU */
#define LEFT_NAP_NS 10000000

/* ---- which library ---- */

static bool choose_library(const char *wanted, char *out, size_t size, struct prb_error *err)
{
    char real[PATH_MAX];
    if (!wanted)
        return prb_inject_library(out, size, err);
    if (!realpath(wanted, real))
        return prb_fail_sys(err, errno, "cannot open %s", wanted);
    if (strlen(real) >= size)
        return prb_fail(err, PRB_USAGE, "the path %s is too long", real);
    memcpy(out, real, strlen(real) + 1);
    return true;
}

/* ---- is the target's C library new enough ---- */

#define CHAIN_MAX 512
#define VERSIONS_MAX (1u << 20) /* bytes of the records below */

/* The version records of an ELF file (LSB Core, "Symbol Versioning"), and their names. */
struct versions {
    uint8_t *bytes;
    size_t len;
    struct prb_elf *elf;
    struct prb_extent names;
};

static bool versions_read(struct versions *out, struct prb_elf *elf, unsigned type)
{
    const Elf64_Shdr *section = prb_elf_of_type(elf, type);
    struct prb_extent at;
    *out = (struct versions){.elf = elf};
    if (!section || !prb_elf_contents(elf, section, &at) || at.len > VERSIONS_MAX ||
        !prb_elf_contents(elf, prb_elf_section_at(elf, section->sh_link), &out->names) ||
        !(out->bytes = malloc((size_t)at.len)))
        return false;
    out->len = prb_read_at(elf->fd, out->bytes, (size_t)at.len, at.offset);
    return true;
}

static void versions_deinit(struct versions *versions) { free(versions->bytes); }
PRB_DEFINE_AUTO(versions, struct versions, versions_deinit)

static bool record_at(const struct versions *versions, uint64_t at, void *out, size_t len)
{
    if (at > versions->len || len > versions->len - at)
        return false;
    memcpy(out, versions->bytes + at, len);
    return true;
}

static bool defines(struct prb_elf *elf, const char *version)
{
    PRB_AUTO(versions) struct versions versions;
    if (!versions_read(&versions, elf, SHT_GNU_verdef))
        return true; /* without versions: accept it */
    uint64_t at = 0;
    for (int i = 0; i < CHAIN_MAX; i++) {
        Elf64_Verdef def;
        Elf64_Verdaux aux;
        if (!record_at(&versions, at, &def, sizeof def) ||
            !record_at(&versions, at + def.vd_aux, &aux, sizeof aux))
            return false;
        if (prb_elf_string_is(elf, &versions.names, aux.vda_name, version))
            return true;
        if (!def.vd_next)
            return false;
        at += def.vd_next;
    }
    return false;
}

/* The first version that the library needs of libc.so.6 and that is missing, to out. */
static bool all_defined(struct prb_elf *library, struct prb_elf *libc, char *out, size_t size)
{
    PRB_AUTO(versions) struct versions versions;
    if (!versions_read(&versions, library, SHT_GNU_verneed))
        return true;
    Elf64_Verneed need;
    uint64_t at = 0;
    for (int i = 0; i < CHAIN_MAX && record_at(&versions, at, &need, sizeof need); i++) {
        Elf64_Vernaux aux;
        uint64_t aux_at = at + need.vn_aux;
        const char *file = prb_elf_string(library, &versions.names, need.vn_file);
        bool of_libc = file && prb_path_is(file, "libc.so.6");
        for (int k = 0;
             of_libc && k < need.vn_cnt && record_at(&versions, aux_at, &aux, sizeof aux); k++) {
            const char *version = prb_elf_string(library, &versions.names, aux.vna_name);
            if (version && !defines(libc, version)) {
                snprintf(out, size, "%s", version);
                return false;
            }
            aux_at += aux.vna_next;
        }
        if (!need.vn_next)
            break;
        at += need.vn_next;
    }
    return true;
}

static bool new_enough(const char *path, struct prb_modules *modules, pid_t pid,
                       struct prb_error *err)
{
    struct prb_module *libc = prb_libc(modules);
    struct prb_elf *theirs = libc ? prb_modules_elf(modules, libc, NULL) : NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return prb_fail_sys(err, errno, "cannot open %s", path);
    PRB_AUTO(prb_elf) struct prb_elf *elf = prb_elf_open(fd, path, err);
    char version[64];
    if (!elf)
        return false;
    if (!theirs || all_defined(elf, theirs, version, sizeof version))
        return true;
    prb_fail(err, PRB_UNSUPPORTED, "%s needs %s, and the C library of process %d is older", path,
             version, (int)pid);
    return prb_error_remedy(err, "Build Probing on a system as old as the target's");
}

/* Whether the file is complete: the loader maps what the headers say, and a page beyond the end of
 * the file would kill the target. */
static bool is_whole(int fd, uint64_t size)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    if (prb_read_at(fd, &head, sizeof head, 0) != sizeof head)
        return false;
    for (size_t i = 0; i < head.e_phnum; i++) {
        uint64_t end;
        if (prb_read_at(fd, &segment, sizeof segment, head.e_phoff + i * sizeof segment) !=
                sizeof segment ||
            __builtin_add_overflow(segment.p_offset, segment.p_filesz, &end) ||
            (segment.p_type == PT_LOAD && end > size))
            return false;
    }
    return head.e_phnum > 0;
}

/* ---- which way ---- */

static int open_library(const char *path, size_t *size_out, struct prb_error *err)
{
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info))
        prb_fail_sys(err, errno, "cannot open %s", path);
    else if (!S_ISREG(info.st_mode) || info.st_size <= 0 || info.st_size > LIBRARY_MAX)
        prb_fail(err, PRB_USAGE, "%s is not a library of at most %u MiB", path, LIBRARY_MAX >> 20);
    else if (!is_whole(fd, (uint64_t)info.st_size)) {
        prb_fail(err, PRB_CORRUPT, "%s is truncated", path);
        prb_error_remedy(err, "Build or install it again");
    } else {
        *size_out = (size_t)info.st_size;
        return PRB_STEAL_FD(fd);
    }
    return -1;
}

/* To carry it over. */
static bool read_library(int fd, struct prb_delivery *delivery, struct prb_error *err)
{
    delivery->bytes = malloc(delivery->len);
    if (!delivery->bytes)
        return prb_nomem(err);
    return prb_read_at(fd, delivery->bytes, delivery->len, 0) == delivery->len ||
           prb_fail_sys(err, errno ? errno : EIO, "cannot read %s", delivery->library);
}

/* Whether other users may read a file: every folder of its path can be entered by all. */
static bool open_to_all(const char *path)
{
    char part[PATH_MAX];
    struct stat info;
    if (stat(path, &info) || !(info.st_mode & S_IROTH))
        return false;
    for (const char *at = path; (at = strchr(at + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        if (stat(part, &info) || !(info.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* Whether the target finds the same file at the same path, and may read it. */
static bool same_there(struct prb_proc *proc, const char *path)
{
    struct stat here, there;
    PRB_AUTO_FD int fd = prb_proc_open_path(proc, path);
    if (fd < 0 || fstat(fd, &there) || stat(path, &here) || here.st_dev != there.st_dev ||
        here.st_ino != there.st_ino)
        return false;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "status", &text, NULL))
        return false;
    long long user = prb_inject_status(text.data, "Uid", 10);
    return user == 0 || (user == (long long)geteuid() && access(path, R_OK) == 0) ||
           open_to_all(path);
}

bool prb_delivery_init(struct prb_delivery *out, struct prb_proc *proc, struct prb_modules *modules,
                       const struct prb_inject_options *options, struct prb_error *err)
{
    PRB_AUTO(prb_delivery) struct prb_delivery delivery = {.start = options->library == NULL};
    if (!choose_library(options->library, delivery.library, sizeof delivery.library, err) ||
        !new_enough(delivery.library, modules, prb_proc_pid(proc), err))
        return false;
    PRB_AUTO_FD int fd = open_library(delivery.library, &delivery.len, err);
    if (fd < 0)
        return false;
    if (same_there(proc, delivery.library)) {
        memcpy(delivery.path, delivery.library, sizeof delivery.path);
        posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED); /* the loader will */
    } else if (!read_library(fd, &delivery, err))
        return false;
    *out = delivery;
    delivery = (struct prb_delivery){0};
    return true;
}

void prb_delivery_deinit(struct prb_delivery *delivery)
{
    free(delivery->bytes);
    delivery->bytes = NULL;
}

/* ---- the orders for the new thread ---- */

/* All but those that a fault raises and the two that the C library uses itself: setuid(2) waits
 * until every thread has handled the second. */
static uint64_t blocked_signals(void)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, 32, 33};
    uint64_t mask = ~UINT64_C(0);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        mask &= ~(UINT64_C(1) << (open[i] - 1));
    return mask;
}

#define DLOPEN_MODE_PRIVATE 0x80000000u /* glibc's __libc_dlopen_mode: called from nowhere */

bool prb_delivery_page(const struct prb_delivery *delivery, const struct prb_addresses *addresses,
                       const struct prb_inject_options *options, struct prb_stub_page *out,
                       struct prb_error *err)
{
    struct prb_stub_page page = {
        .descriptor = -1,
        .result = -1,
        .patience = PRB_STUB_PATIENCE_NAPS,
        .open_mode = RTLD_NOW | (addresses->private_dlopen ? DLOPEN_MODE_PRIVATE : 0),
        .pthread_create = addresses->pthread_create,
        .pthread_self = addresses->pthread_self,
        .pthread_detach = addresses->pthread_detach,
        .munmap = addresses->munmap,
        .dlopen = addresses->dlopen,
        .dlsym = addresses->dlsym,
        .dlerror = addresses->private_dlopen ? 0 : addresses->dlerror,
        .entry = delivery->start ? addresses->probe_start : 0,
        .block_mask = blocked_signals(),
        .nap = {0, PRB_STUB_NAP_NS},
        .call = {.version = PRB_PROBE_START_VERSION, .size = sizeof page.call},
        .symbol = "prb_probe_start",
        .thread_name = "probing",
        .flags = (delivery->start ? PRB_STUB_START : 0) | (delivery->path[0] ? 0 : PRB_STUB_FETCH),
    };
    snprintf(page.how, sizeof page.how, "%d/%u", (int)getpid(), (unsigned)geteuid());
    if (options->settings && strlen(options->settings) >= sizeof page.settings)
        return prb_fail(err, PRB_USAGE, "the settings are longer than %zu bytes",
                        sizeof page.settings - 1);
    if (options->settings)
        memcpy(page.settings, options->settings, strlen(options->settings));
    memcpy(page.path, delivery->path, sizeof page.path);
    strcpy(page.memfd_name, delivery->start ? "libprobe.so" : "library.so");
    *out = page;
    return true;
}

/* ---- handing the file over ---- */

static bool poke(struct prb_proc *proc, prb_addr addr, const void *bytes, size_t len)
{
    struct iovec local = {(void *)bytes, len}, remote = {(void *)addr, len};
    return process_vm_writev(prb_proc_pid(proc), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* The new thread waits for a file to open. */
static bool carry_over(const struct prb_delivery *delivery, struct prb_proc *proc, prb_addr at,
                       int descriptor, struct prb_target_file *file, struct prb_error *err)
{
    char path[PRB_STUB_PATH_MAX] = "";
    uint32_t go = PRB_STUB_PATH_IS_THERE;
    if (!prb_fill_memory_file(delivery, proc, descriptor, path, sizeof path) &&
        !prb_target_file(proc, delivery->start ? "-libprobe.so" : ".so", delivery->bytes,
                         delivery->len, file)) {
        if (errno == EMFILE || errno == ENFILE)
            return prb_fail_sys(err, errno, "carrying the library into process %d",
                                (int)prb_proc_pid(proc));
        prb_fail(err, PRB_IO,
                 "the library could not be carried into the root of process %d: neither a memory "
                 "file nor a file in /dev/shm, /tmp or /var/tmp could be made",
                 (int)prb_proc_pid(proc));
        return prb_error_remedy(err, "Copy %s to the same path in the target's root",
                                delivery->library);
    }
    if (file->made)
        memcpy(path, file->path, sizeof file->path);
    if (!poke(proc, at + offsetof(struct prb_stub_page, path), path, sizeof path) ||
        !poke(proc, at + offsetof(struct prb_stub_page, go), &go, sizeof go))
        return prb_fail(err, PRB_GONE, "process %d ended", (int)prb_proc_pid(proc));
    return true;
}

/* ---- the wait ---- */

static bool judge(const struct prb_delivery *delivery, const struct prb_stub_page *page,
                  struct prb_error *err)
{
    const char *library = delivery->library;
    if (page->progress == PRB_STUB_TIMED_OUT)
        return prb_fail(err, PRB_TIMEOUT, "the library did not reach the target in time");
    if (page->progress != PRB_STUB_DONE)
        return prb_fail(err, PRB_UNSUPPORTED, "the target cannot load %s: %.200s", library,
                        page->text[0] ? page->text : "dlopen gave no reason");
    if (delivery->start && page->result != 0)
        return prb_fail(err, PRB_UNSUPPORTED, "%s does not start: %.200s", library,
                        page->call.error[0] ? page->call.error : "it gave no reason");
    return true;
}

static bool overdue(const struct prb_stub_page *page, pid_t pid, bool carried,
                    struct prb_error *err)
{
    if (page->step == 0)
        prb_fail(err, PRB_TIMEOUT, "the thread that was chosen in process %d has not run yet",
                 (int)pid);
    else if (page->step == PRB_STUB_CALLING)
        prb_fail(err, PRB_TIMEOUT,
                 "the thread that was chosen in process %d waits in pthread_create: another thread "
                 "holds a lock of the C library",
                 (int)pid);
    else if (carried && page->progress <= PRB_STUB_WAITS)
        prb_fail(err, PRB_TIMEOUT,
                 "the new thread in process %d has not taken the library for %d s", (int)pid,
                 BEGIN_WAIT_S);
    else
        prb_fail(err, PRB_TIMEOUT, "process %d has been loading the library for %d s", (int)pid,
                 LOAD_WAIT_S);
    return prb_error_remedy(err, "The load continues by itself; try again later");
}

/* The page is the target's own memory. */
static bool lied(pid_t pid, struct prb_error *err)
{
    prb_fail(err, PRB_CORRUPT, "process %d changed what the new thread reported", (int)pid);
    return prb_error_remedy(err,
                            "The process interferes with the tool: trust nothing that it reports");
}

/* ---- the end ---- */

/* Whether the borrowed thread has certainly left the stub: it sleeps elsewhere, or the signal mask
 * that it had there is gone, which rt_sigreturn(2) restores together with the registers. */
static bool has_left(struct prb_proc *proc, const struct prb_borrowed *borrowed, uint64_t mask)
{
    char name[48];
    struct prb_syscall call;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_syscall(proc, borrowed->tid, &call, NULL))
        return false;
    if (!call.running)
        return call.pc - borrowed->base >= borrowed->len;
    snprintf(name, sizeof name, "task/%d/status", (int)borrowed->tid);
    return borrowed->by_frame && prb_proc_text(proc, name, &text, NULL) &&
           (uint64_t)prb_inject_status(text.data, "SigBlk", 16) != mask;
}

/* Nobody will tell the new thread anything: it waits as long as before, with few naps.  Thousands a
 * second, each of which waits for a CPU, would take minutes on a busy machine. */
static void leave_alone(struct prb_proc *proc, prb_addr at)
{
    const struct timespec nap = {.tv_nsec = LEFT_NAP_NS};
    const uint32_t naps = PRB_STUB_PATIENCE_NAPS / (LEFT_NAP_NS / PRB_STUB_NAP_NS);
    poke(proc, at + offsetof(struct prb_stub_page, nap), &nap, sizeof nap);
    poke(proc, at + offsetof(struct prb_stub_page, patience), &naps, sizeof naps);
}

/* The new thread need not wait for a file any longer.  It counts down meanwhile: to be told again until it ends. */
static void give_up(struct prb_proc *proc, prb_addr at)
{
    const uint32_t naps = 1;
    poke(proc, at + offsetof(struct prb_stub_page, patience), &naps, sizeof naps);
}

/* Tell the new thread that nobody uses the mapping any more, and wait until it is unmapped.  The
 * new thread cannot know by itself when the borrowed one has left it. */
static void clear_away(struct prb_proc *proc, const struct prb_borrowed *borrowed, uint64_t mask)
{
    prb_addr at = borrowed->page;
    struct prb_mem *mem = prb_proc_mem(proc, NULL);
    uint32_t go = PRB_STUB_OVER;
    bool told = false;
    struct prb_error gone = {0};
    const int64_t most = borrowed->by_frame ? CLEAR_WAIT_FRAME_NS : CLEAR_WAIT_NS;
    for (int64_t begin = prb_clock_ns(); (int64_t)prb_clock_ns() - begin < most;) {
        /* On a busy machine it may not have returned from pthread_create(3) yet. */
        uint32_t step = 0;
        if (!told && prb_mem_u32(mem, at + offsetof(struct prb_stub_page, step), &step, NULL) &&
            step == PRB_STUB_RETURNED && has_left(proc, borrowed, mask))
            told = poke(proc, at + offsetof(struct prb_stub_page, go), &go, sizeof go);
        if (told && !prb_mem_read(mem, at, &go, sizeof go, &gone))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    if (!told)
        leave_alone(proc, at);
}

bool prb_delivery_await(const struct prb_delivery *delivery, struct prb_proc *proc,
                        const struct prb_borrowed *borrowed, struct prb_stub_page *page,
                        struct prb_error *err)
{
    prb_addr at = borrowed->page;
    pid_t pid = prb_proc_pid(proc);
    struct prb_mem *mem = prb_proc_mem(proc, err);
    PRB_AUTO(prb_target_file) struct prb_target_file file = {0};
    /* From here on the page may hold anything. */
    const bool fetches = !delivery->path[0] && !page->entry;
    const uint64_t mask = page->block_mask;
    bool good = mem != NULL, carried = false, failed = false;
    int64_t begin = prb_clock_ns(), nap = 20000;
    for (;; nap = nap < 1000000 ? nap * 5 / 4 : nap) {
        struct prb_error lost = {0};
        if (!good || !prb_mem_read(mem, at, page, sizeof *page, &lost)) {
            good = good && !failed &&
                   prb_fail(err, PRB_GONE,
                            "process %d ended or ran another program "
                            "meanwhile",
                            (int)pid);
            break;
        }
        if (page->step == PRB_STUB_RETURNED && page->created != 0) {
            good = prb_fail_sys(err, page->created, "process %d cannot start a thread", (int)pid);
            prb_error_remedy(err, "Raise the job's limit of processes (ulimit -u, pids.max)");
            break;
        }
        if (page->progress >= PRB_STUB_DONE) {
            /* Its report is stored before; the copy may have been made in another order. */
            prb_mem_read(mem, at, page, sizeof *page, NULL);
            good = !failed && judge(delivery, page, err);
            clear_away(proc, borrowed, mask);
            break;
        }
        if (page->progress == PRB_STUB_WAITS && !carried) {
            carried = true;
            if (fetches)
                failed = !carry_over(delivery, proc, at, page->descriptor, &file, err);
            else
                good = lied(pid, err);
            begin = prb_clock_ns();
            continue;
        }
        /* Loading may take long, and progress says so; a hostile target can delay us as long.  All
         * steps before it are immediate. */
        bool loads = page->progress == PRB_STUB_OPENS || (page->progress && !fetches);
        int64_t waited = prb_clock_ns() - begin;
        if (failed)
            give_up(proc, at);
        if (waited > (loads ? LOAD_WAIT_S : BEGIN_WAIT_S) * 1000000000ll) {
            good = !failed && overdue(page, pid, carried, err);
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
    }
    return good;
}
