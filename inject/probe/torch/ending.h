/*
 * What ends a step, as the setting probing.torch.step says:
 *
 *   auto                 the anchor's update; without an optimizer, the call of a root
 *   optimizer:NAME       the update that holds it: a class, "AdamW", or one of it, "AdamW#1"
 *   module:NAME          a call of it: a name as in torch.modules, or a class
 *   label:TEXT           the end of that record_function
 *   data                 a batch is asked for
 *   [MODULE:]FUNCTION    its return, as for watched variables
 */
#ifndef PRB_PROBE_TORCH_ENDING_H
#define PRB_PROBE_TORCH_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum prb_torch_ending_kind {
    PRB_TORCH_ENDS_AUTO,
    PRB_TORCH_ENDS_OPTIMIZER,
    PRB_TORCH_ENDS_MODULE,
    PRB_TORCH_ENDS_LABEL,
    PRB_TORCH_ENDS_DATA,
    PRB_TORCH_ENDS_FUNCTION,
};

#define PRB_TORCH_ENDING_MAX 128
struct prb_torch_ending {
    enum prb_torch_ending_kind kind;
    int number; /* of an optimizer of its class; -1: the first */
    char name[PRB_TORCH_ENDING_MAX];
};

/* USAGE: what it must be.  Pure. */
bool prb_torch_ending_parse(const char *text, struct prb_torch_ending *out, struct prb_error *err);
bool prb_torch_ending_check(const char *text, struct prb_error *err);

/* The function of the setting as it is now; "": it names none. */
void prb_torch_ending_function(char out[PRB_TORCH_ENDING_MAX]);
/* As the setting says now; the step that runs then has no row. */
void prb_torch_ending_configure(void);
/* Read by hooks without a lock. */
enum prb_torch_ending_kind prb_torch_ending_kind(void);
bool prb_torch_ends_optimizer(uintptr_t object, unsigned label);
bool prb_torch_ends_module(uintptr_t object, unsigned class_label);
bool prb_torch_ends_label(unsigned label);

/* What a tool found; told: the plan is whole. */
void prb_torch_ending_module(uintptr_t object, const char *name);
void prb_torch_ending_optimizer(uintptr_t object, const char *class_name, int64_t number);
void prb_torch_ending_told(void);
/* Into out: "", or what the setting names and the tool did not find. */
void prb_torch_ending_missing(char *out, size_t size);
void prb_torch_ending_forked(void);

#endif
