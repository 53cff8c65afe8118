# Loading a library into another process.
# The stubs' bytes are made by stub/mk-stubs.sh, by hand, as the sources change.
libprb_la_SOURCES += %D%/arch.c %D%/arch.h %D%/arch_x86_64.c %D%/arch_aarch64.c
libprb_la_SOURCES += %D%/steps.h %D%/inject.c %D%/preflight.c %D%/seccomp.c %D%/seccomp_filter.c %D%/addresses.c %D%/choose.c %D%/clean_stack.c %D%/borrow.c %D%/deliver.c %D%/carry.c %D%/remote_exec.c
libprb_la_SOURCES += %D%/stub.h %D%/stub/x86_64.h %D%/stub/aarch64.h
EXTRA_DIST += %D%/stub/mk-stubs.sh %D%/stub/x86_64.S %D%/stub/aarch64.S
