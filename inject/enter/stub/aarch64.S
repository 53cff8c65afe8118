/*
 * The stub for AArch64.  The borrowed thread comes to `borrowed`, on a stack of ours, and leaves by
 * rt_sigreturn, which puts every register back: a system call instruction leaves all of them but x0,
 * so there is none to spare.  The thread that it makes begins at `made`.  Both begin with a landing
 * pad for indirect branches (BTI).  System call numbers: include/uapi/asm-generic/unistd.h.
 */
#include "../stub.h"

#define SYS_CLOSE 57
#define SYS_NANOSLEEP 101
#define SYS_RT_SIGPROCMASK 135
#define SYS_RT_SIGRETURN 139
#define SYS_PRCTL 167
#define SYS_MUNMAP 215
#define SYS_MEMFD_CREATE 279

	.text
borrowed:
	hint	#38				/* bti jc */
	adr	x19, borrowed + PRB_STUB_APART_AARCH64
	mov	x0, #2				/* SIG_SETMASK */
	add	x1, x19, #PRB_STUB_BLOCK_MASK
	ldr	x2, [x19, #PRB_STUB_MASK_PLACE]
	mov	x3, #8
	mov	x8, #SYS_RT_SIGPROCMASK
	svc	#0
	mov	w9, #PRB_STUB_CALLING
	str	w9, [x19, #PRB_STUB_STEP]
	add	x0, x19, #PRB_STUB_THREAD
	mov	x1, #0
	adr	x2, made
	mov	x3, x19
	ldr	x9, [x19, #PRB_STUB_PTHREAD_CREATE]
	blr	x9
	str	w0, [x19, #PRB_STUB_CREATED]
	mrs	x9, cntvct_el0
	str	x9, [x19, #PRB_STUB_CLOCK]
	mov	w9, #PRB_STUB_RETURNED
	str	w9, [x19, #PRB_STUB_STEP]
	mov	w9, #1
	str	w9, [x19, #PRB_STUB_LEFT]
	ldr	x9, [x19, #PRB_STUB_FRAME]
	mov	sp, x9
	mov	x8, #SYS_RT_SIGRETURN
	svc	#0

made:
	hint	#34				/* bti c */
	stp	x29, x30, [sp, #-32]!
	stp	x19, x20, [sp, #16]
	mov	x29, sp
	mov	x19, x0
	mov	w9, #PRB_STUB_BEGAN
	str	w9, [x19, #PRB_STUB_PROGRESS]
	mov	x0, #15				/* PR_SET_NAME */
	add	x1, x19, #PRB_STUB_THREAD_NAME
	mov	x8, #SYS_PRCTL
	svc	#0
	ldr	x9, [x19, #PRB_STUB_PTHREAD_SELF]
	blr	x9
	ldr	x9, [x19, #PRB_STUB_PTHREAD_DETACH]
	blr	x9
	ldr	x20, [x19, #PRB_STUB_ENTRY]
	cbnz	x20, start
	ldr	w9, [x19, #PRB_STUB_FLAGS]
	tbz	w9, #0, open			/* PRB_STUB_FETCH */

	add	x0, x19, #PRB_STUB_MEMFD_NAME
	mov	x1, #0x13			/* MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC */
	mov	x8, #SYS_MEMFD_CREATE
	svc	#0
	cmn	x0, #22				/* EINVAL: no MFD_EXEC before Linux 6.3 */
	b.ne	1f
	add	x0, x19, #PRB_STUB_MEMFD_NAME
	mov	x1, #0x3
	svc	#0
1:	str	w0, [x19, #PRB_STUB_DESCRIPTOR]
	mov	w9, #PRB_STUB_WAITS
	add	x10, x19, #PRB_STUB_PROGRESS
	stlr	w9, [x10]
2:	add	x10, x19, #PRB_STUB_GO
	ldar	w9, [x10]
	cbnz	w9, 6f
	add	x0, x19, #PRB_STUB_NAP
	mov	x1, #0
	mov	x8, #SYS_NANOSLEEP
	svc	#0
	ldr	w9, [x19, #PRB_STUB_PATIENCE]
	subs	w9, w9, #1
	str	w9, [x19, #PRB_STUB_PATIENCE]
	b.ne	2b
	mov	w20, #PRB_STUB_TIMED_OUT
	b	end

6:	mov	w9, #PRB_STUB_OPENS
	str	w9, [x19, #PRB_STUB_PROGRESS]
open:
	add	x0, x19, #PRB_STUB_PATH
	ldr	w1, [x19, #PRB_STUB_OPEN_MODE]
	ldr	x9, [x19, #PRB_STUB_DLOPEN]
	blr	x9
	mov	w20, #PRB_STUB_NOT_OPENED
	cbz	x0, failed
	ldr	w9, [x19, #PRB_STUB_FLAGS]
	tbz	w9, #1, done			/* PRB_STUB_START */
	add	x1, x19, #PRB_STUB_SYMBOL
	ldr	x9, [x19, #PRB_STUB_DLSYM]
	blr	x9
	mov	w20, #PRB_STUB_NO_SYMBOL
	cbz	x0, failed
	mov	x20, x0
start:
	add	x0, x19, #PRB_STUB_CALL
	blr	x20
	str	w0, [x19, #PRB_STUB_RESULT]
done:
	mov	w20, #PRB_STUB_DONE

end:
	ldr	w0, [x19, #PRB_STUB_DESCRIPTOR]
	tbnz	w0, #31, 3f
	mov	x8, #SYS_CLOSE
	svc	#0
3:	add	x10, x19, #PRB_STUB_PROGRESS
	stlr	w20, [x10]

	/* Until the tracer has read it.  Its word that it has must find the page: without it we keep that. */
	mov	w9, #PRB_STUB_PATIENCE_NAPS & 0xffff
	movk	w9, #PRB_STUB_PATIENCE_NAPS >> 16, lsl #16
	str	w9, [x19, #PRB_STUB_PATIENCE]
4:	add	x10, x19, #PRB_STUB_GO
	ldar	w9, [x10]
	cmp	w9, #PRB_STUB_OVER
	b.eq	over
	add	x0, x19, #PRB_STUB_NAP
	mov	x1, #0
	mov	x8, #SYS_NANOSLEEP
	svc	#0
	ldr	w9, [x19, #PRB_STUB_PATIENCE]
	subs	w9, w9, #1
	str	w9, [x19, #PRB_STUB_PATIENCE]
	b.ne	4b
	ldr	w9, [x19, #PRB_STUB_LEFT]
	cbz	w9, 7f
	ldr	x0, [x19, #PRB_STUB_SCRATCH]
	ldr	x1, [x19, #PRB_STUB_SCRATCH_LEN]
	mov	x8, #SYS_MUNMAP
	svc	#0
7:	mov	x0, #0
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #32
	ret

	/* The C library's function unmaps this code, too, and returns to where this would. */
over:
	sub	x0, x19, #PRB_STUB_APART_AARCH64
	ldr	x1, [x19, #PRB_STUB_SCRATCH_LEN]
	add	x1, x1, #2 * PRB_STUB_APART_AARCH64
	ldr	x16, [x19, #PRB_STUB_MUNMAP]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #32
	br	x16

failed:
	ldr	x9, [x19, #PRB_STUB_DLERROR]
	cbz	x9, end
	blr	x9
	cbz	x0, end
	add	x1, x19, #PRB_STUB_TEXT
	mov	w2, #PRB_STUB_TEXT_MAX - 1
5:	ldrb	w9, [x0], #1
	strb	w9, [x1], #1
	cbz	w9, end
	subs	w2, w2, #1
	b.ne	5b
	b	end
