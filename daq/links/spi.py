"""SPI through the kernel's spidev driver and the `spidev` package.

The kernel reports no error when nobody answers: an absent board is only seen by its checksum, one
layer up. `xfer3` is used because it releases the GIL and takes any buffer.
"""

from __future__ import annotations

from typing import Any

from daq.errors import TransportError
from daq.links.device_lock import DeviceLock
from daq.links.failures import transport_error
from daq.links.link import FILLER
from daq.robot import SpiPort
from firmware_protocol.fields import Framing


class SpiLink:
    """Exchanges frames with the board on one chip select.

    Raises:
        TransportError: The device cannot be opened; the subclass says why.
    """

    framing = Framing.SPI
    resynchronised = 0  # foreign bytes exist only on serial lines

    def __init__(self, port: SpiPort) -> None:
        self.name = port.device
        self.clock_hz = float(port.speed_hz)
        try:
            self._lock = DeviceLock(port.device)
        except OSError as error:
            raise transport_error(port.device, error) from error
        try:
            self._spi = _open(port)
        except BaseException:
            self._lock.release()
            raise

    def fileno(self) -> int:
        """Return the descriptor of the opened device."""
        return int(self._spi.fileno())

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the bytes received in the same chip-select window.

        Raises:
            OSError: The transfer failed.
        """
        return bytes(self._spi.xfer3(frame))

    def realign(self, missing: int) -> None:
        """Clock the bytes that a truncated window left out.

        Raises:
            OSError: The transfer failed.
        """
        self._spi.xfer3(FILLER * missing)

    def close(self) -> None:
        """Close the device and give up its lock."""
        self._spi.close()
        self._lock.release()


def _open(port: SpiPort) -> Any:
    try:
        import spidev  # noqa: PLC0415 - a laptop has no spidev
    except ModuleNotFoundError as error:
        raise TransportError(
            port.device,
            "the spidev package is missing: pip install '.[robot]' in armature's folder",
            code="package-missing",
        ) from error
    bus, chip_select = port.bus_and_chip_select
    spi = spidev.SpiDev()
    try:
        spi.open(bus, chip_select)
        spi.mode = port.mode
        spi.max_speed_hz = port.speed_hz
        spi.bits_per_word = 8
    except OSError as error:
        spi.close()
        raise transport_error(port.device, error) from error
    return spi
