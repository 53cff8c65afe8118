# Training scripts to look at; no GPU needed.
exampledir = $(pkgdatadir)/examples
dist_example_DATA = %D%/grafana.json %D%/train.py %D%/train_stdlib.py %D%/crash.py %D%/fetch.py
pluginexampledir = $(exampledir)/plugin
dist_pluginexample_DATA = %D%/plugin/limits.c
# What the README shows of them.
EXTRA_DIST += %D%/train.svg %D%/crash.png
