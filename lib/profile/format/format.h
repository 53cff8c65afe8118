/*
 * A format is one file in lib/profile/format: a constant descriptor and the function that writes
 * a profile.
 *
 * To add one:
 *   1. format/NAME.c with `const struct prb_format prb_format_NAME`.
 *   2. The file in PROFILE_FORMATS (lib/profile/local.mk), at its place in the help.
 *   3. A reader of it in tests/sample/test_formats.py.
 */
#ifndef PRB_PROFILE_FORMAT_H
#define PRB_PROFILE_FORMAT_H

#include <stdio.h>

#include "profile/profile.h"

struct prb_format {
    struct prb_profile_format description; /* first */
    /* Write to out, whose errors the caller checks; or, for those that need a file of their
     * own, to path. */
    bool (*write)(const struct prb_profile *profile, const struct prb_profile_style *style,
                  FILE *out, struct prb_error *err);
    bool (*write_file)(const struct prb_profile *profile, const struct prb_profile_style *style,
                       const char *path, struct prb_error *err);
};

#define FORMAT(name) extern const struct prb_format prb_format_##name;
#include "profile/format/formats.inc"
#undef FORMAT

/* ---- label.c ---- */

/* "function (file.py:12)", as the style has it. */
void prb_label_frame(struct prb_buf *out, const struct prb_profile *profile, uint32_t frame,
                     const struct prb_profile_style *style);
/* A label as it is in a folded stack, between ";": without that and control characters. */
void prb_label_folded(struct prb_buf *out, const char *label);
/* "MainThread", "MainThread (1234)"; "process 12 (rank 0): python train.py". */
void prb_label_thread(struct prb_buf *out, const struct prb_profile_thread *thread);
void prb_label_process(struct prb_buf *out, const struct prb_profile_process *process,
                       const struct prb_profile_style *style);
/* The file that a style shows for a function; never NULL. */
const char *prb_label_file(const struct prb_profile_function *function,
                           const struct prb_profile_style *style);
/* What was sampled, and with what quality, in one line: "100 Hz for 5.0 s: 500 samples, 4,500 of
 * threads; 0 dropped; ..." */
void prb_label_counts(struct prb_buf *out, const struct prb_profile *profile);
/* The title: style's, or the command and the time. */
void prb_label_title(struct prb_buf *out, const struct prb_profile *profile,
                     const struct prb_profile_style *style);
/* Whether its weights are blocks and bytes. */
bool prb_profile_is_of_memory(const struct prb_profile *profile);
/* "samples", in mode CPU "nanoseconds", of memory "bytes"; and that of a weight. */
const char *prb_value_unit(const struct prb_profile *profile);
uint64_t prb_value_of(const struct prb_profile *profile, const struct prb_profile_weight *weight);

/* ---- flame.c: the tree of a flame graph ---- */

struct prb_flame_node {
    uint32_t parent, label; /* 0: the root, which has no label */
    uint64_t self, total;
};
struct prb_flame_weight {
    uint32_t thread, node;
    uint64_t value;
};
struct prb_flame {
    const char **labels;
    struct prb_flame_node *nodes; /* a parent comes before its children */
    struct prb_flame_weight *weights;
    size_t label_count, label_cap, node_count, node_cap, weight_count, weight_cap;
    struct prb_arena arena;
    struct prb_index label_index, node_index;
    bool failed;
};
void prb_flame_deinit(struct prb_flame *flame);
PRB_DEFINE_AUTO(prb_flame, struct prb_flame, prb_flame_deinit)
bool prb_flame_build(struct prb_flame *flame, const struct prb_profile *profile,
                     const struct prb_profile_style *style, struct prb_error *err);
/* To make one step by step: labels from 0, children from 1. */
uint32_t prb_flame_label(struct prb_flame *flame, const char *text);
uint32_t prb_flame_child(struct prb_flame *flame, uint32_t parent, uint32_t label);
/* Fill total from self. */
void prb_flame_sum(struct prb_flame *flame);

/* A JSON string to a file; and text within XML. */
void prb_put_json(FILE *out, const char *text);
void prb_put_xml(FILE *out, const char *text);

#endif
