/*
 * The texts of dates and times, as their repr() gives them: Modules/_datetimemodule.c of 3.6 to
 * 3.15.
 */
#include <inttypes.h>
#include <string.h>

#include "repr/writer.h"

static const uint8_t *bytes_of(struct prb_repr *repr, prb_addr object, enum prb_field field,
                               size_t count)
{
    int64_t offset = repr->objects->layout->offset[field];
    return offset == PRB_ABSENT ? NULL
                                : prb_objects_get(repr->objects, object + (uint64_t)offset, count);
}

static void add_date(struct prb_repr *repr, const uint8_t *data)
{
    prb_text_addf(&repr->text, "%u, %u, %u", (unsigned)(data[0] << 8 | data[1]), data[2], data[3]);
}

/* Hours and minutes, and what follows as far as it is not 0. */
static void add_time(struct prb_repr *repr, const uint8_t *data)
{
    unsigned microsecond = (unsigned)(data[3] << 16 | data[4] << 8 | data[5]);
    prb_text_addf(&repr->text, "%u, %u", data[0], data[1]);
    if (data[2] || microsecond)
        prb_text_addf(&repr->text, ", %u", data[2]);
    if (microsecond)
        prb_text_addf(&repr->text, ", %u", microsecond);
}

static void add_zone(struct prb_repr *repr, bool has_zone, prb_addr object, enum prb_field field,
                     bool fold)
{
    uint64_t zone;
    if (has_zone && prb_objects_field(repr->objects, object, field, &zone)) {
        prb_text_add(&repr->text, ", tzinfo=");
        prb_repr_value(repr, zone);
    }
    prb_text_add(&repr->text, fold ? ", fold=1)" : ")");
}

void prb_repr_date(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    const uint8_t *data = bytes_of(repr, object, PRB_F_date_data, 4);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, type->name);
    add_date(repr, data);
    prb_text_add(&repr->text, ")");
}

enum { DATE_BYTES = 4, TIME_BYTES = 6 };

void prb_repr_time(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t has_zone, fold = 0;
    const uint8_t *data = NULL;
    (void)PRB_GET(repr->objects, object, time, fold, &fold);
    if (PRB_GET(repr->objects, object, time, has_zone, &has_zone))
        data = bytes_of(repr, object, PRB_F_time_data, TIME_BYTES);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, type->name);
    add_time(repr, data);
    add_zone(repr, has_zone != 0, object, PRB_F_time_zone, fold == 1);
}

void prb_repr_datetime(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t has_zone, fold = 0;
    const uint8_t *data = NULL;
    (void)PRB_GET(repr->objects, object, datetime, fold, &fold);
    if (PRB_GET(repr->objects, object, datetime, has_zone, &has_zone))
        data = bytes_of(repr, object, PRB_F_datetime_data, DATE_BYTES + TIME_BYTES);
    if (!data) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, type->name);
    add_date(repr, data);
    prb_text_add(&repr->text, ", ");
    add_time(repr, data + DATE_BYTES);
    prb_text_add(&repr->text, fold == 1 ? ", fold=1" : ""); /* here before the zone */
    add_zone(repr, has_zone != 0, object, PRB_F_datetime_zone, false);
}

static bool read_delta(struct prb_repr *repr, prb_addr object, int32_t parts[3])
{
    static const enum prb_field fields[] = {PRB_F_timedelta_days, PRB_F_timedelta_seconds,
                                            PRB_F_timedelta_microseconds};
    for (size_t i = 0; i < 3; i++) {
        uint64_t value;
        if (!prb_objects_field(repr->objects, object, fields[i], &value))
            return false;
        parts[i] = (int32_t)(uint32_t)value;
    }
    return true;
}

/* As 3.7 and newer print it. */
void prb_repr_timedelta(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"days", "seconds", "microseconds"};
    int32_t parts[3];
    size_t count = 0;
    if (!read_delta(repr, object, parts)) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, type->name);
    for (size_t i = 0; i < 3; i++)
        if (parts[i])
            prb_text_addf(&repr->text, "%s%s=%" PRId32, count++ ? ", " : "", names[i], parts[i]);
    prb_text_add(&repr->text, count ? ")" : "0)");
}

void prb_repr_timezone(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t offset, name;
    int32_t parts[3];
    if (!PRB_GET(repr->objects, object, timezone, offset, &offset) ||
        !PRB_GET(repr->objects, object, timezone, name, &name) ||
        !read_delta(repr, offset, parts)) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (!name && !parts[0] && !parts[1] && !parts[2]) {
        prb_text_add(&repr->text, "datetime.timezone.utc");
        return;
    }
    prb_repr_head(repr, type->name);
    prb_repr_value(repr, offset);
    if (name) {
        prb_text_add(&repr->text, ", ");
        prb_repr_value(repr, name);
    }
    prb_text_add(&repr->text, ")");
}
