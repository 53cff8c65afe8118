"""The probe's settings as a mapping."""

from collections.abc import Mapping

from probing_c import _native
from probing_c._native import ProbeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator


def _key(name):
    # type: (str) -> str
    return name if name.startswith("probing.") else "probing." + name


class Config(Mapping):
    """Settings of the probe in this process: text by name; `config["sample_rate"]` is `config["probing.sample_rate"]`.

    Setting checks type, unit and bounds in the probe; ProbeError says what is wrong, and the nearest name of an unknown one.
    """

    def __getitem__(self, name):
        # type: (str) -> str
        found = _native.need()
        value = _native.text_of(lambda out, cap: found.config_get(_key(name).encode("utf-8"), out, cap))
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name, value):
        # type: (str, Any) -> None
        from ctypes import create_string_buffer

        why = create_string_buffer(512)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _native.need().config_set(_key(name).encode("utf-8"), text.encode("utf-8"), why, len(why)) != 0:
            raise ProbeError(why.value.decode("utf-8", "replace") or "{} cannot be set".format(_key(name)))

    def set(self, name, value):
        # type: (str, Any) -> None
        """config[name] = value."""
        self[name] = value

    def list(self):
        # type: () -> Dict[str, str]
        """All settings."""
        lines = (_native.text_of(_native.need().config_list) or "").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def __iter__(self):
        # type: () -> Iterator[str]
        return iter(self.list())

    def __len__(self):
        # type: () -> int
        return len(self.list())

    def __repr__(self):
        # type: () -> str
        return "<probing.config>"
