# The wheel for any Linux: made in a root folder of an older system (wheel.sh), with the libraries that it uses in it (vendor.py).
EXTRA_DIST += %D%/wheel.sh %D%/aarch64.sh %D%/nats.sh %D%/vendor.py
