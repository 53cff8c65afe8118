/*
 * Writing a crash dump: the process is stopped and decoded through a recording source.  What that
 * touched is written as a snapshot, with what only a dying process can say.  If the file is larger
 * than allowed, the process is decoded again with less.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arch/arch.h"
#include "crash/crash.h"
#include "inspect/secrets.h"
#include "native/stop_all.h"
#include "proc/source.h"

#define RING_SHARE 8 /* one part in so many of the dump is for the rings' rows */

/* What is asked, in this order, and how much of the room that the first answer leaves all of it up
 * to there may fill. */
enum whose { PYTHON_THREADS, CRASHED_THREAD, ALL_THREADS };
static const struct question {
    enum whose whose;
    bool native;
    size_t locals; /* characters of a value; 0: without */
    double share;
} questions[] = {
    {PYTHON_THREADS, false, 0, 0},      {CRASHED_THREAD, true, 0, 0.3},
    {CRASHED_THREAD, false, 120, 0.65}, {PYTHON_THREADS, true, 0, 0.75},
    {ALL_THREADS, true, 0, 0.85},       {PYTHON_THREADS, false, 120, 0.95},
    {CRASHED_THREAD, false, 1000, 1},
};
enum { QUESTIONS = sizeof questions / sizeof *questions, TENSORS_ASK = 2 };
#define TASK_BYTES 1024    /* that a thread's registers, texts and segments take in the file */
#define OTHER_BYTES 32768  /* that everything else takes */
#define LEAST_BYTES 262144 /* of memory, however small the dump is to be */
/* Frames that are followed: of a stack that overflowed the innermost ones say enough. */
#define FRAMES_MAX 500
#define NATIVE_FRAMES_MAX 800

PRB_DEFINE_AUTO_PTR(prb_target, struct prb_target, prb_target_close)

/* ---- the account ---- */

static bool read_record(pid_t pid, prb_addr at, struct prb_crash_record *out, struct prb_error *err)
{
    PRB_AUTO(prb_mem) struct prb_mem *mem = prb_mem_process_new(pid, err);
    if (!mem || !prb_mem_read(mem, at, out, sizeof *out, err))
        return false;
    if (out->magic != PRB_CRASH_MAGIC || out->size != sizeof *out || out->pid != pid ||
        out->word_count > PRB_CRASH_WORDS)
        return prb_fail(err, PRB_CORRUPT, "process %d has no account of a crash there", (int)pid);
    out->folder[sizeof out->folder - 1] = '\0';
    out->reason[sizeof out->reason - 1] = '\0';
    return true;
}

/* ---- registers of the thread that crashed: where the signal came ---- */

struct account {
    struct prb_crash_record record;
    struct prb_registers registers; /* known 0: none */
};

/* Others' are asked of the kernel (prb_proc_of_debugger). */
static bool tell_registers(void *context, pid_t tid, const char *const *names, size_t count,
                           uint64_t *values)
{
    const struct account *account = context;
    const struct prb_arch *arch = prb_arch_host();
    if (tid != account->record.tid || !account->registers.known)
        return false;
    for (size_t i = 0; i < count; i++) {
        unsigned k = 0;
        while (k < arch->register_count && strcmp(arch->registers[k].name, names[i]) != 0)
            k++;
        if (k == arch->register_count)
            return false;
        values[i] = account->registers.value[k];
    }
    return true;
}

static void take_registers(struct account *account)
{
    const struct prb_crash_record *record = &account->record;
    if (!record->word_count ||
        !prb_arch_registers(prb_arch_host(), record->words, record->word_count * sizeof(uint64_t),
                            &account->registers, NULL))
        account->registers.known = 0;
}

/* ---- what goes into it ---- */

static const struct prb_thread *thread_of(const struct prb_stacks *stacks, pid_t tid)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (stacks->threads[i].os_thread_id == tid)
            return &stacks->threads[i];
    return NULL;
}

/* Read all, so that the dump has them; the caller owns those of the thread that crashed. */
static struct prb_exceptions *take_exceptions(struct prb_target *target,
                                              const struct prb_stacks *stacks, pid_t wanted)
{
    struct prb_exceptions *its = NULL, **all = prb_exceptions_all(target, stacks, NULL);
    for (size_t i = 0; all && !its && i < stacks->thread_count; i++)
        if (stacks->threads[i].os_thread_id == wanted)
            its = PRB_STEAL(all[i]);
    prb_exceptions_all_free(all, stacks->thread_count);
    return its;
}

static bool keep_texts(struct prb_target *copy, const struct prb_crash_facts *facts,
                       struct prb_error *err)
{
    static const char *const names[] = {"maps",    "status", "stat",   "statm",  "comm",
                                        "cmdline", "limits", "cgroup", "environ"};
    PRB_AUTO(prb_buf) struct prb_buf info = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        prb_proc_text(copy->proc, names[i], &text, NULL);
    }
    prb_crash_info(facts, &info);
    if (!prb_buf_ok(&info) || !prb_proc_save_text(copy->proc, PRB_TEXT_CRASH, info.data, info.len))
        return prb_nomem(err);
    return true;
}

/* What is masked must not be elsewhere in the dump: the program has copies. */
static bool hide_secrets(struct prb_target *copy, const struct prb_crash_facts *facts,
                         struct prb_hidden *secrets, struct prb_error *err)
{
    const struct prb_exceptions *exceptions = facts->exceptions;
    size_t pages = prb_mem_record_pages(copy->mem);
    prb_secrets_find(copy, secrets);
    prb_mem_record_cut(copy->mem, pages); /* what this read is not for the dump */
    prb_secrets_add_text(secrets, facts->record->reason);
    for (size_t i = 0; exceptions && i < exceptions->count; i++)
        prb_secrets_add_text(secrets, exceptions->items[i].message);
    if (!prb_secrets_hide(copy, secrets, err))
        return false;
    prb_crash_hide_rings(copy->proc, secrets);
    return true;
}

/* All tasks are named; the one that crashed goes first, with its signal, as the kernel orders them.
 */
static bool name_tasks(struct prb_target *copy, const struct account *account,
                       struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tasks(copy->proc, &tasks, err))
        return false;
    for (size_t i = 0; i < tasks.count; i++) {
        pid_t tid = tasks.items[i].tid;
        size_t k = 0;
        while (k < copy->saved_count && copy->saved[k].tid != tid)
            k++;
        if (k < copy->saved_count)
            continue;
        struct prb_registers registers = {.known = 0};
        prb_proc_registers(copy->proc, tid, &registers, NULL);
        prb_target_save_registers(copy, tid, &registers);
    }
    for (size_t i = 0; i < copy->saved_count; i++)
        if (copy->saved[i].tid == account->record.tid) {
            struct prb_saved_task first = copy->saved[i];
            memmove(copy->saved + 1, copy->saved, i * sizeof first);
            first.signal = account->record.signal;
            if (account->registers.known)
                first.registers = account->registers;
            copy->saved[0] = first;
            break;
        }
    return true;
}

/* ---- one dump ---- */

static struct prb_stacks *ask(struct prb_target *copy, const struct account *account,
                              const struct question *question, struct prb_error *err)
{
    const struct prb_stack_options what = {
        .native = question->native,
        .locals = question->locals,
        .repr_limit = question->locals,
        .all_interpreters = true,
        .python_only = question->whose == PYTHON_THREADS,
        .only_thread =
            question->whose == CRASHED_THREAD ? (uint64_t)(uint32_t)account->record.tid : 0};
    return prb_stacks_take(copy, &what, err);
}

/* Bytes of memory that the dump may hold: its texts come on top, those that are kept already and
 * the maps, which stand in it twice. */
static uint64_t memory_bytes(struct prb_target *copy, const struct account *account)
{
    PRB_AUTO(prb_buf) struct prb_buf maps = {0};
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    uint64_t bytes = account->record.dump_bytes, texts = OTHER_BYTES;
    if (prb_proc_text(copy->proc, "maps", &maps, NULL))
        texts += 2 * maps.len;
    if (prb_proc_tids(copy->proc, &tasks, NULL))
        texts += tasks.count * TASK_BYTES;
    for (size_t i = 0; i < copy->proc->text_count; i++)
        texts += copy->proc->texts[i].text.len;
    return bytes > texts + LEAST_BYTES ? bytes - texts : LEAST_BYTES;
}

/* What was found, of the first two questions, and secrets of all of them. */
struct found {
    struct prb_stacks *stacks, *crashed;
    struct prb_exceptions *exceptions;
    struct prb_hidden secrets;
};
static void found_deinit(struct found *found)
{
    prb_hidden_deinit(&found->secrets);
    prb_exceptions_free(found->exceptions);
    prb_stacks_free(found->stacks);
    prb_stacks_free(found->crashed);
}
PRB_DEFINE_AUTO(found, struct found, found_deinit)

/* The first answer must be had; more is better. */
static bool touch_all(struct prb_target *copy, const struct account *account, struct found *found,
                      struct prb_error *err)
{
    size_t all = (size_t)(memory_bytes(copy, account) / PRB_RECORD_PAGE), first = all;
    for (size_t i = 0; i < QUESTIONS; i++) {
        size_t most = i ? first + (size_t)((double)(all - first) * questions[i].share) : all;
        if (prb_mem_record_pages(copy->mem) >= most)
            continue;
        struct prb_stacks *answer = ask(copy, account, &questions[i], i ? NULL : err);
        if (i == 0) {
            if (!answer)
                return false;
            found->stacks = answer;
            found->exceptions = take_exceptions(copy, answer, account->record.tid);
        } else if (i == 1) {
            found->crashed = answer;
        } else {
            const struct prb_thread *crashed = answer && questions[i].whose == CRASHED_THREAD
                                                   ? thread_of(answer, account->record.tid)
                                                   : NULL;
            if (crashed)
                prb_crash_tensors(copy, crashed);
            if (answer)
                prb_secrets_add_locals(&found->secrets, answer);
            prb_stacks_free(answer);
        }
        prb_mem_record_cut(copy->mem, most);
        first = i ? first : prb_mem_record_pages(copy->mem);
    }
    return true;
}

static void limit_depth(struct prb_target *copy)
{
    struct prb_unwinder *unwinder = prb_target_unwinder(copy, NULL);
    for (size_t i = 0; i < copy->runtime_count; i++)
        copy->pys[i].frames_max = FRAMES_MAX;
    if (unwinder)
        prb_unwinder_limit(unwinder, NATIVE_FRAMES_MAX);
}

static bool write_dump(struct account *account, const char *path, uint64_t *bytes_out,
                       struct prb_error *err)
{
    const struct prb_debugger held = {
        .pid = account->record.pid, .context = account, .registers = tell_registers};
    struct prb_crash_facts facts = {
        .record = &account->record,
        .stack_pointer =
            account->registers.known ? account->registers.value[prb_arch_host()->sp] : 0};
    PRB_AUTO(found) struct found found = {0};
    PRB_AUTO(prb_target)
    struct prb_target *copy = prb_target_over_debugger(&held, NULL, NULL, true, err);
    if (copy) {
        /* Nothing changes meanwhile: what was read once is not read again. */
        prb_mem_record_set(copy->mem, PRB_RECORD_STILL);
        prb_proc_set_stopped(copy->proc);
        limit_depth(copy);
        prb_crash_rings(copy->proc, account->record.dump_bytes / RING_SHARE);
    }
    if (!copy || !touch_all(copy, account, &found, err))
        return false;
    prb_process_ranks(copy->proc, &facts.ranks);
    facts.exceptions = found.exceptions;
    facts.thread = found.crashed ? thread_of(found.crashed, account->record.tid) : NULL;
    if (!facts.thread)
        facts.thread = thread_of(found.stacks, account->record.tid);
    return keep_texts(copy, &facts, err) && name_tasks(copy, account, err) &&
           hide_secrets(copy, &facts, &found.secrets, err) &&
           prb_proc_save(copy->proc, copy->mem, copy->saved, copy->saved_count, path, bytes_out,
                         err);
}

static bool name_file(const struct account *account, char out[PRB_CRASH_PATH_MAX],
                      struct prb_error *err)
{
    const struct prb_crash_record *record = &account->record;
    char folder[PRB_CRASH_PATH_MAX], rank[24] = "", when[32];
    struct prb_process ranks = {.rank = -1};
    time_t seconds = (time_t)(record->time / 1000000000);
    struct tm parts;
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(record->pid, err);
    if (!proc || !prb_crash_dump_folder(record->folder, folder, err))
        return false;
    prb_process_ranks(proc, &ranks);
    if (ranks.rank >= 0)
        snprintf(rank, sizeof rank, "-rank%d", ranks.rank);
    if (!gmtime_r(&seconds, &parts) || !strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &parts))
        return prb_fail(err, PRB_CORRUPT, "the time of the crash cannot be parsed");
    int n = snprintf(out, PRB_CRASH_PATH_MAX, "%s/crash-%s%s-pid%d", folder, when, rank,
                     (int)record->pid);
    return (n > 0 && n < PRB_CRASH_PATH_MAX - 16) ||
           prb_fail(err, PRB_USAGE, "%s: the path is too long", folder);
}

/* A second one of the same process within a second gets a number. */
static void avoid_others(char path[PRB_CRASH_PATH_MAX])
{
    size_t len = strlen(path);
    struct stat st;
    strcpy(path + len, ".snap");
    for (int i = 2; lstat(path, &st) == 0 && i < 1000; i++)
        sprintf(path + len, "-%d.snap", i);
}

/* A shared lock, which ends with this process at the latest. */
static int hold_folder(const char *path)
{
    char folder[PRB_CRASH_PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_SH | LOCK_NB); /* of a file system without locks its age must do */
    return fd;
}

bool prb_crash_dump_write(pid_t pid, prb_addr at, struct prb_crash_written *out,
                          struct prb_error *err)
{
    struct account account = {0};
    struct prb_crash_written written = {0};
    if (!read_record(pid, at, &account.record, err))
        return false;
    take_registers(&account);
    PRB_AUTO(prb_stopped) struct prb_stopped threads = {0};
    prb_stop_process(pid, &threads);
    if (!name_file(&account, written.path, err))
        return false;
    avoid_others(written.path);
    PRB_AUTO_FD int folder = hold_folder(written.path);
    if (!write_dump(&account, written.path, &written.bytes, err))
        return false;
    written.folder_bytes = account.record.folder_bytes;
    written.folder = PRB_STEAL_FD(folder);
    *out = written;
    return true;
}

void prb_crash_dump_told(struct prb_crash_written *dump)
{
    if (dump->folder >= 0)
        close(dump->folder);
    dump->folder = -1;
    prb_crash_sweep(dump->path, dump->folder_bytes);
}
