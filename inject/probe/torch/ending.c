/* What ends a step: see ending.h. */
#include "inject/probe/torch/ending.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "inject/probe/settings.h"
#include "inject/probe/torch/torch.h"

#define KEY "probing.torch.step"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prb_torch_ending now = {.number = -1};
static char text_now[PRB_SETTING_TEXT_MAX] = "auto";
static bool found, missing; /* by the plan that is told; by the last one */
static atomic_int kind;
static _Atomic uintptr_t object_now; /* of the name; 0: not told */
static atomic_uint label_now;        /* of the name, as a class or a label */

/* False: what it says is bad, and what held still holds. */
static bool read_setting(char text[PRB_SETTING_TEXT_MAX], struct prb_torch_ending *out)
{
    text[0] = '\0';
    prb_settings_get(KEY, text, PRB_SETTING_TEXT_MAX);
    return !prb_settings_refused(KEY) && prb_torch_ending_parse(text, out, NULL);
}

void prb_torch_ending_function(char out[PRB_TORCH_ENDING_MAX])
{
    char text[PRB_SETTING_TEXT_MAX];
    struct prb_torch_ending ending;
    memset(out, 0, PRB_TORCH_ENDING_MAX);
    if (read_setting(text, &ending) && ending.kind == PRB_TORCH_ENDS_FUNCTION)
        memcpy(out, ending.name, sizeof ending.name);
}

void prb_torch_ending_configure(void)
{
    char text[PRB_SETTING_TEXT_MAX];
    struct prb_torch_ending ending;
    if (!read_setting(text, &ending))
        return;
    pthread_mutex_lock(&lock);
    bool same = strcmp(text, text_now) == 0;
    if (!same) {
        memcpy(text_now, text, sizeof text_now);
        now = ending;
        found = missing = false;
        object_now = 0;
        label_now = 0;
        atomic_store(&kind, (int)ending.kind);
    }
    pthread_mutex_unlock(&lock);
    if (same)
        return;
    if (ending.kind == PRB_TORCH_ENDS_MODULE || ending.kind == PRB_TORCH_ENDS_LABEL)
        label_now = prb_torch_label(ending.name, strlen(ending.name));
    prb_torch_steps_anew();
}

enum prb_torch_ending_kind prb_torch_ending_kind(void)
{
    return (enum prb_torch_ending_kind)atomic_load_explicit(&kind, memory_order_relaxed);
}

static bool is_now(uintptr_t object)
{
    return object && object == atomic_load_explicit(&object_now, memory_order_relaxed);
}

/* Until it was told which, each one of the class. */
bool prb_torch_ends_optimizer(uintptr_t object, unsigned label)
{
    char class_name[PRB_TORCH_LABEL_MAX + 1];
    if (prb_torch_ending_kind() != PRB_TORCH_ENDS_OPTIMIZER)
        return false;
    if (object && object_now)
        return is_now(object);
    prb_torch_label_class(label, class_name);
    pthread_mutex_lock(&lock);
    bool is = strcmp(class_name, now.name) == 0;
    pthread_mutex_unlock(&lock);
    return is;
}

bool prb_torch_ends_module(uintptr_t object, unsigned class_label)
{
    return prb_torch_ending_kind() == PRB_TORCH_ENDS_MODULE &&
           (is_now(object) ||
            class_label == atomic_load_explicit(&label_now, memory_order_relaxed));
}

bool prb_torch_ends_label(unsigned label)
{
    return label && prb_torch_ending_kind() == PRB_TORCH_ENDS_LABEL &&
           label == atomic_load_explicit(&label_now, memory_order_relaxed);
}

/* ---- what is told ---- */

static void take(uintptr_t object)
{
    if (!found) /* of several the first one */
        object_now = object;
    found = true;
}

void prb_torch_ending_module(uintptr_t object, const char *name)
{
    pthread_mutex_lock(&lock);
    if (now.kind == PRB_TORCH_ENDS_MODULE && strcmp(name, now.name) == 0)
        take(object);
    pthread_mutex_unlock(&lock);
}

void prb_torch_ending_optimizer(uintptr_t object, const char *class_name, int64_t number)
{
    pthread_mutex_lock(&lock);
    if (now.kind == PRB_TORCH_ENDS_OPTIMIZER && strcmp(class_name, now.name) == 0 &&
        (now.number < 0 || now.number == number))
        take(object);
    pthread_mutex_unlock(&lock);
}

void prb_torch_ending_told(void)
{
    pthread_mutex_lock(&lock);
    missing = !found && (now.kind == PRB_TORCH_ENDS_OPTIMIZER || now.kind == PRB_TORCH_ENDS_MODULE);
    found = false;
    pthread_mutex_unlock(&lock);
}

void prb_torch_ending_missing(char *out, size_t size)
{
    pthread_mutex_lock(&lock);
    out[0] = '\0';
    if (missing && now.kind == PRB_TORCH_ENDS_OPTIMIZER)
        snprintf(out, size, "%s: there is no optimizer of that name (yet): no step ends", KEY);
    else if (missing)
        snprintf(out, size, "%s: no module has that name: calls of a class of that name end a step",
                 KEY);
    pthread_mutex_unlock(&lock);
}

void prb_torch_ending_forked(void) { lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }
