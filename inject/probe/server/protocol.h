/*
 * The control protocol, version 1: what goes over the probe's Unix socket.  Included by both sides;
 * libc only.
 *
 * A message is a head and a body of fields, little endian.  A client begins with HELLO; the probe
 * answers each request with any number of parts and exactly one END or FAILED of the same request
 * number.  Unknown fields are skipped, unknown requests FAILED with UNSUPPORTED, a malformed
 * message ends the connection.
 */
#ifndef PRB_PROBE_SERVER_PROTOCOL_H
#define PRB_PROBE_SERVER_PROTOCOL_H

#include <stdint.h>

#define PRB_PROTOCOL_VERSION 1
#define PRB_MESSAGE_MAX (8u << 20) /* bytes of a body */
#define PRB_CLIENTS_MAX 32
#define PRB_REQUESTS_MAX 16 /* open ones of a client */

struct prb_message_head {
    uint32_t length;  /* of the body */
    uint32_t request; /* the client's number, not 0 */
    uint16_t type;
    uint16_t zero;
};

/* name, number: requests below 64, answers from 64 on */
#define PRB_MESSAGES(M)                                                                              \
    M(HELLO, 1)                                                                                      \
    M(STATUS, 2)                                                                                     \
    M(EVAL, 3)                                                                                       \
    M(COMPLETE, 4)                                                                                   \
    M(CANCEL, 5) /* field REQUEST */                                                                 \
    M(CONFIG_LIST, 6)                                                                                \
    M(CONFIG_GET, 7)                                                                                 \
    M(CONFIG_SET, 8)                                                                                 \
    M(DETACH, 9)                                                                                     \
    M(DEBUG, 10)      /* stays open; an empty item: it began; then events */                         \
    M(DEBUG_CALL, 11) /* KEY the method, VALUE its arguments, THREAD; END has TEXT */                \
    M(TORCH,                                                                                         \
      12) /* VALUE: lines (torch/request.c), or none; END has TEXT: its state, and COUNT of steps */ \
    M(RECORDER, 20) /* OUTPUT: PyTorch's Flight Recorders, as JSON or PICKLE; STREAM: which */       \
    M(PART, 64)     /* OUTPUT with STREAM, or ITEM */                                                \
    M(END, 65)                                                                                       \
    M(FAILED, 66) /* CODE (enum prb_code), TEXT, REMEDY */

enum prb_message_type {
#define M(name, number) PRB_MSG_##name = number,
    PRB_MESSAGES(M)
#undef M
};

/* A field of a body: this head, then len bytes, no padding.  Numbers are 8 bytes. */
struct prb_field_head {
    uint16_t key;
    uint16_t zero;
    uint32_t len;
};

/* name, number, NUMBER (8 bytes) or BYTES */
#define PRB_MESSAGE_FIELDS(F)                                                                      \
    F(VERSION, 1, NUMBER)                                                                          \
    F(TEXT, 2, BYTES) /* FAILED: what happened; END of EVAL: the value or traceback */             \
    F(REMEDY, 3, BYTES)                                                                            \
    F(CODE, 4, NUMBER) /* enum prb_code */                                                         \
    F(REQUEST, 5, NUMBER)                                                                          \
    F(STREAM, 6, NUMBER) /* 1: stdout, 2: stderr */                                                \
    F(OUTPUT, 7, BYTES)                                                                            \
    F(ITEM, 8, BYTES)                                                                              \
    F(SOURCE, 9, BYTES)                                                                            \
    F(NAMESPACE, 10, BYTES)                                                                        \
    F(THREAD, 11, NUMBER)                                                                          \
    F(FRAME, 12, NUMBER)                                                                           \
    F(MODE, 13, NUMBER) /* enum prb_eval_mode */                                                   \
    F(GIL_TIMEOUT_MS, 14, NUMBER)                                                                  \
    F(TIMEOUT_MS, 15, NUMBER)                                                                      \
    F(CURSOR, 16, NUMBER)                                                                          \
    F(KEY, 17, BYTES)                                                                              \
    F(VALUE, 18, BYTES)                                                                            \
    F(RAISED, 19, NUMBER)                                                                          \
    F(INCOMPLETE, 20, NUMBER)                                                                      \
    F(NONE, 21, NUMBER)                                                                            \
    F(MICROSECONDS, 22, NUMBER)                                                                    \
    F(PID, 23, NUMBER)     /* as the target sees it */                                             \
    F(STARTED, 24, NUMBER) /* µs since the epoch */                                                \
    F(COUNT, 25, NUMBER)   /* of clients */                                                        \
    F(PATH, 26, BYTES)                                                                             \
    F(EVALUATIONS, 27, NUMBER) /* that run now */                                                  \
    F(BYTECODE, 28, BYTES)     /* of DEBUG: bytecode_form.h; without it the probe compiles */      \
    F(FUNCTION, 29, BYTES)     /* of the frame, instead of its number */                           \
    F(PICKLE, 30, NUMBER) /* of RECORDER: it may be one, which PyTorch writes in half the time */

enum prb_message_field {
#define F(name, number, kind) PRB_FLD_##name = number,
    PRB_MESSAGE_FIELDS(F)
#undef F
};

#endif
