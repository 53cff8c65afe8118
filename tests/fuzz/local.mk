# One program for each format that a stranger can write.  `make check` replays tests/fuzz/corpus/NAME; with
# --enable-fuzz (clang) the program is libFuzzer's: tests/fuzz/NAME tests/fuzz/corpus/NAME.
# To add one: NAME.c with LLVMFuzzerTestOneInput(), its name here, a few small files in corpus/NAME.
FUZZ_TARGETS = %D%/object %D%/sql
FUZZ_TARGETS += %D%/stack
FUZZ_TARGETS += %D%/debug_offsets
FUZZ_TARGETS += %D%/maps %D%/elf %D%/core
FUZZ_TARGETS += %D%/ring %D%/message
FUZZ_TARGETS += %D%/dap_wire
FUZZ_TARGETS += %D%/kept
FUZZ_TARGETS += %D%/chunk
FUZZ_TARGETS += %D%/torch_spec
FUZZ_TARGETS += %D%/ras
FUZZ_TARGETS += %D%/fleet_reply %D%/fleet_request
tests_fuzz_object_SOURCES = %D%/object.c %D%/damage.h $(FUZZ_MAIN)
tests_fuzz_sql_SOURCES = %D%/sql.c $(FUZZ_MAIN)
tests_fuzz_stack_SOURCES = %D%/stack.c %D%/damage.h $(FUZZ_MAIN)
tests_fuzz_debug_offsets_SOURCES = %D%/debug_offsets.c $(FUZZ_MAIN)
tests_fuzz_maps_SOURCES = %D%/maps.c $(FUZZ_MAIN)
tests_fuzz_elf_SOURCES = %D%/elf.c $(FUZZ_MAIN)
tests_fuzz_ring_SOURCES = %D%/ring.c $(FUZZ_MAIN)
tests_fuzz_message_SOURCES = %D%/message.c $(FUZZ_MAIN)
tests_fuzz_dap_wire_SOURCES = %D%/dap_wire.c $(FUZZ_MAIN)
tests_fuzz_kept_SOURCES = %D%/kept.c $(FUZZ_MAIN)
tests_fuzz_chunk_SOURCES = %D%/chunk.c $(FUZZ_MAIN)
tests_fuzz_core_SOURCES = %D%/core.c $(FUZZ_MAIN)
tests_fuzz_ras_SOURCES = %D%/ras.c $(FUZZ_MAIN)
tests_fuzz_torch_spec_SOURCES = %D%/torch_spec.c $(FUZZ_MAIN)
tests_fuzz_fleet_reply_SOURCES = %D%/fleet_reply.c $(FUZZ_MAIN)
tests_fuzz_fleet_request_SOURCES = %D%/fleet_request.c $(FUZZ_MAIN)
if FUZZ
AM_CFLAGS += -fsanitize=fuzzer-no-link
FUZZ_MAIN =
FUZZ_LINK = -fsanitize=fuzzer
else
FUZZ_MAIN = %D%/standalone.c
FUZZ_LINK =
TESTS += $(FUZZ_TARGETS)
endif
tests_fuzz_object_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_sql_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_stack_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_debug_offsets_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_maps_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_elf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_ring_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_message_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_dap_wire_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_dap_wire_LDADD = libprb.la $(JANSSON_LIBS)
tests_fuzz_kept_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_chunk_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_core_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
check_PROGRAMS += $(FUZZ_TARGETS)
EXTRA_DIST += %D%/standalone.c %D%/corpus
tests_fuzz_ras_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_ras_LDADD = libprb.la $(JANSSON_LIBS)
tests_fuzz_torch_spec_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_fleet_reply_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_fleet_reply_LDADD = libprb.la $(JANSSON_LIBS) -lm
tests_fuzz_fleet_request_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_fuzz_fleet_request_LDADD = libprb.la $(JANSSON_LIBS) -lm
