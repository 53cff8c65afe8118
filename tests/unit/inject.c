/* inject: what differs between processors, read back as the kernel would read it. */
#include "unit.h"

#include <elf.h>
#include <linux/futex.h>
#ifdef __x86_64__
#include <ucontext.h>
#endif

#include "inject/enter/steps.h"

static const struct prb_inject_arch *const all[] = {&prb_inject_x86_64, &prb_inject_aarch64};

static void tables_make_sense(void **state)
{
    (void)state;
    for (size_t a = 0; a < 2; a++) {
        const struct prb_inject_arch *arch = all[a];
        assert_ptr_equal(prb_inject_arch_find(arch->elf_machine), arch);
        assert_true(arch->words <= PRB_INJECT_WORDS);
        assert_true(arch->pc < arch->words && arch->sp < arch->words && arch->pc != arch->sp);
        assert_true(arch->original < (int)arch->words);
        assert_true(arch->stub_len > 100 && arch->stub_len < PRB_STUB_PAGE);
        for (unsigned i = 0; i < 6; i++)
            for (unsigned k = 0; k < i; k++)
                assert_int_not_equal(arch->args[i], arch->args[k]);
        /* borrow.c takes the first for futex(2). */
        assert_int_equal(arch->waits[0].wait, PRB_WAIT_FUTEX);
        for (size_t i = 0; i < arch->wait_count; i++)
            for (size_t k = 0; k < i; k++)
                assert_int_not_equal(arch->waits[i].number, arch->waits[k].number);
    }
    assert_null(prb_inject_arch_find(EM_386));
}

/* Calls that a stop ends in EINTR are never waited in. */
static void no_fragile_call(void **state)
{
    (void)state;
    static const int fragile[2][8] = {
        {232 /* epoll_wait */, 281, 441, 65 /* semop */, 220, 128 /* rt_sigtimedwait */, 34, 130},
        {22 /* epoll_pwait */, 441, 193 /* semop */, 192, 137 /* rt_sigtimedwait */, 4, 133, -1}};
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < all[a]->wait_count; i++)
            for (size_t k = 0; k < 8; k++)
                assert_int_not_equal(all[a]->waits[i].number, fragile[a][k]);
}

static void locks_by_futex(void **state)
{
    (void)state;
    const struct {
        uint64_t operation, value;
        bool lock;
    } cases[] = {
        {FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, true}, /* lll_lock, pthread_mutex_lock */
        {FUTEX_WAIT, 2, true},
        {FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, false},                               /* libgomp */
        {FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, 0, false}, /* 0x189 */
        {FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1234, false}, /* pthread_join: 0x109 */
        {FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, true},
        {FUTEX_WAIT_REQUEUE_PI | FUTEX_PRIVATE_FLAG, 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t args[6] = {0x1000, cases[i].operation, cases[i].value};
        assert_int_equal(prb_waits_for_lock(args), cases[i].lock);
    }
}

struct given {
    uint64_t saved[PRB_INJECT_WORDS];
    uint8_t extended[PRB_XSTATE_MAX], frame[PRB_FRAME_MAX];
    struct prb_stub_page page;
};
#define EXTENDED_AT 0x7000
#define PAGE_AT 0x6000
#define FRAME_AT 0x9000

/* Registers that tell themselves apart. */
static struct given *given(const struct prb_inject_arch *arch)
{
    struct given *now = calloc(1, sizeof *now);
    assert_non_null(now);
    for (unsigned i = 0; i < arch->words; i++)
        now->saved[i] = 0x100 + i;
    for (size_t i = 0; i < sizeof now->extended; i++)
        now->extended[i] = (uint8_t)(i * 7);
    return now;
}

static size_t go_back(const struct prb_inject_arch *arch, struct given *now, size_t len)
{
    return arch->go_back(now->saved, now->extended, len, EXTENDED_AT, &now->page, PAGE_AT,
                         now->frame, FRAME_AT);
}

enum { RAX = 10, ORIG_RAX = 15, RIP = 16 }; /* words of user_regs_struct */

static void x86_64_parked(void **state)
{
    (void)state;
    const struct {
        int64_t result, number, back;
    } cases[] = {{-512, 202, 2}, {-513, 202, 2}, {-514, 202, 2},
                 {-516, 219, 2}, {0, 0, 0},      {-4, -4, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given *now = given(&prb_inject_x86_64);
        now->saved[ORIG_RAX] = 202;
        now->saved[RAX] = (uint64_t)cases[i].result;
        memcpy(now->extended + 464, &(uint64_t){0xe7}, 8);
        assert_int_equal(go_back(&prb_inject_x86_64, now, 2432), 0);
        assert_int_equal(now->page.registers[12], cases[i].number);
        assert_int_equal(now->page.registers[13], 0x100 + RIP - cases[i].back);
        assert_int_equal(now->page.registers[15], 0x100 + 19);
        assert_int_equal(now->page.registers[5], 0x100 + 5);
        assert_int_equal(now->page.frame, 0);
        assert_int_equal(now->page.xmask, 0xe7);
        assert_int_equal(now->page.xstate, EXTENDED_AT);
        assert_int_equal(now->page.mask_place, PAGE_AT + PRB_STUB_MASK);
        for (unsigned k = 464; k < 512; k++)
            assert_int_equal(now->extended[k], 0);
        assert_int_equal(now->extended[512], (uint8_t)(512 * 7));
        free(now);
    }
}

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

#ifdef __x86_64__
static void x86_64_running(void **state)
{
    (void)state;
    struct given *now = given(&prb_inject_x86_64);
    now->saved[ORIG_RAX] = (uint64_t)-1;
    memcpy(now->extended + 464, &(uint64_t){0xe7}, 8);
    size_t len = go_back(&prb_inject_x86_64, now, 2432);
    ucontext_t read = {0};
    assert_int_equal(len, offsetof(ucontext_t, uc_sigmask) + 8);
    memcpy(&read, now->frame, len);
    const greg_t *registers = read.uc_mcontext.gregs;
    assert_int_equal(registers[REG_RIP], 0x100 + RIP);
    assert_int_equal(registers[REG_RSP], 0x100 + 19);
    assert_int_equal(registers[REG_RAX], 0x100 + RAX);
    assert_int_equal(registers[REG_RCX], 0x100 + 11);
    assert_int_equal(registers[REG_R11], 0x100 + 6);
    assert_int_equal(registers[REG_R15], 0x100);
    assert_int_equal(registers[REG_EFL], 0x100 + 18);
    assert_ptr_equal(read.uc_mcontext.fpregs, (void *)EXTENDED_AT);
    assert_int_equal(now->page.frame, FRAME_AT);
    assert_int_equal(now->page.mask_place, FRAME_AT + offsetof(ucontext_t, uc_sigmask));
    uint32_t word[2];
    memcpy(word, now->extended + 464, 8);
    assert_int_equal(word[0], 0x46505853);
    assert_int_equal(word[1], 2432 + 4);
    memcpy(word, now->extended + 2432, 4);
    assert_int_equal(word[0], 0x46505845);
    free(now);
}

/* A call is made anew, by its own number also where it had been gone on with (219). */
static void x86_64_lifeline(void **state)
{
    (void)state;
    const struct {
        int64_t result, original, number, back;
    } cases[] = {{-512, 0, 0, 2}, {-516, 35, 35, 2}, {-516, 219, 230, 2}, {-514, 23, 23, 2},
                 {-4, 35, -4, 0}, {7, 0, 7, 0},      {-512, -1, -512, 0}};
    const uint8_t code[PRB_SYSCALL_BEFORE] = {0xb8, 230, 0, 0, 0, 0x0f, 0x05};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given *now = given(&prb_inject_x86_64);
        ucontext_t read = {0};
        now->saved[ORIG_RAX] = (uint64_t)cases[i].original;
        now->saved[RAX] = (uint64_t)cases[i].result;
        size_t len = prb_inject_x86_64.lifeline(now->saved, code, now->extended, 2432, EXTENDED_AT,
                                                0x5eed, now->frame);
        assert_int_equal(len, offsetof(ucontext_t, uc_sigmask) + 8);
        memcpy(&read, now->frame, len);
        assert_int_equal(read.uc_mcontext.gregs[REG_RAX], cases[i].number);
        assert_int_equal(read.uc_mcontext.gregs[REG_RIP], 0x100 + RIP - cases[i].back);
        assert_int_equal(read.uc_mcontext.gregs[REG_RSP], 0x100 + 19);
        assert_int_equal(read.uc_mcontext.gregs[REG_R10], 0x100 + 7);
        assert_ptr_equal(read.uc_mcontext.fpregs, (void *)EXTENDED_AT);
        assert_int_equal(word_at(now->frame, len - 8), 0x5eed);
        free(now);
    }
}
#endif

static void aarch64_frame(void **state)
{
    (void)state;
    struct given *now = given(&prb_inject_aarch64);
    assert_int_equal(go_back(&prb_inject_aarch64, now, 528), 592 + 4096);
    /* Offsets of arch/arm64's struct rt_sigframe. */
    assert_int_equal(now->page.mask_place, FRAME_AT + 168);
    for (unsigned i = 0; i < 31; i++)
        assert_int_equal(word_at(now->frame, 312 + 8 * i), 0x100 + i);
    assert_int_equal(word_at(now->frame, 560), 0x100 + 31); /* sp */
    assert_int_equal(word_at(now->frame, 568), 0x100 + 32); /* pc */
    assert_int_equal(word_at(now->frame, 576), 0x100 + 33); /* pstate */
    assert_int_equal(word_at(now->frame, 592), UINT64_C(528) << 32 | 0x46508001);
    assert_int_equal(word_at(now->frame, 600), word_at(now->extended, 512)); /* fpsr, fpcr */
    assert_memory_equal(now->frame + 608, now->extended, 512);
    assert_int_equal(word_at(now->frame, 1120), 0);
    free(now);
}

/* The registers of a running thread that uses SVE, 32 bytes long: struct user_sve_header is followed by what struct
 * sve_context has, too. */
static void aarch64_frame_of_long_registers(void **state)
{
    (void)state;
    enum { WIDE = 546 * 2, HEADER = 16, IN_USE = 1 };
    const uint16_t lengths[] = {32, 256}, flags[] = {IN_USE, 0};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            struct given *now = given(&prb_inject_aarch64);
            memcpy(now->extended + 528 + 8, &lengths[i], 2);
            memcpy(now->extended + 528 + 12, &flags[k], 2);
            go_back(&prb_inject_aarch64, now, 528 + HEADER + WIDE);
            bool there = i == 0 && k == 0; /* longer than what was read of them: never */
            assert_int_equal(word_at(now->frame, 592 + 528),
                             there ? UINT64_C(1120) << 32 | 0x53564501 : 0);
            if (there) {
                assert_int_equal(word_at(now->frame, 592 + 536) & 0xffff, 32);
                assert_memory_equal(now->frame + 592 + 544, now->extended + 528 + HEADER, WIDE);
                assert_int_equal(word_at(now->frame, 592 + 528 + 1120), 0);
            }
            free(now);
        }
}

static void entry_registers(void **state)
{
    (void)state;
    for (size_t a = 0; a < 2; a++) {
        struct given *now = given(all[a]);
        uint64_t out[PRB_INJECT_WORDS];
        all[a]->enter(now->saved, 0x4000, 0x8fc0, out);
        assert_int_equal(out[all[a]->pc], 0x4000);
        assert_int_equal(out[all[a]->sp], 0x8fc0);
        if (all[a]->original >= 0)
            assert_int_equal((int64_t)out[all[a]->original], -1);
        free(now);
    }
}

static void dangers(void **state)
{
    (void)state;
    struct prb_danger items[] = {
        {100, 200, "a", true}, {200, 250, "b", true}, {400, 500, "c", true}};
    struct prb_addresses addresses = {.dangers = items, .danger_count = 3};
    /* A return address can be the end of a function that ends in a call, never its start. */
    const struct {
        prb_addr addr;
        const char *what;
    } cases[] = {{100, NULL}, {101, "a"},  {200, "a"}, {201, "b"}, {250, "b"},
                 {251, NULL}, {400, NULL}, {500, "c"}, {501, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct prb_danger *danger = prb_danger_at(&addresses, cases[i].addr);
        if (cases[i].what)
            assert_string_equal(danger->what, cases[i].what);
        else
            assert_null(danger);
    }
}

static void paths_and_status(void **state)
{
    (void)state;
    assert_true(prb_path_is("/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6"));
    assert_true(prb_path_is("/lib/libc-2.31.so", "libc-2.*"));
    assert_false(prb_path_is("/lib/libcap.so.2", "libc.so.6"));
    assert_false(prb_path_is("/libc.so.6/other", "libc.so.6"));
    static const char text[] = "Name:\tTracerPid:\nTracerPid:\t77\nCapEff:\tff\n";
    assert_int_equal(prb_inject_status(text, "TracerPid", 10), 77);
    assert_int_equal(prb_inject_status(text, "CapEff", 16), 255);
    assert_int_equal(prb_inject_status(text, "Seccomp", 10), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_make_sense), cmocka_unit_test(no_fragile_call),
        cmocka_unit_test(locks_by_futex),    cmocka_unit_test(x86_64_parked),
#ifdef __x86_64__
        cmocka_unit_test(x86_64_running),    cmocka_unit_test(x86_64_lifeline),
#endif
        cmocka_unit_test(aarch64_frame),     cmocka_unit_test(aarch64_frame_of_long_registers),
        cmocka_unit_test(entry_registers),   cmocka_unit_test(dangers),
        cmocka_unit_test(paths_and_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
