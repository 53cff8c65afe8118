/* arch: register sets there and back, and telling call instructions from their last bytes. */
#include "unit.h"

#include <elf.h>
#include <sys/procfs.h>

#include "arch/arch.h"

static void tables_make_sense(void **state)
{
    (void)state;
    const struct prb_arch *all[] = {&prb_arch_x86_64, &prb_arch_aarch64};
    for (size_t a = 0; a < 2; a++) {
        const struct prb_arch *arch = all[a];
        assert_ptr_equal(prb_arch_find(arch->elf_machine), arch);
        assert_true(arch->register_count <= PRB_REG_MAX);
        uint64_t seen = 0;
        for (size_t i = 0; i < arch->register_count; i++) {
            unsigned position = arch->registers[i].position;
            assert_true((position + 1) * sizeof(uint64_t) <= arch->gregset_size);
            assert_false(seen >> position & 1);
            seen |= UINT64_C(1) << position;
        }
        assert_int_equal(seen, (UINT64_C(1) << arch->gregset_size / 8) - 1);
        const int *call = arch->fragile_syscalls;
        while (*call >= 0)
            call++;
        assert_true(call > arch->fragile_syscalls);
    }
    assert_null(prb_arch_find(EM_386));
    assert_int_equal(prb_arch_host()->gregset_size, sizeof(elf_gregset_t));
}

static void register_sets_round_trip(void **state)
{
    (void)state;
    const struct prb_arch *all[] = {&prb_arch_x86_64, &prb_arch_aarch64};
    for (size_t a = 0; a < 2; a++) {
        const struct prb_arch *arch = all[a];
        uint64_t raw[40] = {0}, back[40];
        for (size_t i = 0; i < arch->gregset_size / 8; i++)
            raw[i] = 0x1000 + i;
        struct prb_registers registers;
        struct prb_error err;
        assert_ok(prb_arch_registers(arch, raw, arch->gregset_size, &registers, &err), err);
        assert_ok(prb_arch_gregset(arch, &registers, back, sizeof back, &err), err);
        assert_memory_equal(raw, back, arch->gregset_size);
        assert_int_equal(registers.value[arch->sp], 0x1000 + arch->registers[arch->sp].position);
        assert_false(prb_arch_registers(arch, raw, arch->gregset_size - 1, &registers, &err));
        assert_int_equal(err.code, PRB_CORRUPT);
        registers.known = UINT64_C(1) << arch->pc;
        assert_ok(prb_arch_gregset(arch, &registers, back, sizeof back, &err), err);
        assert_int_equal(back[arch->registers[arch->sp].position], 0);
        assert_int_equal(back[arch->registers[arch->pc].position],
                         raw[arch->registers[arch->pc].position]);
    }
}

#ifdef __x86_64__
static void this_process(void **state)
{
    (void)state;
    /* <sys/user.h> names the positions. */
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
#define AT(field, name) {name, offsetof(struct user_regs_struct, field)}
        AT(rax, "rax"), AT(rbx, "rbx"),         AT(rcx, "rcx"),           AT(rdx, "rdx"),
        AT(rsi, "rsi"), AT(rdi, "rdi"),         AT(rbp, "rbp"),           AT(rsp, "rsp"),
        AT(r8, "r8"),   AT(r9, "r9"),           AT(r10, "r10"),           AT(r11, "r11"),
        AT(r12, "r12"), AT(r13, "r13"),         AT(r14, "r14"),           AT(r15, "r15"),
        AT(rip, "rip"), AT(eflags, "eflags"),   AT(orig_rax, "orig_rax"), AT(cs, "cs"),
        AT(ss, "ss"),   AT(fs_base, "fs_base"), AT(gs_base, "gs_base"),
#undef AT
    };
    const struct prb_arch *arch = &prb_arch_x86_64;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        size_t i = 0;
        while (i < arch->register_count && strcmp(arch->registers[i].name, names[n].name))
            i++;
        assert_true(i < arch->register_count);
        assert_int_equal(arch->registers[i].position * 8, names[n].offset);
    }
    assert_string_equal(arch->registers[arch->sp].name, "rsp");
    assert_string_equal(arch->registers[arch->pc].name, "rip");
    assert_string_equal(arch->registers[arch->fp].name, "rbp");
}
#endif

static bool x86(const char *bytes, size_t len)
{
    uint8_t code[PRB_CALL_MAX];
    memset(code, 0x90, sizeof code);
    memcpy(code + sizeof code - len, bytes, len);
    return prb_arch_x86_64.ends_in_call(code);
}

static bool arm(uint32_t word)
{
    uint8_t code[PRB_CALL_MAX] = {0};
    memcpy(code + PRB_CALL_MAX - sizeof word, &word, sizeof word);
    return prb_arch_aarch64.ends_in_call(code);
}

static void calls(void **state)
{
    (void)state;
    assert_true(x86("\xe8\x10\x20\x30\x40", 5));         /* call rel32 */
    assert_true(x86("\xff\xd0", 2));                     /* call *%rax */
    assert_true(x86("\x41\xff\xd3", 3));                 /* call *%r11 */
    assert_true(x86("\xff\x15\x10\x20\x30\x40", 6));     /* call *rel32(%rip) */
    assert_true(x86("\xff\x53\x18", 3));                 /* call *0x18(%rbx) */
    assert_true(x86("\xff\x93\x18\x01\x00\x00", 6));     /* call *0x118(%rbx) */
    assert_true(x86("\xff\x14\xd8", 3));                 /* call *(%rax,%rbx,8) */
    assert_true(x86("\xff\x54\x24\x10", 4));             /* call *0x10(%rsp) */
    assert_true(x86("\xff\x14\xc5\x10\x20\x30\x40", 7)); /* call *0x40302010(,%rax,8) */
    assert_false(x86("\xff\x25\x10\x20\x30\x40", 6));    /* jmp *rel32(%rip) */
    assert_false(x86("\xe9\x10\x20\x30\x40", 5));        /* jmp rel32 */
    assert_false(x86("\xff\xe0", 2));                    /* jmp *%rax */
    assert_false(x86("\x48\x89\xc3", 3));                /* mov %rax,%rbx */
    assert_true(arm(0x94000010));                        /* bl */
    assert_true(arm(0xd63f0100));                        /* blr x8 */
    assert_true(arm(0xd63f091f));                        /* blraaz x8 */
    assert_false(arm(0x14000010));                       /* b */
    assert_false(arm(0xd61f0100));                       /* br x8 */
    assert_false(arm(0xd65f03c0));                       /* ret */
}

static void signed_return_addresses(void **state)
{
    (void)state;
    /* Signed by paciasp on a processor with addresses of 48 bits. */
    assert_int_equal(UINT64_C(0x002f7ff7a1b2c3d4) & prb_arch_aarch64.code_mask, 0x7ff7a1b2c3d4);
    assert_int_equal(UINT64_C(0xaaaad52109c0) & prb_arch_aarch64.code_mask, 0xaaaad52109c0);
    assert_int_equal(UINT64_C(0x7fffffffe000) & prb_arch_x86_64.code_mask, 0x7fffffffe000);
    assert_int_equal(UINT64_C(0x002f7ff7a1b2c3d4) & prb_arch_x86_64.code_mask, 0x002f7ff7a1b2c3d4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_make_sense),
        cmocka_unit_test(register_sets_round_trip),
#ifdef __x86_64__
        cmocka_unit_test(this_process),
#endif
        cmocka_unit_test(calls),
        cmocka_unit_test(signed_return_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
