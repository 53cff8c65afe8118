/*
 * inject: the stub of this processor, one instruction at a time.  A child stands for the borrowed thread and then for the thread that it makes; the
 * functions of the C library are made up.  After the first part the child has every register that it had, the second keeps what a function has to
 * keep, and all cases together run every instruction.
 */
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/enter/steps.h"

#define STACK_LEN (64u << 10)
#define SCRATCH_LEN (PRB_FRAME_MAX + PRB_XSTATE_MAX + STACK_LEN)
#define MAPPED_LEN (2 * ARCH.apart + SCRATCH_LEN)
#define STEPS_MOST 200000
#define SECONDS_MOST 300 /* an emulated processor beside load */

#ifdef __x86_64__
#define ARCH prb_inject_x86_64
enum { RBP = 4, R11 = 6, RCX = 11, ORIGINAL = 15, CS = 17, EFLAGS = 18 };
/* What a system call destroys anyway, and what only says that one is under way. */
static const unsigned lost[] = {R11, RCX, ORIGINAL};
static const unsigned kept[] = {0, 1, 2, 3, RBP, 5 /* rbx */};
#define FLAGS EFLAGS
#define FLAGS_MASK 0xcd5u /* arithmetic and direction: not those of stepping */
#define CODE_MOST 11      /* bytes of its longest instruction */
#define AT_CALL 8         /* stack pointer modulo 16 when a function begins */
#define VECTORS_LEN 416   /* of FXSAVE's image; the rest is the kernel's */
#else
#define ARCH prb_inject_aarch64
static const unsigned lost[] = {99};
static const unsigned kept[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31};
#define FLAGS 33
#define FLAGS_MASK 0xf0000000u
#define CODE_MOST 4
#define AT_CALL 0
#define VECTORS_LEN 520 /* of struct user_fpsimd_state */
#endif

/* ---- what both see ---- */

static struct shared {
    uint8_t *code; /* the mapping */
    struct prb_stub_page *page;
    void *(*made)(void *);
    void *argument;
    const void *given[3]; /* dlopen's path, dlsym's handle, munmap's address */
    size_t unmapped;
    int mode;
    char symbol[32], path[64];
    uint64_t mask; /* of signals, when the thread is made */
    bool detached, went_on;
    void *handle, *entry;
    const char *error;
    int result;
    _Atomic bool go;
    char text[2 * PRB_STUB_TEXT_MAX];
} *shared;

static int fake_create(uint64_t *thread, const void *attributes, void *(*start)(void *),
                       void *argument)
{
    shared->made = start;
    shared->argument = argument;
    *thread = attributes ? 0 : 0x7ead;
    return 0;
}
static uint64_t fake_self(void) { return 0x5e1f; }
static int fake_detach(uint64_t thread)
{
    shared->detached = thread == 0x5e1f;
    return 0;
}
/* In few steps. */
static void copy(char *out, const char *text)
{
    while ((*out++ = *text++))
        ;
}
static void *fake_dlopen(const char *path, int mode)
{
    copy(shared->path, path);
    shared->mode = mode;
    return shared->handle;
}
static void *fake_dlsym(void *handle, const char *symbol)
{
    shared->given[1] = handle;
    copy(shared->symbol, symbol);
    return shared->entry;
}
static const char *fake_dlerror(void) { return shared->error; }
static int fake_munmap(void *at, size_t len)
{
    shared->given[2] = at;
    shared->unmapped = len;
    return 0;
}
static int fake_entry(struct prb_probe_call *call)
{
    shared->given[0] = call;
    return shared->result;
}

/* ---- the child ---- */

static __attribute__((noinline)) void child(int pipe_in)
{
    char byte;
    if (pipe_in < 0)
        while (!shared->go)
            ;
    else if (read(pipe_in, &byte, 1) != 1)
        _exit(2);
    shared->made(shared->argument);
    shared->went_on = true;
    _exit(0);
}

/* ---- the tracer ---- */

static uint8_t *code; /* the mapping, in both */
static uint8_t *ran;  /* of each byte of the stub: an instruction there began */
static pid_t traced;

static void get(unsigned note, void *out, size_t size)
{
    struct iovec iov = {out, size};
    assert_int_equal(ptrace(PTRACE_GETREGSET, traced, (void *)(uintptr_t)note, &iov), 0);
}

static void set(unsigned note, void *from, size_t size)
{
    struct iovec iov = {from, size};
    assert_int_equal(ptrace(PTRACE_SETREGSET, traced, (void *)(uintptr_t)note, &iov), 0);
}

static uint64_t *registers(void)
{
    static uint64_t words[PRB_INJECT_WORDS];
    get(NT_PRSTATUS, words, ARCH.words * sizeof *words);
    return words;
}

static void await_stop(void)
{
    int status = 0;
    assert_int_equal(waitpid(traced, &status, __WALL), traced);
    if (!WIFSTOPPED(status))
        fail_msg("it ended, status %#x", (unsigned)status);
    if (WSTOPSIG(status) != SIGTRAP)
        fail_msg("signal %d at %#llx", WSTOPSIG(status), (unsigned long long)registers()[ARCH.pc]);
}

static uint64_t step(void)
{
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, traced, NULL, NULL), 0);
    await_stop();
    uint64_t pc = registers()[ARCH.pc], at = pc - (uintptr_t)shared->code;
    if (at < ARCH.stub_len)
        ran[at] = 1;
    return pc;
}

/* ---- a case ---- */

struct walk {
    bool computes; /* the borrowed thread, else it waits in a system call */
    uint32_t flags, progress;
    bool entry_known, old_kernel, never_goes, stays, opens, finds, over, silent;
    const char *error;
    size_t error_len;
};

static const char long_error = 'x';

static void prepare(const struct walk *walk)
{
    struct prb_stub_page *page = shared->page;
    memset(page, 0, sizeof *page);
    page->flags = walk->flags;
    page->descriptor = -1;
    page->open_mode = 0x102;
    page->pthread_create = (uintptr_t)fake_create;
    page->pthread_self = (uintptr_t)fake_self;
    page->pthread_detach = (uintptr_t)fake_detach;
    page->dlopen = (uintptr_t)fake_dlopen;
    page->dlsym = (uintptr_t)fake_dlsym;
    page->dlerror = walk->silent ? 0 : (uintptr_t)fake_dlerror;
    page->munmap = (uintptr_t)fake_munmap;
    page->entry = walk->entry_known ? (uintptr_t)fake_entry : 0;
    page->block_mask = ~UINT64_C(0);
    page->nap[1] = 1000;
    page->patience = walk->never_goes ? 3 : 1000;
    page->scratch = (uintptr_t)page + ARCH.apart;
    page->scratch_len = SCRATCH_LEN;
    snprintf(page->symbol, sizeof page->symbol, "the_symbol");
    snprintf(page->path, sizeof page->path, "/a/library.so");
    snprintf(page->memfd_name, sizeof page->memfd_name, "a name");
    snprintf(page->thread_name, sizeof page->thread_name, "made");
    shared->handle = walk->opens ? &shared->handle : NULL;
    shared->entry = walk->finds ? (void *)(uintptr_t)fake_entry : NULL;
    shared->result = 42;
    shared->error = walk->error == &long_error ? shared->text : walk->error;
    memset(shared->text, 'x', sizeof shared->text - 1);
}

/* The registers beside the general ones: of FXSAVE's image or struct user_fpsimd_state, and of SVE. */
struct vectors {
    _Alignas(16) uint8_t plain[528], wide[PRB_XSTATE_MAX];
    size_t wide_len; /* 0: this processor, or this thread, has none */
};

static void get_vectors(struct vectors *out)
{
    get(NT_PRFPREG, out->plain, sizeof out->plain);
    out->wide_len = 0;
#ifdef __aarch64__
    struct iovec iov = {out->wide, sizeof out->wide};
    if (ptrace(PTRACE_GETREGSET, traced, (void *)NT_ARM_SVE, &iov) == 0)
        out->wide_len = iov.iov_len;
#endif
}

/* Values that tell themselves apart: all where the thread computes, and what a system call leaves where it waits in one. */
static void colour_vectors(unsigned times, bool computes)
{
    struct vectors vectors;
    get_vectors(&vectors);
#ifdef __x86_64__
    (void)computes;
    for (size_t i = 160; i < VECTORS_LEN; i++)
        vectors.plain[i] = (uint8_t)(i * times + 1);
    set(NT_PRFPREG, vectors.plain, 512);
#else
    for (size_t i = 0; i < 512; i++)
        vectors.plain[i] = (uint8_t)(i * times + 1);
    set(NT_PRFPREG, vectors.plain, sizeof vectors.plain);
    uint16_t length;
    memcpy(&length, vectors.wide + 8, sizeof length);
    size_t registers_len = length / 16 * 512, len = (16 + length / 16 * 546 + 15) & ~15u;
    if (!computes || !vectors.wide_len || len > sizeof vectors.wide)
        return;
    memset(vectors.wide + 16, 0, len - 16);
    for (size_t i = 0; i < registers_len + length / 8 * 16; i++)
        vectors.wide[16 + i] = (uint8_t)(i * times + 1);
    memcpy(vectors.wide, &(uint32_t){(uint32_t)len}, 4);
    vectors.wide[12] |= 1; /* SVE_PT_REGS_SVE */
    set(NT_ARM_SVE, vectors.wide, len);
#endif
}

static uint64_t signals_blocked(void)
{
    uint64_t mask = 0;
    assert_int_equal(ptrace(PTRACE_GETSIGMASK, traced, (void *)sizeof mask, &mask), 0);
    return mask;
}

/* As inject/enter/borrow.c does. */
static void borrow(uint64_t *saved)
{
    static _Alignas(64) uint8_t extended[PRB_XSTATE_MAX], frame[PRB_FRAME_MAX];
    struct prb_stub_page *page = shared->page;
    uint64_t words[PRB_INJECT_WORDS];
    memcpy(saved, registers(), ARCH.words * sizeof *saved);
    size_t len = prb_extended_state(&ARCH, traced, extended);
    assert_true(len > 0);
    uintptr_t at = page->scratch;
    size_t frame_len =
        ARCH.go_back(saved, extended, len, at, page, (uintptr_t)page, frame, at + PRB_XSTATE_MAX);
    memcpy((void *)at, extended, len + 8);
    memcpy((void *)(at + PRB_XSTATE_MAX), frame, frame_len);
    ARCH.enter(saved, (uintptr_t)shared->code, (uintptr_t)shared->code + MAPPED_LEN - 64, words);
    set(NT_PRSTATUS, words, ARCH.words * sizeof *words);
}

/* The registers that the child goes on with: its system call is made anew. */
static void assert_back(uint64_t *saved, const uint64_t *now)
{
    if (ARCH.original >= 0 && prb_in_syscall(&ARCH, saved)) {
        saved[ARCH.pc] -= ARCH.syscall_len;
        saved[ARCH.result] = saved[ARCH.original];
    }
    for (unsigned i = 0; i < ARCH.words; i++) {
        bool skip = i == FLAGS;
        for (size_t k = 0; k < sizeof lost / sizeof *lost; k++)
            skip |= i == lost[k];
        if (!skip && saved[i] != now[i])
            fail_msg("register %u was %#llx and is %#llx", i, (unsigned long long)saved[i],
                     (unsigned long long)now[i]);
    }
    assert_int_equal(saved[FLAGS] & FLAGS_MASK, now[FLAGS] & FLAGS_MASK);
}

static bool in_stub(uint64_t pc) { return pc - (uintptr_t)shared->code < ARCH.stub_len; }

/* The first part: until the child is where it was. */
static void walk_borrowed(bool computes, int wake)
{
    uint64_t saved[PRB_INJECT_WORDS] = {0}, now[PRB_INJECT_WORDS], pc = (uintptr_t)shared->code;
    static struct vectors before, after;
    colour_vectors(7, computes);
    get_vectors(&before);
    uint64_t mask = signals_blocked();
    borrow(saved);
    ran[0] = 1;
    uint64_t stack = registers()[ARCH.sp];
    bool called = false, left = false;
    for (size_t steps = 0; !left; steps++) {
        assert_true(steps < STEPS_MOST);
        pc = step();
        const uint64_t *words = registers();
        if (pc == (uintptr_t)fake_create && !called) {
            called = true;
            assert_int_equal(words[ARCH.sp] % 16, AT_CALL);
            assert_int_equal(stack - words[ARCH.sp], AT_CALL);
            assert_int_equal(shared->page->step, PRB_STUB_CALLING);
            shared->mask = signals_blocked();
            colour_vectors(11, computes);
        }
        left = shared->page->left && !in_stub(pc);
    }
    memcpy(now, registers(), sizeof now);
    assert_back(saved, now);
    get_vectors(&after);
    assert_memory_equal(before.plain, after.plain, VECTORS_LEN);
    if (computes) {
        assert_int_equal(before.wide_len, after.wide_len);
        assert_memory_equal(before.wide, after.wide, before.wide_len);
    }
    assert_int_equal(signals_blocked(), mask);
    /* Nobody can block these two, nor the trap of a single step. */
    const int never[] = {SIGKILL, SIGSTOP, SIGTRAP};
    for (size_t i = 0; i < 3; i++)
        shared->mask |= UINT64_C(1) << (never[i] - 1);
    assert_int_equal(shared->mask, ~UINT64_C(0));
    assert_true(called);
    assert_int_equal(shared->page->step, PRB_STUB_RETURNED);
    assert_int_equal(shared->page->created, 0);
    assert_int_equal(shared->page->thread, 0x7ead);
    assert_true(shared->page->clock != 0);
    assert_ptr_equal(shared->argument, shared->page);
    if (computes)
        shared->go = true;
    else
        assert_int_equal(write(wake, "!", 1), 1);
}

/* What the tracer does meanwhile: it announces the path, and does not let the stub wait long. */
static void answer(const struct walk *walk)
{
    struct prb_stub_page *page = shared->page;
    if (page->progress == PRB_STUB_WAITS && !walk->never_goes && page->patience < 998)
        page->go = PRB_STUB_PATH_IS_THERE;
    if (page->progress >= PRB_STUB_DONE && page->patience > 3)
        page->patience = 3;
    if (page->progress >= PRB_STUB_DONE && page->patience == 2 && walk->over)
        page->go = PRB_STUB_OVER;
    if (walk->stays)
        page->left = 0;
}

static bool makes_memory_file(uint64_t pc)
{
    return in_stub(pc) && memcmp((void *)(uintptr_t)pc, ARCH.syscall_code, ARCH.syscall_len) == 0 &&
           registers()[ARCH.number] == SYS_memfd_create;
}

/* The answer of a kernel that does not know a flag. */
static void refuse_call(void)
{
    uint64_t *words = registers();
    words[ARCH.result] = (uint64_t)-EINVAL;
    set(NT_PRSTATUS, words, ARCH.words * sizeof *words);
}

/* The second part: from its first instruction until it returns. */
static void walk_made(const struct walk *walk)
{
    uint64_t before[PRB_INJECT_WORDS], pc, lowest;
    bool old_kernel = walk->old_kernel;
    size_t steps = 0;
    do
        pc = step();
    while (pc != (uintptr_t)shared->made && ++steps < STEPS_MOST);
    memcpy(before, registers(), sizeof before);
    assert_int_equal(before[ARCH.sp] % 16, AT_CALL);
    lowest = before[ARCH.sp];
#ifdef __x86_64__
    uint64_t back = (uint64_t)ptrace(PTRACE_PEEKDATA, traced, (void *)before[ARCH.sp], NULL);
    uint64_t after_return = before[ARCH.sp] + 8;
#else
    uint64_t back = before[30], after_return = before[ARCH.sp];
#endif
    for (bool inside = true; pc != back;) {
        assert_true(++steps < STEPS_MOST);
        answer(walk);
        bool refuse = old_kernel && makes_memory_file(pc);
        pc = step();
        if (refuse) {
            refuse_call();
            old_kernel = false;
        }
        uint64_t sp = registers()[ARCH.sp];
        if (in_stub(pc) && sp < lowest)
            lowest = sp;
        if (inside && !in_stub(pc) && pc != back)
            assert_int_equal(sp % 16, AT_CALL);
        inside = in_stub(pc);
    }
    uint64_t *now = registers();
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_int_equal(now[kept[i]], before[kept[i]]);
    assert_int_equal(now[ARCH.sp], after_return);
    assert_true(before[ARCH.sp] - lowest <= 64);
}

static void assert_done(const struct walk *walk)
{
    const struct prb_stub_page *page = shared->page;
    assert_int_equal(page->progress, walk->progress);
    assert_true(shared->detached);
    bool opened = !walk->entry_known && !walk->never_goes;
    assert_string_equal(shared->path, opened ? "/a/library.so" : "");
    assert_int_equal(shared->mode, opened ? 0x102 : 0);
    bool looked = opened && walk->opens && walk->flags & PRB_STUB_START;
    assert_string_equal(shared->symbol, looked ? "the_symbol" : "");
    assert_ptr_equal(shared->given[1], looked ? shared->handle : NULL);
    bool started = walk->entry_known || (looked && walk->finds);
    assert_ptr_equal(shared->given[0], started ? &page->call : NULL);
    assert_int_equal(page->result, started ? 42 : 0);
    assert_ptr_equal(shared->given[2], walk->over ? shared->code : NULL);
    assert_int_equal(shared->unmapped, walk->over ? MAPPED_LEN : 0);
    assert_int_equal(page->descriptor >= 0, (walk->flags & PRB_STUB_FETCH) != 0);
    size_t len = walk->error_len;
    assert_int_equal(strnlen(page->text, sizeof page->text), len);
    if (len)
        assert_memory_equal(page->text, shared->error, len);
}

/* Where it is to be: in its loop, or in its call. */
static bool is_there(bool computes)
{
    const uint64_t *words = registers();
    if (computes)
        return words[ARCH.pc] - (uintptr_t)child < 256;
#ifdef __x86_64__
    return words[ORIGINAL] == SYS_read;
#else
    return words[ARCH.number] == SYS_read &&
           memcmp((void *)(uintptr_t)words[ARCH.pc], ARCH.syscall_code, ARCH.syscall_len) == 0;
#endif
}

static void run(const struct walk *walk)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    memset(shared, 0, sizeof *shared);
    shared->code = code;
    shared->page = (struct prb_stub_page *)(code + ARCH.apart);
    prepare(walk);
    traced = fork();
    if (traced == 0) {
        alarm(SECONDS_MOST);
        child(walk->computes ? -1 : ends[0]);
    }
    assert_true(traced > 0);
    assert_int_equal(ptrace(PTRACE_SEIZE, traced, NULL, (void *)PTRACE_O_EXITKILL), 0);
    for (bool there = false; !there;) {
        assert_int_equal(ptrace(PTRACE_INTERRUPT, traced, NULL, NULL), 0);
        await_stop();
        there = is_there(walk->computes);
        if (!there)
            assert_int_equal(ptrace(PTRACE_CONT, traced, NULL, NULL), 0);
    }
    walk_borrowed(walk->computes, ends[1]);
    walk_made(walk);
    assert_done(walk);
#ifdef __x86_64__
    /* The kernel takes the trap flag for the program's own once a flags register was popped. */
    uint64_t *words = registers();
    words[EFLAGS] &= ~UINT64_C(0x100);
    set(NT_PRSTATUS, words, ARCH.words * sizeof *words);
#endif
    assert_int_equal(ptrace(PTRACE_CONT, traced, NULL, NULL), 0);
    assert_int_equal(waitpid(traced, &status, __WALL), traced);
    if (status != 0 || !shared->went_on)
        fail_msg("it went on to status %#x", (unsigned)status);
    traced = 0;
    close(ends[0]);
    close(ends[1]);
}

/* ---- the cases ---- */

#define FETCH PRB_STUB_FETCH
#define START PRB_STUB_START

static void a_probe_is_there(void **state)
{
    (void)state;
    for (int computes = 0; computes < 2; computes++)
        run(&(struct walk){.computes = computes,
                           .entry_known = true,
                           .flags = START,
                           .progress = PRB_STUB_DONE,
                           .over = true});
}

static void a_library_by_its_path(void **state)
{
    (void)state;
    for (int computes = 0; computes < 2; computes++)
        run(&(struct walk){.computes = computes, .opens = true, .progress = PRB_STUB_DONE});
}

static void a_probe_by_a_memory_file(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++)
        run(&(struct walk){.flags = FETCH | START,
                           .old_kernel = old,
                           .opens = true,
                           .finds = true,
                           .stays = true,
                           .progress = PRB_STUB_DONE});
}

static void nobody_answers(void **state)
{
    (void)state;
    run(&(struct walk){.flags = FETCH | START, .never_goes = true, .progress = PRB_STUB_TIMED_OUT});
}

static void what_cannot_be_opened(void **state)
{
    (void)state;
    run(&(struct walk){.flags = START,
                       .error = "no such file",
                       .error_len = 12,
                       .over = true,
                       .progress = PRB_STUB_NOT_OPENED});
    run(&(struct walk){.flags = START,
                       .error = &long_error,
                       .error_len = PRB_STUB_TEXT_MAX - 1,
                       .progress = PRB_STUB_NOT_OPENED});
    run(&(struct walk){.flags = START, .error = NULL, .progress = PRB_STUB_NOT_OPENED});
    run(&(struct walk){.flags = START, .silent = true, .progress = PRB_STUB_NOT_OPENED});
}

static void what_has_no_such_symbol(void **state)
{
    (void)state;
    run(&(struct walk){.flags = START,
                       .opens = true,
                       .error = "no symbol",
                       .error_len = 9,
                       .progress = PRB_STUB_NO_SYMBOL});
}

/* By the tests before. */
static void every_instruction_ran(void **state)
{
    (void)state;
    size_t last = 0;
    for (size_t at = 0; at < ARCH.stub_len; at++)
        if (ran[at]) {
            if (at - last > CODE_MOST)
                fail_msg("what is at %#zx to %#zx did not run", last, at);
            last = at;
        }
    assert_true(ARCH.stub_len - last <= CODE_MOST);
}

static int set_up(void **state)
{
    (void)state;
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
    code = mmap(NULL, MAPPED_LEN, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
    ran = calloc(1, ARCH.stub_len);
    /* Tracer and child take turns: on one CPU neither is woken from another. */
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    if (shared == MAP_FAILED || code == MAP_FAILED || !ran)
        return -1;
    memcpy(code, ARCH.stub, ARCH.stub_len);
    __builtin___clear_cache((char *)code, (char *)code + ARCH.stub_len);
    return 0;
}

static int end_child(void **state)
{
    (void)state;
    if (traced > 0) { /* a failure left it */
        kill(traced, SIGKILL);
        waitpid(traced, NULL, __WALL);
    }
    traced = 0;
    return 0;
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 77; /* what it adds between the parts takes too many steps */
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_probe_is_there, end_child),
        cmocka_unit_test_teardown(a_library_by_its_path, end_child),
        cmocka_unit_test_teardown(a_probe_by_a_memory_file, end_child),
        cmocka_unit_test_teardown(nobody_answers, end_child),
        cmocka_unit_test_teardown(what_cannot_be_opened, end_child),
        cmocka_unit_test_teardown(what_has_no_such_symbol, end_child),
        cmocka_unit_test(every_instruction_ran),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
