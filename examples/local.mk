# Training scripts to look at; no GPU needed.
exampledir = $(pkgdatadir)/examples
dist_example_DATA = %D%/grafana.json %D%/train.py %D%/train_stdlib.py %D%/crash.py %D%/fetch.py
pluginexampledir = $(exampledir)/plugin
dist_pluginexample_DATA = %D%/plugin/limits.c
# What the README shows of them.
EXTRA_DIST += %D%/train.svg %D%/crash.png
# A job of many hosts for Prometheus, Grafana and ClickHouse.
clusterexampledir = $(exampledir)/cluster
dist_clusterexample_DATA = %D%/cluster/prometheus.yml %D%/cluster/rules.yml %D%/cluster/ranks.json %D%/cluster/hosts.json %D%/cluster/clickhouse.sql
