/*
 * The handler: one thread dumps, whoever crashes meanwhile waits, and then each hands its signal on
 * to the action that was there before, so that the end of the process is what it would have been.
 *
 * A fault repeats when the handler returns: the previous action is put back and gets it from the
 * kernel, registers and all.  A signal that was sent (abort(3), kill(2)) is sent again, and a trap,
 * which the program has passed on x86-64.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <time.h>
#include <ucontext.h>

#include "base/raw.h"
#include "inject/probe/crash/crash.h"

#define TRIES 3
#define WAIT_MORE_NS UINT64_C(1000000000) /* for the end, after the other thread's dump */

static struct prb_crash_record record;
static _Atomic uint64_t owner; /* pid << 32 | tid of the thread that dumps; 0: none */
static _Atomic uint32_t turns; /* counts dumps that ended */
static _Atomic uint32_t dumps;
static _Atomic int dumps_of; /* the process that `dumps` counts */

/* ---- what is known of it ---- */

#ifdef __x86_64__
/* struct user_regs_struct, sys/user.h; the last four are no part of a ucontext. */
static const int order[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11, REG_R10,
                            REG_R9,  REG_R8,  REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI};
enum { ORIG_RAX = 15, RIP, CS, EFLAGS, RSP, WORDS = 27 };

static void take_registers(const ucontext_t *context)
{
    const greg_t *from = context->uc_mcontext.gregs;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        record.words[i] = (uint64_t)from[order[i]];
    record.words[ORIG_RAX] = UINT64_MAX;
    record.words[RIP] = (uint64_t)from[REG_RIP];
    record.words[CS] = (uint64_t)from[REG_CSGSFS] & 0xffff;
    record.words[EFLAGS] = (uint64_t)from[REG_EFL];
    record.words[RSP] = (uint64_t)from[REG_RSP];
    record.word_count = WORDS;
}
#else
/* struct user_pt_regs, asm/ptrace.h */
enum { GENERAL = 31, SP = 31, PC, PSTATE, WORDS };

static void take_registers(const ucontext_t *context)
{
    const mcontext_t *from = &context->uc_mcontext;
    for (size_t i = 0; i < GENERAL; i++)
        record.words[i] = from->regs[i];
    record.words[SP] = from->sp;
    record.words[PC] = from->pc;
    record.words[PSTATE] = from->pstate;
    record.word_count = WORDS;
}
#endif

static void fill_record(enum prb_crash_kind kind, int signal, const siginfo_t *info,
                        const void *context, const char *reason)
{
    struct timespec now = {0};
    PRB_RAW2(SYS_clock_gettime, CLOCK_REALTIME, &now);
    record.size = sizeof record;
    record.kind = kind;
    record.pid = (int32_t)PRB_RAW0(SYS_getpid);
    /* Memory is nobody's: the main thread stands for it. */
    record.tid = kind == PRB_CRASH_MEMORY ? record.pid : (int32_t)PRB_RAW0(SYS_gettid);
    record.signal = signal;
    record.code = info ? info->si_code : 0;
    record.sender = info && info->si_code <= 0 ? (int32_t)info->si_pid : 0;
    record.address = info && info->si_code > 0 ? (uintptr_t)info->si_addr : 0;
    record.time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    record.word_count = 0;
    if (context)
        take_registers(context);
    record.dump_bytes = prb_crash_plan.dump_bytes;
    record.folder_bytes = prb_crash_plan.folder_bytes;
    struct prb_crash_text folder = {record.folder, record.folder + sizeof record.folder};
    struct prb_crash_text text = {record.reason, record.reason + sizeof record.reason};
    prb_crash_add(&folder, prb_crash_plan.folder);
    prb_crash_add(&text, reason ? reason : "");
    record.magic = PRB_CRASH_MAGIC;
}

/* ---- one at a time ---- */

static void sleep_on_turn(uint32_t turn, uint64_t ns)
{
    const struct timespec wait = {.tv_sec = (time_t)(ns / 1000000000),
                                  .tv_nsec = (long)(ns % 1000000000)};
    PRB_RAW4(SYS_futex, &turns, FUTEX_WAIT_PRIVATE, turn, &wait);
}

/* True: this thread is to dump.  An owner of another process was the parent's, before a fork. */
static bool take_turn(void)
{
    uint64_t pid = (uint64_t)PRB_RAW0(SYS_getpid), tid = (uint64_t)PRB_RAW0(SYS_gettid);
    uint64_t mine = pid << 32 | tid, now = atomic_load(&owner);
    do
        if (now && now >> 32 == pid)
            return false;
    while (!atomic_compare_exchange_weak(&owner, &now, mine));
    return true;
}

static bool is_owner(void)
{
    uint64_t pid = (uint64_t)PRB_RAW0(SYS_getpid), tid = (uint64_t)PRB_RAW0(SYS_gettid);
    return atomic_load(&owner) == (pid << 32 | tid);
}

static void end_turn(void)
{
    atomic_store(&owner, 0);
    turns++;
    PRB_RAW3(SYS_futex, &turns, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* Until the other thread's dump is written and it is held no more, and, as the process is to end by
 * its signal and not by ours, until it has ended, all bounded. */
static void await_turn(uint32_t turn)
{
    uint64_t until =
        prb_crash_now() + prb_crash_plan.wait_ns + prb_crash_plan.hold_ns + WAIT_MORE_NS;
    for (uint64_t now; turns == turn && (now = prb_crash_now()) < until;)
        sleep_on_turn(turn, until - now);
    if (record.kind == PRB_CRASH_SIGNAL)
        sleep_on_turn(turns, WAIT_MORE_NS);
}

/* What ends the process is reported, whatever came before. */
static bool too_many(enum prb_crash_kind kind)
{
    int pid = (int)PRB_RAW0(SYS_getpid);
    if (atomic_exchange(&dumps_of, pid) != pid)
        atomic_store(&dumps, 0);
    return kind != PRB_CRASH_SIGNAL && atomic_fetch_add(&dumps, 1) >= PRB_CRASH_DUMPS_MAX;
}

void prb_crash_hold(void)
{
    uint64_t since = prb_crash_now();
    if (prb_crash_plan.hold_ns)
        prb_crash_say_held(prb_crash_plan.hold_ns);
    while (prb_crash_now() - since < *(volatile uint64_t *)&prb_crash_plan.hold_ns)
        sleep_on_turn(turns, 100000000);
}

bool prb_crash_dump(enum prb_crash_kind kind, int signal, const siginfo_t *info,
                    const void *context, const char *reason)
{
    for (int tries = 0;; tries++) {
        uint32_t turn = turns;
        if (take_turn())
            break;
        if (is_owner())
            return false;
        await_turn(turn);
        /* What was written of an exception is not what ends the process. */
        if (tries == TRIES || kind != PRB_CRASH_SIGNAL || record.kind == PRB_CRASH_SIGNAL)
            return false;
    }
    bool written = false;
    if (!too_many(kind)) {
        fill_record(kind, signal, info, context, reason);
        written = prb_crash_write(&record);
        if (!written)
            prb_crash_note(&record);
        if (kind == PRB_CRASH_SIGNAL)
            prb_crash_hold();
    }
    end_turn();
    return written;
}

/* ---- whose signal it was before ---- */

static bool repeats(int signal, const siginfo_t *info)
{
    return info && info->si_code > 0 && signal != SIGABRT && signal != SIGTERM &&
           signal != SIGTRAP && !(signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static void send_again(int signal, siginfo_t *info)
{
    long pid = PRB_RAW0(SYS_getpid), tid = PRB_RAW0(SYS_gettid);
    if (!info || PRB_RAW4(SYS_rt_tgsigqueueinfo, pid, tid, signal, info) != 0)
        PRB_RAW3(SYS_tgkill, pid, tid, signal);
}

/* One that does not end the process: its handler is called as the kernel would have. */
static void call_previous(const struct sigaction *previous, int signal, siginfo_t *info,
                          void *context)
{
    if (previous->sa_flags & SA_SIGINFO)
        previous->sa_sigaction(signal, info, context);
    else
        previous->sa_handler(signal);
}

static void hand_on(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *previous = prb_crash_previous(signal);
    bool plain = !previous || previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN;
    if (signal == SIGTERM && !plain) {
        call_previous(previous, signal, info, context);
        return;
    }
    if (signal == SIGTERM && previous && previous->sa_handler == SIG_IGN)
        return;
    static const struct sigaction none;
    bool may = previous && prb_crash_may_hand_on(signal);
    sigaction(signal, may ? previous : &none, NULL);
    if (!repeats(signal, info))
        send_again(signal, info);
}

void prb_crash_on_signal(int signal, siginfo_t *info, void *context)
{
    int kept = errno;
    if (prb_crash_previous(signal))
        prb_crash_dump(signal == SIGTERM ? PRB_CRASH_ASKED : PRB_CRASH_SIGNAL, signal, info,
                       context, NULL);
    hand_on(signal, info, context);
    errno = kept;
}
