/*
 * What is recorded of PyTorch, as a text: probing.torch.profiling (PROBING_TORCH_PROFILING).
 *
 *   on | off | [mode:]rate[:layer_rate]     first, may be missing
 *   KEY=VALUE,...                           keys as below; a later one wins
 *   NAME@FUNCTION                           one more of exprs
 *
 * tracepy and sync are upstream's keys: what turns them off is taken, on is refused with the
 * reason.
 *
 * "on,exprs=loss@train,acc1@train" watches two variables.  Anything but "off", "0", enabled=off and
 * an empty text turns it on.  Pure: the tool checks a text before there is a probe.
 */
#ifndef PRB_PROBE_TORCH_SPEC_H
#define PRB_PROBE_TORCH_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PRB_TORCH_EXPRS_MAX 1024 /* bytes of a list of watched variables */
#define PRB_TORCH_DEPTH_MAX 100
#define PRB_TORCH_SHADOW_MAX 1000

enum prb_torch_choice { PRB_TORCH_AUTO, PRB_TORCH_OFF, PRB_TORCH_ON };

struct prb_torch_spec {
    bool enabled;
    bool random;       /* mode: which steps are chosen; else every Nth */
    double rate;       /* the part of the steps that has module rows; -1: the budget decides */
    double layer_rate; /* the part of the modules; 1 when not given */
    bool backward, trace_spans;
    char exprs[PRB_TORCH_EXPRS_MAX]; /* "loss@train,acc1@train", as lib/training/watched.h reads */
    int shadow_normal, shadow_steps; /* shadow=N:M; 0: off */
    enum prb_torch_choice adaptive;  /* AUTO: as the setting says */
    enum prb_torch_choice gpu;       /* OFF: no times of the device */
    int depth;                       /* modules deeper than that have no rows; 0: all have */
};

/* USAGE: names the key, and says what its value must be. */
bool prb_torch_spec_parse(const char *text, struct prb_torch_spec *out, struct prb_error *err);
/* The text of both settings, probing.torch.profiling and probing.torch.exprs, as one; exprs alone
 * turn it on. */
bool prb_torch_spec_both(const char *profiling, const char *exprs, struct prb_torch_spec *out,
                         struct prb_error *err);

/* Each alone, as a setting checks its value. */
bool prb_torch_spec_check(const char *text, struct prb_error *err);
bool prb_torch_exprs_check(const char *text, struct prb_error *err);

#endif
