"""A root folder's interpreter in a mount namespace where the program that writes dumps is at hand."""

import os
import shutil
import subprocess

# As in a container that has the package: argv is ROOT, the paths that stand there as here, "--", the command.
HOUSE = """
root=$1; shift; had=
ulimit -c 0
while [ "$1" != -- ]; do
    first=$(echo "$1" | cut -d/ -f2)
    case " $had " in *" $first "*) ;; *)
        mkdir -p "$root/$first" && mount -t tmpfs none "$root/$first" || exit 9
        had="$had $first" ;;
    esac
    mkdir -p "$root$1" && mount --bind "$1" "$root$1" || exit 9
    shift
done
shift
mount -t proc proc "$root/proc" && exec chroot "$root" "$@"
"""


def housed(python, *paths):
    """The command line's beginning for it; None: no mount namespace can be made here."""
    paths = [os.path.realpath(path) for path in paths]
    prefix = ["unshare", "--mount", "sh", "-c", HOUSE, "sh", python.root, *paths, "--"]
    if not shutil.which("unshare") or subprocess.run([*prefix, "/bin/true"], stderr=subprocess.DEVNULL).returncode:
        return None
    return prefix + ["env"] + ["{}={}".format(*item) for item in python.variables.items()]
