/*
 * The stub for x86-64.  The borrowed thread comes to `borrowed`, on a stack of ours, and leaves as it
 * came; the thread that it makes begins at `made`.  Position independent, without relocations.
 * System call numbers: arch/x86/entry/syscalls/syscall_64.tbl.
 */
#include "../stub.h"

#define SYS_CLOSE 3
#define SYS_MPROTECT 10
#define SYS_MUNMAP 11
#define SYS_RT_SIGPROCMASK 14
#define SYS_RT_SIGRETURN 15
#define SYS_NANOSLEEP 35
#define SYS_PRCTL 157
#define SYS_MEMFD_CREATE 319

	.text
borrowed:
	endbr64
	leaq	borrowed + PRB_STUB_APART_X86_64(%rip), %rbx
	movl	$SYS_RT_SIGPROCMASK, %eax
	movl	$2, %edi			/* SIG_SETMASK */
	leaq	PRB_STUB_BLOCK_MASK(%rbx), %rsi
	movq	PRB_STUB_MASK_PLACE(%rbx), %rdx
	movl	$8, %r10d
	syscall
	movl	$PRB_STUB_CALLING, PRB_STUB_STEP(%rbx)
	leaq	PRB_STUB_THREAD(%rbx), %rdi
	xorl	%esi, %esi
	leaq	made(%rip), %rdx
	movq	%rbx, %rcx
	call	*PRB_STUB_PTHREAD_CREATE(%rbx)
	movl	%eax, PRB_STUB_CREATED(%rbx)
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, PRB_STUB_CLOCK(%rbx)
	movl	$PRB_STUB_RETURNED, PRB_STUB_STEP(%rbx)
	movq	PRB_STUB_FRAME(%rbx), %rax
	testq	%rax, %rax
	jnz	by_frame

	/* It was in a system call, which destroys rcx and r11: nobody misses these two. */
	movq	PRB_STUB_XSTATE(%rbx), %rcx
	movl	PRB_STUB_XMASK(%rbx), %eax
	movl	PRB_STUB_XMASK + 4(%rbx), %edx
	xrstor64 (%rcx)
	pushq	PRB_STUB_REGISTERS + 8 * 14(%rbx)
	popfq
	/* From here on no instruction that changes flags. */
	movq	PRB_STUB_REGISTERS + 8 * 15(%rbx), %rsp
	movl	$1, PRB_STUB_LEFT(%rbx)
	movl	$SYS_RT_SIGPROCMASK, %eax
	movl	$2, %edi
	movq	PRB_STUB_MASK_PLACE(%rbx), %rsi
	movl	$0, %edx
	movl	$8, %r10d
	syscall
	movq	PRB_STUB_REGISTERS + 8 * 0(%rbx), %r15
	movq	PRB_STUB_REGISTERS + 8 * 1(%rbx), %r14
	movq	PRB_STUB_REGISTERS + 8 * 2(%rbx), %r13
	movq	PRB_STUB_REGISTERS + 8 * 3(%rbx), %r12
	movq	PRB_STUB_REGISTERS + 8 * 4(%rbx), %rbp
	movq	PRB_STUB_REGISTERS + 8 * 6(%rbx), %r10
	movq	PRB_STUB_REGISTERS + 8 * 7(%rbx), %r9
	movq	PRB_STUB_REGISTERS + 8 * 8(%rbx), %r8
	movq	PRB_STUB_REGISTERS + 8 * 9(%rbx), %rdx
	movq	PRB_STUB_REGISTERS + 8 * 10(%rbx), %rsi
	movq	PRB_STUB_REGISTERS + 8 * 11(%rbx), %rdi
	movq	PRB_STUB_REGISTERS + 8 * 12(%rbx), %rax
	movq	PRB_STUB_REGISTERS + 8 * 13(%rbx), %r11
	movq	PRB_STUB_REGISTERS + 8 * 5(%rbx), %rbx
	notrack jmp *%r11

	/* It ran: the kernel puts every register back, and the mask. */
by_frame:
	movl	$1, PRB_STUB_LEFT(%rbx)
	movq	%rax, %rsp
	movl	$SYS_RT_SIGRETURN, %eax
	syscall

made:
	endbr64
	pushq	%rbx
	pushq	%r12
	subq	$8, %rsp
	movq	%rdi, %rbx
	movl	$PRB_STUB_BEGAN, PRB_STUB_PROGRESS(%rbx)
	/* All of it could be written and run so far; from now on each only what it has to. */
	movl	$SYS_MPROTECT, %eax
	leaq	-PRB_STUB_APART_X86_64(%rbx), %rdi
	movl	$PRB_STUB_APART_X86_64, %esi
	movl	$5, %edx			/* PROT_READ | PROT_EXEC */
	syscall
	movl	$SYS_MPROTECT, %eax
	movq	%rbx, %rdi
	movq	PRB_STUB_SCRATCH_LEN(%rbx), %rsi
	addq	$PRB_STUB_APART_X86_64, %rsi
	movl	$3, %edx			/* PROT_READ | PROT_WRITE */
	syscall
	movl	$SYS_PRCTL, %eax
	movl	$15, %edi			/* PR_SET_NAME */
	leaq	PRB_STUB_THREAD_NAME(%rbx), %rsi
	syscall
	call	*PRB_STUB_PTHREAD_SELF(%rbx)
	movq	%rax, %rdi
	call	*PRB_STUB_PTHREAD_DETACH(%rbx)
	movq	PRB_STUB_ENTRY(%rbx), %r12
	testq	%r12, %r12
	jnz	start
	testl	$PRB_STUB_FETCH, PRB_STUB_FLAGS(%rbx)
	jz	open

	movl	$SYS_MEMFD_CREATE, %eax
	leaq	PRB_STUB_MEMFD_NAME(%rbx), %rdi
	movl	$0x13, %esi			/* MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC */
	syscall
	cmpl	$-22, %eax			/* EINVAL: no MFD_EXEC before Linux 6.3 */
	jne	1f
	movl	$SYS_MEMFD_CREATE, %eax
	movl	$0x3, %esi
	syscall
1:	movl	%eax, PRB_STUB_DESCRIPTOR(%rbx)
	movl	$PRB_STUB_WAITS, PRB_STUB_PROGRESS(%rbx)
2:	cmpl	$0, PRB_STUB_GO(%rbx)
	jne	6f
	movl	$SYS_NANOSLEEP, %eax
	leaq	PRB_STUB_NAP(%rbx), %rdi
	xorl	%esi, %esi
	syscall
	decl	PRB_STUB_PATIENCE(%rbx)
	jnz	2b
	movl	$PRB_STUB_TIMED_OUT, %r12d
	jmp	end

6:	movl	$PRB_STUB_OPENS, PRB_STUB_PROGRESS(%rbx)
open:
	leaq	PRB_STUB_PATH(%rbx), %rdi
	movl	PRB_STUB_OPEN_MODE(%rbx), %esi
	call	*PRB_STUB_DLOPEN(%rbx)
	movl	$PRB_STUB_NOT_OPENED, %r12d
	testq	%rax, %rax
	jz	failed
	testl	$PRB_STUB_START, PRB_STUB_FLAGS(%rbx)
	jz	done
	movq	%rax, %rdi
	leaq	PRB_STUB_SYMBOL(%rbx), %rsi
	call	*PRB_STUB_DLSYM(%rbx)
	movl	$PRB_STUB_NO_SYMBOL, %r12d
	testq	%rax, %rax
	jz	failed
	movq	%rax, %r12
start:
	leaq	PRB_STUB_CALL(%rbx), %rdi
	call	*%r12
	movl	%eax, PRB_STUB_RESULT(%rbx)
done:
	movl	$PRB_STUB_DONE, %r12d

end:
	movl	PRB_STUB_DESCRIPTOR(%rbx), %edi
	testl	%edi, %edi
	js	3f
	movl	$SYS_CLOSE, %eax
	syscall
3:	movl	%r12d, PRB_STUB_PROGRESS(%rbx)

	/* Until the tracer has read it.  Its word that it has must find the page: without it we keep that. */
	movl	$PRB_STUB_PATIENCE_NAPS, PRB_STUB_PATIENCE(%rbx)
4:	cmpl	$PRB_STUB_OVER, PRB_STUB_GO(%rbx)
	je	over
	movl	$SYS_NANOSLEEP, %eax
	leaq	PRB_STUB_NAP(%rbx), %rdi
	xorl	%esi, %esi
	syscall
	decl	PRB_STUB_PATIENCE(%rbx)
	jnz	4b
	cmpl	$0, PRB_STUB_LEFT(%rbx)
	je	7f
	movl	$SYS_MUNMAP, %eax
	movq	PRB_STUB_SCRATCH(%rbx), %rdi
	movq	PRB_STUB_SCRATCH_LEN(%rbx), %rsi
	syscall
7:	xorl	%eax, %eax
	addq	$8, %rsp
	popq	%r12
	popq	%rbx
	ret

	/* The C library's function unmaps this code, too, and returns to where this would. */
over:
	leaq	-PRB_STUB_APART_X86_64(%rbx), %rdi
	movq	PRB_STUB_SCRATCH_LEN(%rbx), %rsi
	addq	$2 * PRB_STUB_APART_X86_64, %rsi
	movq	PRB_STUB_MUNMAP(%rbx), %rax
	addq	$8, %rsp
	popq	%r12
	popq	%rbx
	jmp	*%rax

failed:
	movq	PRB_STUB_DLERROR(%rbx), %rax
	testq	%rax, %rax
	jz	end
	call	*%rax
	testq	%rax, %rax
	jz	end
	leaq	PRB_STUB_TEXT(%rbx), %rdi
	movl	$PRB_STUB_TEXT_MAX - 1, %ecx
5:	movb	(%rax), %dl
	movb	%dl, (%rdi)
	incq	%rax
	incq	%rdi
	testb	%dl, %dl
	jz	end
	decl	%ecx
	jnz	5b
	jmp	end
