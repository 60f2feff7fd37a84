"""Turns an operating-system error into the exception that names a device's failure."""

from __future__ import annotations

import errno
import os

from daq.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DeviceIoError,
    DeviceMissingError,
    DevicePermissionError,
    TransportError,
)

_GONE = (errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN, errno.EBADF)


def transport_error(device: str, error: OSError) -> TransportError:
    """Return the error that says what happened to a device and what to do about it."""
    if isinstance(error, TransportError):
        return error
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.ENOENT:
        return DeviceMissingError(
            device,
            "no such device; is it plugged in? For SPI on a Raspberry Pi: dtparam=spi=on in "
            "config.txt and reboot. Without hardware: run under `armature mock exec`",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return DevicePermissionError(
            device,
            f"{reason}; add this user to the device's group (`ls -l {device}` shows it: spi or "
            "dialout), sudo usermod -aG GROUP $USER, and log in again",
        )
    if error.errno == errno.EBUSY:
        return DeviceBusyError(device, f"{reason}: another driver or program holds it")
    if error.errno in _GONE:
        return DeviceGoneError(device, f"the device vanished ({reason}): check cable and driver")
    return DeviceIoError(device, f"failed: {reason}")
