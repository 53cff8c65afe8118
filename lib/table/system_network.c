/* system.network: a row for each interface of the process's network namespace, and RDMA port. */
#include "host/network.h"
#include "inspect/target.h"
#include "table/shared/host_history.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    PRB_MOMENT_COLUMNS,
    {"interface", PRB_TEXT, "", "its name; of an RDMA port DEVICE/PORT"},
    {"kind", PRB_TEXT, "", "net, of the process's network namespace; rdma, of the machine"},
    {"rx_bytes", PRB_INTEGER, "bytes", "received since it began, as all counts here"},
    {"tx_bytes", PRB_INTEGER, "bytes", "sent"},
    {"rx_packets", PRB_INTEGER, "count", "received"},
    {"tx_packets", PRB_INTEGER, "count", "sent"},
    {"rx_errors", PRB_INTEGER, "count", "errors and drops"},
    {"tx_errors", PRB_INTEGER, "count", "errors and drops"},
    PRB_RESOLUTION_COLUMN,
    {0},
};

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_interfaces) struct prb_interfaces found = {0};
    double latest;
    if (!prb_rows_host(rows, PRB_HOST_NETWORK, false, &latest, err))
        return false;
    if (!prb_rows_target(rows))
        return true;
    if (!prb_rows_alive(rows, err) ||
        !prb_interfaces_read(prb_rows_target(rows)->proc, NULL, &found, err))
        return false;
    for (size_t i = 0; i < found.count; i++) {
        const struct prb_interface *one = &found.items[i];
        prb_row_begin(rows);
        prb_row_moment(rows);
        prb_row_text(rows, one->name);
        prb_row_text(rows, one->rdma ? "rdma" : "net");
        prb_row_int_unless(rows, one->rx_bytes, -1);
        prb_row_int_unless(rows, one->tx_bytes, -1);
        prb_row_int_unless(rows, one->rx_packets, -1);
        prb_row_int_unless(rows, one->tx_packets, -1);
        prb_row_int_unless(rows, one->rx_errors, -1);
        prb_row_int_unless(rows, one->tx_errors, -1);
        prb_row_raw(rows);
    }
    return true;
}

const struct prb_table prb_table_system_network = {
    .schema = "system",
    .name = "network",
    .doc = "what went over the network interfaces that the process has, and RDMA ports",
    .columns = columns,
    .needs_target = true,
    .timed = true,
    .kept = true,
    .fill = fill,
};
