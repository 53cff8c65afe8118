/*
 * A single thread whose registers and red zone hold known values: any that changed is counted as
 * damage.
 *
 *     canary avx|avx512|x87|redzone|general busy|parked
 *
 * busy: the values are held across a loop of plain instructions; parked: across a poll(2) of 50 ms,
 * by libc's own function for the vector and x87 registers, by a bare system call for the others.
 */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

#include "report.h"

#define SPINS 300000ul
#define WAIT_MS 50

#ifndef __x86_64__
int main(void) { return 77; }
#else

/* Hold what `load` put into the registers, then let `store` take it out again.  poll is called by
 * its address, so no lazy binding stands between. */
#define HOLD(load, store, in, out, parked, ...)                                                    \
    do {                                                                                           \
        if (parked)                                                                                \
            __asm__ volatile(load "mov %%rsp, %%rbx\n\tand $-64, %%rsp\n\tsub $256, %%rsp\n\t"     \
                                  "xor %%edi, %%edi\n\txor %%esi, %%esi\n\tmov %[wait], %%edx\n\t" \
                                  "call *%[call]\n\tmov %%rbx, %%rsp\n\t" store                    \
                             :                                                                     \
                             : "r"(in), "r"(out), [wait] "i"(WAIT_MS), [call] "r"(&poll)           \
                             : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", \
                               "cc", "memory", __VA_ARGS__);                                       \
        else                                                                                       \
            __asm__ volatile(load "mov %[spins], %%rcx\n\t1: dec %%rcx\n\tjnz 1b\n\t" store        \
                             :                                                                     \
                             : "r"(in), "r"(out), [spins] "i"(SPINS)                               \
                             : "rcx", "cc", "memory", __VA_ARGS__);                                \
    } while (0)

#define EACH16(OP)                                                                                 \
    OP(0)                                                                                          \
    OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11) OP(12) OP(13) OP(14) OP(15)
#define YMM_LOAD(n) "vmovdqu " #n "*32(%0), %%ymm" #n "\n\t"
#define YMM_STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%1)\n\t"
#define YMM_NAME(n) "xmm" #n,
#define ZMM_LOAD(n) "vmovdqu64 " #n "*64(%0), %%zmm" #n "\n\t"
#define ZMM_STORE(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%1)\n\t"

static unsigned char pattern[2048] __attribute__((aligned(64)));

static void compare(const char *what, const void *wanted, const void *got, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)wanted)[i] != ((const unsigned char *)got)[i]) {
            report_damage("%s: byte %zu of %zu is %#x, not %#x", what, i, size,
                          ((const unsigned char *)got)[i], ((const unsigned char *)wanted)[i]);
            return;
        }
}

__attribute__((target("avx2"))) static void avx(int parked)
{
    unsigned char got[16 * 32] = {0};
    HOLD(EACH16(YMM_LOAD), EACH16(YMM_STORE) "vzeroupper\n\t", pattern, got, parked,
         EACH16(YMM_NAME) "memory");
    compare("ymm", pattern, got, sizeof got);
}

__attribute__((target("avx512f"))) static void avx512(int parked)
{
    unsigned char got[16 * 64] = {0};
    HOLD(EACH16(ZMM_LOAD), EACH16(ZMM_STORE) "vzeroupper\n\t", pattern, got, parked,
         EACH16(YMM_NAME) "memory");
    compare("zmm", pattern, got, sizeof got);
}

/* The stack of eight, and control words that a fresh thread does not have. */
static void x87(int parked)
{
    struct {
        long double st[5];
        uint32_t mxcsr;
        uint16_t control;
    } in, got;
    uint32_t mxcsr_before;
    uint16_t control_before;
    memset(&in, 0, sizeof in);
    memset(&got, 0, sizeof got);
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_before), "=m"(control_before));
    in.mxcsr = mxcsr_before | 0xe000;                 /* flush to zero, round towards zero */
    in.control = (uint16_t)(control_before | 0x0800); /* round up */
    __asm__ volatile("fldpi\n\tfldl2e\n\tfldl2t\n\tfldln2\n\tfldlg2\n\t"
                     "fstpt (%0)\n\tfstpt 16(%0)\n\tfstpt 32(%0)\n\tfstpt 48(%0)\n\tfstpt 64(%0)"
                     :
                     : "r"(&in)
                     : "memory");
    HOLD("ldmxcsr 80(%0)\n\tfldt 64(%0)\n\tfldt 48(%0)\n\tfldt 32(%0)\n\tfldt 16(%0)\n\tfldt "
         "(%0)\n\tfldcw 84(%0)\n\t",
         "stmxcsr 80(%1)\n\tfnstcw 84(%1)\n\tfstpt (%1)\n\tfstpt 16(%1)\n\tfstpt 32(%1)\n\tfstpt "
         "48(%1)\n\t"
         "fstpt 64(%1)\n\t",
         &in, &got, parked, "memory");
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr_before), "m"(control_before));
    for (int i = 0; i < 5; i++)
        compare("x87 stack", &in.st[i], &got.st[i], 10);
    compare("x87 control word", &in.control, &got.control, sizeof in.control);
    compare("mxcsr", &in.mxcsr, &got.mxcsr, 4);
}

/* rdi: value, rsi: spins, or 0: poll; back: how many words of the red zone changed. */
uint64_t redzone_hold(uint64_t value, uint64_t spins);
__asm__(".text\n.type redzone_hold, @function\nredzone_hold:\n\t"
        "mov $-16, %rcx\n"
        "1: lea (%rdi,%rcx), %rdx\n\tmov %rdx, (%rsp,%rcx,8)\n\tinc %rcx\n\tjnz 1b\n\t"
        "mov %rdi, %r8\n\ttest %rsi, %rsi\n\tjz 3f\n"
        "2: dec %rsi\n\tjnz 2b\n\tjmp 4f\n"
        "3: mov $7, %eax\n\txor %edi, %edi\n\txor %esi, %esi\n\tmov $50, %edx\n\tsyscall\n"
        "4: xor %eax, %eax\n\tmov $-16, %rcx\n"
        "5: lea (%r8,%rcx), %rdx\n\tcmp %rdx, (%rsp,%rcx,8)\n\tje 6f\n\tinc %rax\n"
        "6: inc %rcx\n\tjnz 5b\n\tret\n.size redzone_hold, . - redzone_hold\n");

static void redzone(int parked)
{
    uint64_t changed = redzone_hold(0x5eed000000000000u, parked ? 0 : SPINS);
    if (changed)
        report_damage("%d words of the red zone changed", (int)changed);
}

/* rdi: spins, or 0: poll; rsi: 16 words for what the registers hold then.  Known values: 0x1001..
 * in rbx, rbp, r8, r9, r10, r12-r15, and the carry set. */
void general_hold(uint64_t spins, uint64_t *out);
__asm__(
    ".text\n.type general_hold, @function\ngeneral_hold:\n\t"
    "push %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\tpush "
    "%rsi\n\tpush %rdi\n\t"
    "mov $0x1001, %rbx\n\tmov $0x1002, %rbp\n\tmov $0x1003, %r8\n\tmov $0x1004, %r9\n\tmov "
    "$0x1005, %r10\n\t"
    "mov $0x1006, %r12\n\tmov $0x1007, %r13\n\tmov $0x1008, %r14\n\tmov $0x1009, %r15\n\t"
    "test %rdi, %rdi\n\tjz 2f\n\t"
    "mov $0x100a, %rax\n\tmov $0x100b, %rcx\n\tmov $0x100c, %rdx\n\tmov $0x100d, %rsi\n\tmov "
    "$0x100e, %r11\n\t"
    "stc\n"
    "1: decq (%rsp)\n\tjnz 1b\n\tjmp 3f\n"
    "2: mov $7, %eax\n\txor %edi, %edi\n\txor %esi, %esi\n\tmov $50, %edx\n\tstc\n\tsyscall\n\t"
    "setc %al\n\ttest %eax, %eax\n\tmov $0x100a, %eax\n\tmov $0x100b, %ecx\n\tmov $0x100c, %edx\n\t"
    "mov $0x100d, %esi\n\tmov $0x100e, %r11d\n\tstc\n"
    "3: mov 8(%rsp), %rdi\n\tmov %rbx, (%rdi)\n\tmov %rbp, 8(%rdi)\n\tmov %r8, 16(%rdi)\n\tmov "
    "%r9, 24(%rdi)\n\t"
    "mov %r10, 32(%rdi)\n\tmov %r12, 40(%rdi)\n\tmov %r13, 48(%rdi)\n\tmov %r14, 56(%rdi)\n\tmov "
    "%r15, 64(%rdi)\n\t"
    "mov %rax, 72(%rdi)\n\tmov %rcx, 80(%rdi)\n\tmov %rdx, 88(%rdi)\n\tmov %rsi, 96(%rdi)\n\tmov "
    "%r11, 104(%rdi)\n\t"
    "mov $0, %eax\n\tsetc %al\n\tmov %rax, 112(%rdi)\n\t"
    "pop %rdi\n\tpop %rsi\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop "
    "%rbx\n\tret\n"
    ".size general_hold, . - general_hold\n");

static void general(int parked)
{
    uint64_t got[16] = {0};
    general_hold(parked ? 0 : SPINS, got);
    for (uint64_t i = 0; i < 14; i++)
        if (got[i] != 0x1001 + i)
            report_damage("general register %d is %#llx", (int)i, (unsigned long long)got[i]);
    if (got[14] != 1)
        report_damage("the carry is lost");
}

static const struct {
    const char *name;
    void (*hold)(int parked);
    unsigned needs; /* bit of CPUID leaf 7, EBX; 0: none */
} KINDS[] = {{"avx", avx, bit_AVX2},
             {"avx512", avx512, bit_AVX512F},
             {"x87", x87, 0},
             {"redzone", redzone, 0},
             {"general", general, 0}};

int main(int argc, char **argv)
{
    unsigned a, b = 0, c, d;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i * 37 + 11);
    for (size_t i = 0; argc > 2 && i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strcmp(KINDS[i].name, argv[1]))
            continue;
        if ((b & KINDS[i].needs) != KINDS[i].needs)
            return 77;
        report_open();
        report->lanes = 1;
        for (int parked = !strcmp(argv[2], "parked");; report->progress[0]++) {
            KINDS[i].hold(parked);
            report_ready();
        }
    }
    return 2;
}
#endif
