/*
 * A note in the ELF file for a library that is opened by name while we run, so that packagers' tools
 * see it: section .note.dlopen, owner "FDO", JSON, as the specification "ELF dlopen metadata" of the
 * UAPI Group has it.
 */
#ifndef PRB_BASE_DLOPEN_NOTE_H
#define PRB_BASE_DLOPEN_NOTE_H

#include <stdint.h>

#define PRB_DLOPEN_NOTE_TYPE 0x407c0c0a
/* id: a name in C, also the feature's; priority: "recommended" (a command needs it) or "suggested". */
#define PRB_DLOPEN_NOTE(id, soname, priority, description)                                         \
    PRB_DLOPEN_NOTE_OF(id, "[{\"feature\":\"" #id "\",\"description\":\"" description              \
                           "\",\"priority\":\"" priority "\",\"soname\":[\"" soname "\"]}]")
#define PRB_DLOPEN_NOTE_OF(id, content)                                                            \
    static const struct {                                                                          \
        uint32_t owner_len, text_len, type;                                                        \
        char owner[4], text[sizeof(content)];                                                      \
    } prb_dlopen_note_##id                                                                         \
        __attribute__((used, section(".note.dlopen"), aligned(sizeof(uint32_t)))) = {              \
            sizeof "FDO", sizeof(content), PRB_DLOPEN_NOTE_TYPE, "FDO", content}

#endif
