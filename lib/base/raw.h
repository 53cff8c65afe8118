/*
 * System calls without libc: for signal handlers, where errno, cancellation and locks of libc are
 * the program's, and for a child that shares all memory with the process that crashes.
 * syscall(2), "Architecture calling conventions"; clone(2).  The result is negative errno on error.
 */
#ifndef PRB_BASE_RAW_H
#define PRB_BASE_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifdef __x86_64__

static inline long prb_raw(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The child runs body(argument) on its stack and ends with what it returns. */
static inline long prb_raw_clone(unsigned long flags, void *stack_end, int (*body)(void *),
                                 void *argument)
{
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register void *kept_body __asm__("r12") = (void *)(uintptr_t)body;
    register void *kept_argument __asm__("r13") = argument;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov %[end], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"(flags), "S"(stack_end), "d"(0L), "r"(r10), "r"(r8),
                       "r"(kept_body), "r"(kept_argument), [end] "i"(SYS_exit_group)
                     : "rcx", "r11", "memory");
    return result;
}

#else

static inline long prb_raw(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

static inline long prb_raw_clone(unsigned long flags, void *stack_end, int (*body)(void *),
                                 void *argument)
{
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = (long)flags;
    register void *x1 __asm__("x1") = stack_end;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register void *kept_body __asm__("x20") = (void *)(uintptr_t)body;
    register void *kept_argument __asm__("x21") = argument;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x30, xzr\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "mov x8, %[end]\n\t"
                     "svc #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(kept_body),
                       "r"(kept_argument), [end] "i"(SYS_exit_group)
                     : "memory");
    return x0;
}

#endif

#define PRB_RAW0(number) prb_raw((number), 0, 0, 0, 0, 0, 0)
#define PRB_RAW1(number, a) prb_raw((number), (long)(a), 0, 0, 0, 0, 0)
#define PRB_RAW2(number, a, b) prb_raw((number), (long)(a), (long)(b), 0, 0, 0, 0)
#define PRB_RAW3(number, a, b, c) prb_raw((number), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define PRB_RAW4(number, a, b, c, d)                                                               \
    prb_raw((number), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define PRB_RAW5(number, a, b, c, d, e)                                                            \
    prb_raw((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#endif
