-- The steps that agents publish (probing cluster attach --history torch_step_timing), taken by ClickHouse itself from the stream
-- probing_history: its NATS engine reads JSON lines.  Any other table is taken the same way: the columns by the names of its rows.
--
-- On the NATS server once, with rights to do so:
--     nats consumer add probing_history clickhouse_steps --pull --ack explicit --filter 'probing.v1.*.history.torch_step_timing' --defaults
-- ClickHouse logs in by user and password or by a credentials file: give it a user that may publish
-- $JS.API.CONSUMER.INFO.probing_history.clickhouse_steps, $JS.API.CONSUMER.MSG.NEXT.probing_history.clickhouse_steps and
-- $JS.ACK.probing_history.clickhouse_steps.>, and hear its inbox.  `probing cluster up --print` shows the other users.
-- The certificate of a server that `probing cluster up` started carries the name probing-bus, whatever its address: let
-- /etc/hosts say where that is, and add the authority (`ca` of a bus file) to the certificates that ClickHouse trusts:
-- SSL_CERT_FILE of its process, or nats_ca_file where its engine has that.

CREATE DATABASE IF NOT EXISTS probing;

CREATE TABLE IF NOT EXISTS probing.steps_queue
(
    `_job`       String,
    `_process`   String,
    `host`       String,
    `rank`       Int32,
    `end`        Float64,
    `step`       Int64,
    `duration`   Int64,
    `data`       Nullable(Int64),
    `forward`    Nullable(Int64),
    `backward`   Nullable(Int64),
    `optimizer`  Nullable(Int64),
    `comm_wait`  Nullable(Int64)
)
ENGINE = NATS
SETTINGS nats_url = 'probing-bus:4222',
         nats_secure = 1,
         nats_credential_file = '/etc/clickhouse-server/probing.creds',
         nats_subjects = 'probing.v1.*.history.torch_step_timing',
         nats_stream = 'probing_history',
         nats_consumer_name = 'clickhouse_steps',
         nats_format = 'JSONEachRow',
         input_format_skip_unknown_fields = 1;

CREATE TABLE IF NOT EXISTS probing.steps
(
    `job`       LowCardinality(String),
    `host`      LowCardinality(String),
    `rank`      Int32,
    `process`   LowCardinality(String),
    `time`      DateTime64(6, 'UTC'),
    `step`      Int64 CODEC(Delta, ZSTD),
    `duration`  Float64,
    `data`      Nullable(Float64),
    `forward`   Nullable(Float64),
    `backward`  Nullable(Float64),
    `optimizer` Nullable(Float64),
    `comm_wait` Nullable(Float64)
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(time)
ORDER BY (job, rank, process, time, step)
TTL toDateTime(time) + INTERVAL 90 DAY;

-- Seconds, as the columns of python.torch_step_timing.  A message that comes twice makes equal keys, of which one stays.
CREATE MATERIALIZED VIEW IF NOT EXISTS probing.steps_taken TO probing.steps AS
SELECT `_job` AS job, host, rank, `_process` AS process, fromUnixTimestamp64Micro(toInt64(`end` * 1e6)) AS time, step,
       duration / 1e9 AS duration, data / 1e9 AS data, forward / 1e9 AS forward, backward / 1e9 AS backward,
       optimizer / 1e9 AS optimizer, comm_wait / 1e9 AS comm_wait
FROM probing.steps_queue;

-- The ranks that were the slowest of a step most often:
--     SELECT rank, count() FROM (SELECT job, step, argMax(rank, duration) AS rank FROM probing.steps FINAL GROUP BY job, step) GROUP BY rank ORDER BY 2 DESC

-- Crashes, which agents tell without being asked to (stream probing_events):
--     nats consumer add probing_events clickhouse_crashes --pull --ack explicit --filter 'probing.v1.*.event.crash' --defaults
-- and the same rights for that stream and consumer.

CREATE TABLE IF NOT EXISTS probing.crashes_queue
(
    `job`   String,
    `host`  String,
    `rank`  Int32,
    `pid`   Int64,
    `time`  Float64,
    `kind`  String,
    `title` String,
    `place` String,
    `group` String,
    `path`  String,
    `bytes` UInt64
)
ENGINE = NATS
SETTINGS nats_url = 'probing-bus:4222',
         nats_secure = 1,
         nats_credential_file = '/etc/clickhouse-server/probing.creds',
         nats_subjects = 'probing.v1.*.event.crash',
         nats_stream = 'probing_events',
         nats_consumer_name = 'clickhouse_crashes',
         nats_format = 'JSONEachRow',
         input_format_skip_unknown_fields = 1;

CREATE TABLE IF NOT EXISTS probing.crashes
(
    `job`         LowCardinality(String),
    `host`        LowCardinality(String),
    `rank`        Int32,
    `pid`         Int64,
    `time`        DateTime64(6, 'UTC'),
    `kind`        LowCardinality(String),
    `title`       String,
    `place`       String,
    `crash_group` String,
    `path`        String,
    `bytes`       UInt64
)
ENGINE = ReplacingMergeTree
ORDER BY (job, host, path, time);

CREATE MATERIALIZED VIEW IF NOT EXISTS probing.crashes_taken TO probing.crashes AS
SELECT job, host, rank, pid, fromUnixTimestamp64Micro(toInt64(`time` * 1e6)) AS time, kind, title, place, `group` AS crash_group, path, bytes
FROM probing.crashes_queue;
