/* native/unwind, guess, symbol: this process's own stack, copied where it stands and walked from
 * outside of it. */
#include "unit.h"

#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "native/unwinder.h"

#define NOINLINE __attribute__((noinline, noclone))
#define BYTES 16384

struct lab {
    struct prb_proc *proc;
    struct prb_mem *mem;
    struct prb_modules modules;
    struct prb_unwinder *unwinder;
    struct prb_native_stack stack;
    struct prb_thread_copy copy;
    bool suffices;
    bool only_two; /* what /proc tells of a blocked thread: stack pointer and program counter */
};

static struct lab *lab; /* for signal handlers and machine code that calls back */

static void from_context(const ucontext_t *context, struct prb_registers *out)
{
    const struct prb_arch *arch = prb_arch_host();
    out->known = 0;
#ifdef __x86_64__
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        prb_register_set(out, i, (uint64_t)context->uc_mcontext.gregs[order[i]]);
#else
    for (unsigned i = 0; i < 31; i++)
        prb_register_set(out, i, context->uc_mcontext.regs[i]);
    prb_register_set(out, arch->sp, context->uc_mcontext.sp);
    prb_register_set(out, arch->pc, context->uc_mcontext.pc);
#endif
    if (lab->only_two)
        out->known &= UINT64_C(1) << arch->sp | UINT64_C(1) << arch->pc;
}

/* Must be inlined: the copy has to be taken while the function it stands in lives. */
#define TAKE()                                                                                     \
    do {                                                                                           \
        ucontext_t context_;                                                                       \
        getcontext(&context_);                                                                     \
        from_context(&context_, &lab->copy.registers);                                             \
        lab->copy.stack_start = lab->copy.registers.value[prb_arch_host()->sp];                    \
        lab->copy.stack_len =                                                                      \
            prb_mem_read_some(lab->mem, lab->copy.stack_start, lab->copy.stack, BYTES);            \
    } while (0)

/* Sanitizers keep frame pointers, which all unwind rules then need; and they put more on the stack.
 */
#ifdef __SANITIZE_ADDRESS__
#define NEEDS_PLAIN_FRAMES() skip()
#else
#define NEEDS_PLAIN_FRAMES() ((void)0)
#endif

/* Of which one is installed everywhere, and nothing here has loaded it. */
static const char *const libraries[] = {"libresolv.so.2", "libutil.so.1", "libanl.so.1",
                                        "libthread_db.so.1"};

static volatile int sink;

NOINLINE static void innermost(void)
{
    TAKE();
    sink++;
}

NOINLINE static void middle(void)
{
    innermost();
    sink++;
}

/* Its part of the stack is of a size known at run time only, so its unwind rules need the frame
 * pointer. */
NOINLINE static void sized_at_run_time(size_t n)
{
    volatile char *room = alloca(n);
    room[0] = 1;
    innermost();
    sink += room[0];
}

NOINLINE static void deep(int n)
{
    if (n)
        deep(n - 1);
    else
        innermost();
    sink++;
}

static int setup(void **state)
{
    struct prb_error err;
    lab = calloc(1, sizeof *lab);
    lab->copy.stack = malloc(BYTES);
    assert_ok(lab->proc = prb_proc_open(getpid(), &err), err);
    assert_ok(lab->mem = prb_mem_self_new(&err), err);
    assert_ok(prb_modules_init(&lab->modules, lab->proc, &err), err);
    assert_ok(lab->unwinder = prb_unwinder_new(&lab->modules, lab->mem, &err), err);
    *state = lab;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    prb_unwinder_free(lab->unwinder);
    prb_modules_deinit(&lab->modules);
    prb_mem_free(lab->mem);
    prb_proc_free(lab->proc);
    free(lab->copy.stack);
    free(lab);
    return 0;
}

static void unwind(bool lines)
{
    struct prb_error err;
    assert_ok(prb_unwind(lab->unwinder, &lab->copy, &lab->stack, &lab->suffices, &err), err);
    prb_unwinder_name(lab->unwinder, &lab->stack, 1, lines);
}

/* Index of the next frame of that name from i on. */
static size_t find(size_t i, const char *symbol)
{
    for (; i < lab->stack.count; i++)
        if (lab->stack.frames[i].symbol && strcmp(lab->stack.frames[i].symbol, symbol) == 0)
            return i;
    fail_msg("no frame of %s among %zu (%s)", symbol, lab->stack.count,
             lab->stack.broken ? lab->stack.broken : "whole");
    return 0;
}

static void plain(void **state)
{
    (void)state;
    middle();
    unwind(false);
    assert_int_equal(find(0, "innermost"), 0);
    assert_int_equal(find(0, "middle"), 1);
    assert_int_equal(find(0, "plain"), 2);
    find(0, "main");
    assert_null(lab->stack.broken);
    assert_true(lab->suffices);
    for (size_t i = 0; i + 1 < lab->stack.count; i++) {
        const struct prb_native_frame *frame = &lab->stack.frames[i];
        assert_true(frame->cfa > frame->sp);
        assert_int_equal(frame->cfa, frame[1].sp);
        assert_int_equal(frame->returning, i > 0);
        assert_false(frame->guessed);
        assert_non_null(frame->module);
    }
}

/* What was read before does not serve a new look. */
static void renewed(void **state)
{
    (void)state;
    static volatile uint64_t word;
    uint64_t seen;
    word = 1;
    assert_true(prb_unwinder_word(lab->unwinder, (uintptr_t)&word, &seen));
    assert_int_equal(seen, 1);
    word = 2;
    prb_unwinder_forget_all(lab->unwinder);
    assert_true(prb_unwinder_word(lab->unwinder, (uintptr_t)&word, &seen));
    assert_int_equal(seen, 2);
    middle();
    unwind(false);
    assert_int_equal(find(0, "middle"), 1);
    assert_false(prb_unwinder_word(lab->unwinder, 8, &seen));
    assert_false(prb_unwinder_word(lab->unwinder, UINT64_MAX - 3, &seen));
}

/* Where the code of a library begins. */
static prb_addr code_of(void *library)
{
    struct link_map *map;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)map->l_addr;
    const ElfW(Phdr) *program = (const ElfW(Phdr) *)(map->l_addr + head->e_phoff);
    while (program->p_type != PT_LOAD || !(program->p_flags & PF_X))
        program++;
    return map->l_addr + program->p_vaddr;
}

/* Code mapped after the modules were listed: a library loaded later. */
static void later_code(void **state)
{
    (void)state;
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof libraries / sizeof *libraries; i++)
        library = dlopen(libraries[i], RTLD_NOW);
    if (!library)
        skip();
    prb_addr inside = code_of(library);
    assert_null(prb_modules_find(lab->unwinder->modules, inside));
    prb_unwinder_forget_all(lab->unwinder);
    assert_non_null(prb_modules_find(lab->unwinder->modules, inside));
    middle();
    unwind(false);
    assert_int_equal(find(0, "middle"), 1);
    dlclose(library);
    prb_unwinder_forget_all(lab->unwinder);
    assert_null(prb_modules_find(lab->unwinder->modules, inside));
}

static void two_registers_suffice(void **state)
{
    (void)state;
    NEEDS_PLAIN_FRAMES();
    lab->only_two = true;
    middle();
    unwind(false);
    assert_int_equal(find(0, "middle"), 1);
    assert_int_equal(find(0, "two_registers_suffice"), 2);
}

static void two_registers_do_not(void **state)
{
    (void)state;
    NEEDS_PLAIN_FRAMES();
    volatile size_t n = 300;
    sized_at_run_time(n);
    unwind(false);
    assert_true(lab->suffices);
    assert_int_equal(find(0, "two_registers_do_not"), 2);
    assert_false(lab->stack.frames[2].guessed);
    lab->only_two = true;
    sized_at_run_time(n);
    unwind(false);
    /* innermost() saved the frame pointer or it did not: then the next one out is a guess. */
    size_t i = find(0, "two_registers_do_not");
    assert_int_equal(lab->suffices, !lab->stack.frames[i].guessed);
    find(0, "main");
}

/* Rules of AArch64 that libunwind 1.6 refuses are no-ops to it; the same byte as an operand stays. */
static void rules_of_signed_addresses(void **state)
{
    (void)state;
    static const uint8_t rules[] = {0x41, 0x2d, 0x0e, 0x2d, 0x9d, 0x2d, 0x02, 0x2d,
                                    0x0f, 0x02, 0x2d, 0x2d, 0x10, 0xad, 0x2d, 0x01,
                                    0x2d, 0x16, 0x1e, 0x00, 0xdd, 0x2d, 0x0a, 0x2d};
    static const uint8_t seen[] = {0x41, 0x00, 0x0e, 0x2d, 0x9d, 0x2d, 0x02, 0x2d,
                                   0x0f, 0x02, 0x2d, 0x2d, 0x10, 0xad, 0x2d, 0x01,
                                   0x2d, 0x16, 0x1e, 0x00, 0xdd, 0x00, 0x0a, 0x00};
    struct prb_unwinder *u = lab->unwinder;
    prb_addr start = (uintptr_t)rules;
    prb_unwind_rules_note(u, start, start + sizeof rules);
    assert_int_equal(u->unknown_rules, u->arch->signing_rule ? 3 : 0);
    u->unknown_rules = 0;
    u->arch = &prb_arch_aarch64;
    for (size_t len = 0; len <= sizeof rules; len++) { /* cut short anywhere */
        u->unknown_rules = 0;
        prb_unwind_rules_note(u, start, start + len);
    }
    assert_int_equal(u->unknown_rules, 3);
    for (size_t at = 0; at + 8 <= sizeof rules; at++) {
        uint64_t word;
        memcpy(&word, rules + at, sizeof word);
        prb_unwind_rules_hide(u, start + at, &word);
        assert_memory_equal(&word, seen + at, sizeof word);
    }
    u->arch = prb_arch_host();
    u->unknown_rules = 0;
}

/* The stack is deeper than the copy. */
static void deeper_than_the_copy(void **state)
{
    (void)state;
    deep(2000);
    unwind(false);
    size_t frames = 0;
    for (size_t i = 0; i < lab->stack.count; i++)
        frames += lab->stack.frames[i].symbol && !strcmp(lab->stack.frames[i].symbol, "deep");
    assert_true(frames > 0);
    assert_true(lab->stack.count < 5000);
}

/* Walks at once: the copy holds the handler's own stack only. */
static void on_signal(int number)
{
    (void)number;
    innermost();
    unwind(false);
    sink++;
}

NOINLINE static void raising(void)
{
    raise(SIGUSR1);
    sink++;
}

static void signal_frame(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    raising();
    sigaction(SIGUSR1, &before, NULL);
    size_t i = find(0, "on_signal");
    assert_true(lab->stack.frames[i + 1].signal);
    assert_false(lab->stack.frames[i + 2].returning);
    i = find(i, "raising");
    assert_int_equal(find(i, "signal_frame"), i + 1);
}

static void other_stack_for_signals(void **state)
{
    (void)state;
    void *place = malloc(65536);
    stack_t stack = {.ss_sp = place, .ss_size = 65536}, old;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, before;
    sigaltstack(&stack, &old);
    sigaction(SIGUSR1, &action, &before);
    raising();
    find(find(find(0, "on_signal"), "raising"), "other_stack_for_signals");
    sigaction(SIGUSR1, &before, NULL);
    sigaltstack(&old, NULL);
    free(place);
}

#ifdef __x86_64__
/* push %rbx; sub $0x40, %rsp; call *%rdi; add $0x40, %rsp; pop %rbx; ret: no unwind information,
 * like an assembler kernel. */
static const uint8_t kernel[] = {0x53, 0x48, 0x83, 0xec, 0x40, 0xff, 0xd7,
                                 0x48, 0x83, 0xc4, 0x40, 0x5b, 0xc3};

NOINLINE static void through_kernel(void (*code)(void (*)(void)))
{
    code(middle);
    sink++;
}

/* What earlier calls left below here would be guessed first: the kernel does not write its room. */
NOINLINE static void wipe_stack(void)
{
    volatile uint8_t room[16384];
    memset((void *)room, 0, sizeof room);
    sink += room[0];
}

static void code_without_unwind_information(void **state)
{
    (void)state;
    uint8_t *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memcpy(page, kernel, sizeof kernel);
    struct prb_error err;
    assert_ok(prb_proc_maps(lab->proc, true, &err), err);
    wipe_stack();
    through_kernel((void (*)(void (*)(void)))(uintptr_t)page);
    unwind(false);
    munmap(page, 4096);
    assert_int_equal(find(0, "middle"), 1);
    assert_null(lab->stack.frames[2].module);
    assert_false(lab->stack.frames[2].guessed);
    assert_int_equal(find(0, "through_kernel"), 3);
    assert_true(lab->stack.frames[3].guessed);
    assert_false(lab->stack.frames[4].guessed);
    find(0, "main");
}

/* ---- unwind tables that lie ---- */

struct lies {
    Elf64_Ehdr head;
    Elf64_Phdr program[2];
    uint8_t gap[0x200 - sizeof(Elf64_Ehdr) - 2 * sizeof(Elf64_Phdr)];
    struct { /* at 0x200 */
        uint8_t encodings[4];
        int32_t frame;
        uint32_t count;
        int32_t start, fde;
    } search;
    uint8_t gap_2[0x300 - 0x200 - 20];
    uint8_t cie[0x40], fde[0x40]; /* at 0x300, 0x340 */
};

#define CODE_AT 0x800

static void put32(uint8_t *at, int64_t value) { memcpy(at, &(int32_t){(int32_t)value}, 4); }

/* An ELF image with one function, whose frame is told by the given call frame instructions. */
static struct lies make_lies(const uint8_t *instructions, size_t len)
{
    struct lies lies = {
        .head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                 .e_type = ET_DYN,
                 .e_machine = EM_X86_64,
                 .e_phoff = sizeof(Elf64_Ehdr),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 2},
        .program = {{.p_type = PT_LOAD, .p_filesz = 4096, .p_memsz = 4096},
                    {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x200, .p_memsz = 20}},
        .search = {{1, 0x1b, 0x03, 0x3b}, 0x300 - 0x204, 1, CODE_AT - 0x200, 0x340 - 0x200},
    };
    static const uint8_t cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
    put32(lies.cie, 0x3c);
    memcpy(lies.cie + 8, cie, sizeof cie);
    memcpy(lies.cie + 8 + sizeof cie, instructions, len);
    put32(lies.fde, 0x3c);
    put32(lies.fde + 4, 0x44);
    put32(lies.fde + 8, CODE_AT - 0x348);
    put32(lies.fde + 12, 0x100);
    return lies;
}

/* Walk from that function. */
static void unwind_from(const struct lies *lies)
{
    int file = memfd_create("lies", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, 4096), 0);
    assert_int_equal(write(file, lies, sizeof *lies), sizeof *lies);
    uint8_t *image = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    assert_true(image != MAP_FAILED);
    prb_unwinder_forget_all(lab->unwinder);
    middle();
    lab->copy.registers.value[prb_arch_host()->pc] = (uintptr_t)image + CODE_AT + 16;
    unwind(false);
    munmap(image, 4096);
    close(file);
}

static void honest_tables(void **state)
{
    (void)state;
    /* def_cfa rsp + 8; rip at cfa - 8: the words on top of the stack are no return address */
    static const uint8_t plain_frame[] = {0x0c, 7, 8, 0x90, 1};
    struct lies lies = make_lies(plain_frame, sizeof plain_frame);
    unwind_from(&lies);
    assert_non_null(lab->stack.frames[0].module);
    /* rip undefined: the outermost */
    static const uint8_t outermost[] = {0x0c, 7, 8, 0x07, 16};
    lies = make_lies(outermost, sizeof outermost);
    unwind_from(&lies);
    assert_int_equal(lab->stack.count, 1);
    assert_null(lab->stack.broken);
}

static void lying_tables(void **state)
{
    (void)state;
    /* The frame's address by an expression that jumps to itself for ever; rip at cfa - 8. */
    static const uint8_t endless[] = {0x0f, 3, 0x2f, 0xfd, 0xff, 0x90, 1};
    struct lies lies = make_lies(endless, sizeof endless);
    unwind_from(&lies);
    /* The frame lies below itself: cfa is rsp - 64. */
    static const uint8_t below[] = {0x12, 7, 8, 0x90, 1};
    lies = make_lies(below, sizeof below);
    unwind_from(&lies);
    /* Sizes and counts beyond all there is. */
    lies.search.count = UINT32_MAX;
    lies.program[1].p_memsz = UINT64_MAX;
    unwind_from(&lies);
    put32(lies.fde, 0x7ffffff0);
    put32(lies.cie, 0x7ffffff0);
    unwind_from(&lies);
    lies.search.fde = INT32_MIN;
    unwind_from(&lies);
    lies.head.e_phnum = UINT16_MAX;
    lies.head.e_phoff = UINT64_MAX - 8;
    unwind_from(&lies);
}

/* Every byte of header, search table and frame information wrong in turn. */
static void damaged_tables(void **state)
{
    (void)state;
    static const uint8_t plain_frame[] = {0x0c, 7, 8, 0x90, 1};
    static const size_t ranges[][2] = {
        {0, sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr)}, {0x200, 0x214}, {0x300, 0x380}};
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (size_t at = ranges[r][0]; at < ranges[r][1]; at += 3) {
            struct lies lies = make_lies(plain_frame, sizeof plain_frame);
            ((uint8_t *)&lies)[at] ^= 0xff;
            unwind_from(&lies);
            assert_true(lab->stack.count >= 1);
        }
}

/* A call through a null pointer: the caller is the first word. */
static void program_counter_of_nothing(void **state)
{
    (void)state;
    NEEDS_PLAIN_FRAMES();
    middle();
    unsigned sp = prb_arch_host()->sp, pc = prb_arch_host()->pc;
    unwind(false);
    prb_addr cfa = lab->stack.frames[0].cfa;
    lab->copy.stack_len -= cfa - 8 - lab->copy.stack_start;
    memmove(lab->copy.stack, lab->copy.stack + (cfa - 8 - lab->copy.stack_start),
            lab->copy.stack_len);
    lab->copy.stack_start = cfa - 8;
    lab->copy.registers.value[sp] = cfa - 8;
    lab->copy.registers.value[pc] = 0;
    unwind(false);
    assert_int_equal(find(0, "middle"), 1);
    assert_true(lab->stack.frames[1].guessed);
}
#endif

/* Whatever the stack holds, the walk ends, and well. */
static void rubbish(void **state)
{
    (void)state;
    middle();
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < lab->copy.stack_len; i += 8)
            if ((seed = seed * 1664525 + 1013904223) >> 28 == 0)
                memcpy(lab->copy.stack + i,
                       &(uint64_t){seed % 3 ? seed : (uintptr_t)middle + seed % 64}, 8);
        unwind(false);
        assert_true(lab->stack.count >= 1);
    }
    lab->copy.stack_len = 0;
    lab->copy.registers.value[prb_arch_host()->sp] = 8;
    lab->copy.registers.value[prb_arch_host()->fp] = 8; /* builds with frame pointers go by it */
    lab->copy.stack_start = 8;
    unwind(false);
    assert_int_equal(lab->stack.count, 1);
    assert_non_null(lab->stack.broken);
}

static void no_registers(void **state)
{
    (void)state;
    struct prb_error err;
    lab->copy.registers.known = 0;
    assert_false(prb_unwind(lab->unwinder, &lab->copy, &lab->stack, &lab->suffices, &err));
    assert_int_equal(err.code, PRB_UNSUPPORTED);
}

__attribute__((always_inline)) static inline void inlined(void)
{
    sink++;
    innermost();
    sink++;
}

static int call_line;

NOINLINE static void around_inlined(void)
{
    call_line = __LINE__ + 1;
    inlined();
    sink++;
}

static void source_lines(void **state)
{
    (void)state;
    around_inlined();
    unwind(true);
    const struct prb_native_frame *frame = &lab->stack.frames[find(0, "around_inlined")];
    if (!frame->file)
        skip(); /* built without -g */
    assert_non_null(strstr(frame->file, "unwind.c"));
    assert_int_equal(frame->line, call_line);
}

static unw_addr_space_t (*create_space)(unw_accessors_t *accessors, int byte_order);

static unw_addr_space_t look_behind(unw_accessors_t *accessors, int byte_order)
{
    void (*all[PRB_ACCESSORS_MAX])(void);
    memcpy(all, accessors, sizeof all);
    for (size_t i = sizeof *accessors / sizeof *all; i < PRB_ACCESSORS_MAX; i++)
        assert_null(all[i]);
    return create_space(accessors, byte_order);
}

/* A library of another version than its header takes more functions than are given. */
static void newer_library(void **state)
{
    (void)state;
    struct prb_error err;
    struct prb_libunwind *library = (struct prb_libunwind *)prb_libunwind(&err);
    create_space = library->unw_create_addr_space;
    library->unw_create_addr_space = look_behind;
    struct prb_unwinder *unwinder = prb_unwinder_new(&lab->modules, lab->mem, &err);
    library->unw_create_addr_space = create_space;
    assert_ok(unwinder, err);
    prb_unwinder_free(unwinder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain),
        TEST(renewed),
        TEST(later_code),
        TEST(two_registers_suffice),
        TEST(two_registers_do_not),
        TEST(rules_of_signed_addresses),
        TEST(deeper_than_the_copy),
        TEST(signal_frame),
        TEST(other_stack_for_signals),
#ifdef __x86_64__
        TEST(code_without_unwind_information),
        TEST(program_counter_of_nothing),
        TEST(honest_tables),
        TEST(lying_tables),
        TEST(damaged_tables),
#endif
        TEST(rubbish),
        TEST(no_registers),
        TEST(source_lines),
        TEST(newer_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
