"""The rival: frames as people write them by hand, with struct, a line per field and a bitwise CRC.

It encodes commands and decodes replies of the three profiles, without checks of ranges.
"""

from __future__ import annotations

import math
import struct
from typing import Any

TURN = 2.0 * math.pi
KRPM = 1000.0 * 2.0 * math.pi / 60.0


def crc32_bitwise(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7) & 0xFFFFFFFF if crc & 0x80000000 else crc << 1
    return crc


def encode_command(profile: str, c: dict[str, Any]) -> bytes:
    isat = [round(current / 2**-3) for current in c["isat_a"]]
    if profile == "udriver2":
        isat.reverse()
    fields = [
        c["mode"],
        c["timeout_ms"],
        round(c["motor_position_rad"][0] / TURN * 2**24),
        round(c["motor_position_rad"][1] / TURN * 2**24),
        round(c["motor_velocity_rad_s"][0] / KRPM * 2**11),
        round(c["motor_velocity_rad_s"][1] / KRPM * 2**11),
        round(c["iq_ff_a"][0] * 2**10),
        round(c["iq_ff_a"][1] * 2**10),
        round(c["kp_a_per_rad"][0] * TURN * 2**11),
        round(c["kp_a_per_rad"][1] * TURN * 2**11),
        round(c["kd_a_s_per_rad"][0] * KRPM * 2**10),
        round(c["kd_a_s_per_rad"][1] * KRPM * 2**10),
    ]
    if profile == "arm":
        fields.append(round(c["ki_a_per_rad_s"][0] * TURN * 2**11))
        fields.append(round(c["ki_a_per_rad_s"][1] * TURN * 2**11))
    code = ">BBiihhhhHHHHHHBBH" if profile == "arm" else ">BBiihhhhHHHHBBH"
    data = struct.pack(code, *fields, *isat, c["index"])
    return data + struct.pack(">I", crc32_bitwise(data))


def decode_reply(profile: str, frame: bytes) -> dict[str, Any]:
    size = 34 if profile == "arm" else 30
    low, high = struct.unpack(">HH", frame[size:])
    if crc32_bitwise(frame[:size]) != high << 16 | low:
        raise ValueError("bad CRC")
    code = ">HHiihhhhhhHhhBBH" if profile == "arm" else ">HHiihhhhHHHHH"
    f = struct.unpack(code, frame[:size])
    reply = {
        "status": f[0],
        "timestamp_ms": f[1],
        "motor_position_rad": (f[2] * TURN / 2**24, f[3] * TURN / 2**24),
        "motor_velocity_rad_s": (f[4] * KRPM / 2**11, f[5] * KRPM / 2**11),
        "iq_a": (f[6] / 2**10, f[7] / 2**10),
        "index": f[-1],
    }
    if profile == "arm":
        reply["motor_torque_nm"] = (f[8] / 2**12, f[9] / 2**12)
        reply["bus_voltage_v"] = f[10] / 2**9
        reply["input_power_w"] = (f[11] / 2**4, f[12] / 2**4)
        reply["winding_temperature_degc"] = (f[13] - 40.0, f[14] - 40.0)
    else:
        adc_scale = 2**14 if profile == "uomodri" else 2**16
        name = "external_adc_v" if profile == "uomodri" else "external_adc_fraction"
        reply["coil_resistance_ohm"] = (f[8] / 2**15, f[9] / 2**15)
        reply[name] = (f[10] / adc_scale, f[11] / adc_scale)
    return reply
