"""SQL that users were promised: it runs as it stands."""

import re

PROMISED = [
    "SELECT func, file, lineno FROM python.backtrace LIMIT 5",
    "SELECT * FROM python.backtrace ORDER BY depth LIMIT 10",
    "SELECT * FROM python.torch_trace",
    "SELECT operation_name, AVG(duration_ms) AS avg_duration, COUNT(*) AS call_count FROM python.torch_trace "
    "WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name ORDER BY avg_duration DESC LIMIT 10",
    "SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'",
    "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
    "SELECT function_name, sum(allocated_bytes) AS total_alloc FROM memory_allocations "
    "WHERE timestamp > now() - interval '1 hour' GROUP BY function_name ORDER BY total_alloc DESC",
    "SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data "
    "WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name ORDER BY avg(duration_ms) DESC",
    "SELECT epoch, avg(loss), min(loss), count(*) AS steps FROM training_logs GROUP BY epoch ORDER BY epoch",
    "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics GROUP BY src_rank, dst_rank",
    "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60",
    "SELECT * FROM python.memory",
    "SELECT * FROM system.process",
    "SELECT * FROM python.variables",
]


def table_of(sql):
    return re.search(r"FROM ([\w.]+)", sql).group(1)
