/*
 * The texts of torch's modules and optimizers, in the debugger's words (modules.py of its agent):
 * "Model (115.2 k parameters, 5 modules, training)", "AdamW lr=0.003 (1 groups, 30 tensors)".
 * Sources: torch/nn/modules/module.py (_parameters, _modules, training), torch/optim/optimizer.py
 * (param_groups) of torch 1.13 to 2.13.
 */
#include <string.h>

#include "repr/writer.h"
#include "tensor/tensor.h"

#define PARAMETERS_MAX 2000 /* that are counted */
#define MODULES_DEPTH_MAX 64
#define RATES_MAX 8
#define RATE_CHARACTERS 40

/* ---- modules ---- */

struct census {
    struct prb_repr *repr;
    prb_addr seen[PARAMETERS_MAX]; /* of parameters, which modules may share */
    size_t count;
    unsigned depth;
    int64_t numbers; /* in them */
    bool cut;
};

static bool was_seen(const struct census *census, prb_addr parameter)
{
    for (size_t i = census->count; i > 0; i--)
        if (census->seen[i - 1] == parameter)
            return true;
    return false;
}

static bool count_parameter(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct census *census = context;
    struct prb_objects *objects = census->repr->objects;
    struct prb_tensor tensor;
    if (prb_object_kind(objects, value, NULL) != PRB_OBJ_TENSOR || was_seen(census, value))
        return true;
    census->cut = census->cut || census->count == PARAMETERS_MAX;
    if (census->cut)
        return false;
    census->seen[census->count++] = value;
    if (prb_torch_read(objects, value, &tensor, NULL))
        census->numbers += tensor.numel;
    return true;
}

static bool count_module(void *context, prb_addr key, prb_addr module);

enum { PARAMETERS, MODULES, TRAINING, MODULE_FIELDS };

static bool pick_fields(struct prb_repr *repr, prb_addr module, prb_addr values[MODULE_FIELDS])
{
    static const char *const names[] = {"_parameters", "_modules", "training", NULL};
    struct prb_object_type *type = prb_type_of(repr->objects, module, NULL);
    memset(values, 0, MODULE_FIELDS * sizeof *values);
    return type && prb_pick_attributes(repr->objects, module, type, names, values);
}

static void count_parameters(struct census *census, const prb_addr values[MODULE_FIELDS])
{
    struct prb_objects *objects = census->repr->objects;
    if (values[PARAMETERS])
        (void)prb_dict_walk(objects, values[PARAMETERS], count_parameter, census, NULL);
    if (values[MODULES] && census->depth < MODULES_DEPTH_MAX && !census->cut) {
        census->depth++;
        (void)prb_dict_walk(objects, values[MODULES], count_module, census, NULL);
        census->depth--;
    }
}

static bool count_module(void *context, prb_addr key, prb_addr module)
{
    (void)key;
    struct census *census = context;
    prb_addr values[MODULE_FIELDS];
    if (pick_fields(census->repr, module, values))
        count_parameters(census, values);
    return !census->cut;
}

static bool count_item(void *context, prb_addr key, prb_addr value)
{
    (void)key, (void)value;
    ++*(size_t *)context;
    return true;
}

static void add_amount(struct prb_repr *repr, int64_t number)
{
    static const struct {
        double size;
        const char *letter;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if ((double)number >= units[i].size) {
            prb_text_addf(&repr->text, "%.1f %s", (double)number / units[i].size, units[i].letter);
            return;
        }
    prb_text_addf(&repr->text, "%lld", (long long)number);
}

void prb_repr_torch_module(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    prb_addr values[MODULE_FIELDS];
    struct prb_int training;
    size_t modules = 0;
    if (!pick_fields(repr, object, values) || !values[PARAMETERS] || !values[MODULES]) {
        prb_repr_short(repr, object, type); /* it is being made */
        return;
    }
    PRB_AUTO_FREE struct census *census = calloc(1, sizeof *census);
    if (!census)
        return;
    census->repr = repr;
    count_parameters(census, values);
    (void)prb_dict_walk(repr->objects, values[MODULES], count_item, &modules, NULL);
    prb_text_add(&repr->text, prb_type_short_name(type));
    prb_text_add(&repr->text, census->cut ? " (more than " : " (");
    add_amount(repr, census->numbers);
    prb_text_add(&repr->text, " parameters");
    if (modules)
        prb_text_addf(&repr->text, ", %zu modules", modules);
    bool trains = values[TRAINING] &&
                  prb_object_kind(repr->objects, values[TRAINING], NULL) == PRB_OBJ_BOOL &&
                  prb_int_open(repr->objects, values[TRAINING], &training, NULL) &&
                  training.sign != 0;
    prb_text_add(&repr->text, trains ? ", training)" : ", eval)");
}

/* ---- optimizers ---- */

struct groups {
    struct prb_repr *repr;
    prb_addr rates[RATES_MAX];
    size_t count, tensors;
};

static bool take_group(void *context, prb_addr key, prb_addr group)
{
    (void)key;
    struct groups *groups = context;
    enum { RATE, PARAMS, COUNT };
    static const char *const names[] = {"lr", "params", NULL};
    prb_addr values[COUNT];
    struct prb_objects *objects = groups->repr->objects;
    if (prb_object_kind(objects, group, NULL) != PRB_OBJ_DICT ||
        !prb_pick_items(objects, group, names, values))
        return true;
    if (groups->count < RATES_MAX)
        groups->rates[groups->count] = values[RATE];
    groups->count++;
    if (values[PARAMS])
        (void)prb_sequence_walk(objects, values[PARAMS], PRB_OBJ_LIST, count_item, &groups->tensors,
                                NULL);
    return true;
}

/* One rate where all groups have the same, else a list. */
static void add_rates(struct prb_repr *repr, const struct groups *groups)
{
    const struct prb_repr_limits limits = {.characters = RATE_CHARACTERS};
    PRB_AUTO(prb_buf) struct prb_buf first = {0}, all = {0};
    size_t shown = groups->count < RATES_MAX ? groups->count : RATES_MAX;
    bool one = shown > 0;
    for (size_t i = 0; i < shown; i++) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        if (!groups->rates[i] ||
            !prb_object_repr(repr->objects, groups->rates[i], &limits, &text, NULL) || !text.data)
            prb_buf_adds(&text, "None");
        prb_buf_addf(i ? &all : &first, "%s%s", i ? ", " : "", text.data);
        one = one && (i == 0 || strcmp(text.data, first.data) == 0);
    }
    if (!prb_buf_ok(&first) || !prb_buf_ok(&all))
        return;
    const char *begin = first.data ? first.data : "", *rest = all.data ? all.data : "";
    if (one)
        prb_text_add(&repr->text, begin);
    else
        prb_text_addf(&repr->text, "[%s%s]", begin, rest);
}

void prb_repr_torch_optimizer(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"param_groups", NULL};
    prb_addr list = 0;
    struct groups groups = {.repr = repr};
    if (!prb_pick_attributes(repr->objects, object, type, names, &list) || !list ||
        !prb_sequence_walk(repr->objects, list, PRB_OBJ_LIST, take_group, &groups, NULL)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_text_add(&repr->text, prb_type_short_name(type));
    prb_text_add(&repr->text, " lr=");
    add_rates(repr, &groups);
    prb_text_addf(&repr->text, " (%zu groups, %zu tensors)", groups.count, groups.tensors);
}
