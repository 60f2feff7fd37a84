"""`python figaroh_side.py DATA.npz ARM.urdf OUT.npz REPEATS`: the same identification by FIGAROH.

Runs in FIGAROH's own environment, so that nothing of this project is imported here. It is used as
its examples use it: a subclass gives the samples, `initialize` filters, differentiates and builds
the regressor, `solve` thins out, finds base parameters by QR and solves for them; weights of joints
as in its TX40 example. It gets the same samples, terms and cut-off frequency. Prints JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import yaml
from figaroh.identification.base_identification import BaseIdentification
from figaroh.tools.load_robot import load_robot
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced

DECIMATION = 10


class Arm(BaseIdentification):
    """What FIGAROH wants of every robot: its samples."""

    def __init__(self, robot, config_file, data):
        self._samples = data
        super().__init__(robot, config_file)
        names = self.identif_config["active_joints"]
        joints = [self.model.joints[self.model.getJointId(name)] for name in names]
        self.identif_config["act_idxq"] = [joint.idx_q for joint in joints]
        self.identif_config["act_idxv"] = [joint.idx_v for joint in joints]

    def load_trajectory_data(self, data_source=None):
        prefix = "validation" if data_source else "identification"
        return {
            "timestamps": self._samples[f"{prefix}_t_s"],
            "positions": self._samples[f"{prefix}_q_rad"],
            "velocities": None,
            "accelerations": None,
            "torques": self._samples[f"{prefix}_tau_nm"],
        }


def config_text(data, *, is_physical: bool) -> str:
    physical = {"physical_fit": {"enabled": True}, "select_stage": "physical_fit"}
    terms = {str(term) for term in data["terms"]}
    zeros = [0.0] * data["identification_q_rad"].shape[1]
    return yaml.safe_dump(
        {
            "robot": {
                "name": "arm",
                "properties": {
                    "joints": {"active_joints": [str(name) for name in data["joint_names"]]},
                    "mechanics": {
                        "friction_coefficients": {"viscous": zeros, "static": zeros},
                        "actuator_inertias": zeros,
                        "joint_offsets": zeros,
                    },
                    "coupling": {"has_coupled_wrist": False},
                },
            },
            "tasks": {
                "identification": {
                    "enabled": True,
                    "problem": {
                        "use_joint_torques": True,
                        "model_components": {
                            "friction": "viscous" in terms,
                            "actuator_inertia": "drive_inertia" in terms,
                            "joint_offset": "offset" in terms,
                        },
                    },
                    "signal_processing": {
                        "sampling_frequency": float(data["rate_hz"]),
                        "cutoff_frequency": float(data["cutoff_hz"]),
                        "filter_order": 4,
                    },
                    **(physical if is_physical else {}),
                }
            },
        }
    )


def identify(data, urdf, config):
    """The whole of it, and how long which part took."""
    began_s = time.perf_counter()
    arm = Arm(load_robot(urdf, package_dirs=str(Path(urdf).parent)), config, data)
    loaded_s = time.perf_counter()
    arm.process_data()
    filtered_s = time.perf_counter()
    arm.calculate_full_regressor()
    regressor_s = time.perf_counter()
    arm.initialize_standard_parameters()
    # The steps of `solve` that lead to its parameters, without its report and its statistics.
    reduced, active = arm._eliminate_zero_columns(0.001)
    tau, columns = arm._apply_decimation(reduced, DECIMATION)
    arm._calculate_base_parameters(tau, columns, active)
    arm.phi_base, _ = arm._apply_weighted_least_squares()
    solved_s = time.perf_counter()
    times = {
        "samples_s": filtered_s - loaded_s,
        "regressor_s": regressor_s - filtered_s,
        "solve_s": solved_s - regressor_s,
        "steps_s": solved_s - began_s,
    }
    return arm, times


def work(data, urdf, config):
    """`initialize` and `solve`, as its examples call them, without figures and files."""
    began_s = time.perf_counter()
    arm = Arm(load_robot(urdf, package_dirs=str(Path(urdf).parent)), config, data)
    arm.initialize()
    with contextlib.redirect_stdout(io.StringIO()):
        arm.solve(decimate=True, decimation_factor=DECIMATION, plotting=False, wls=True)
    return arm, time.perf_counter() - began_s


def predicted_nm(arm, prefix: str):
    """Its prediction at every sample, from its own filtered motion."""
    if prefix == "validation":
        arm._load_validation_data("validation")
        motion, rows = arm._val_processed_data, arm._val_num_samples
    else:
        motion, rows = arm.processed_data, arm.num_samples
    names = ("positions", "velocities", "accelerations")
    full = build_regressor_basic(arm.robot, *(motion[n] for n in names), arm.identif_config)
    if arm.selected is not None and arm.selected.accepted:
        return arm.selected.predict(full).reshape(-1, rows).T
    columns = build_regressor_reduced(full, arm._idx_eliminated)[:, arm._base_indices]
    return (columns @ arm.phi_base).reshape(-1, rows).T


def main() -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    data, urdf, out, repeats = dict(np.load(sys.argv[1])), sys.argv[2], sys.argv[3], sys.argv[4]
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        configs = {}
        for name, is_physical in (("wls", False), ("physical", True)):
            configs[name] = str(Path(directory, f"{name}.yaml"))
            Path(configs[name]).write_text(config_text(data, is_physical=is_physical))
        for _ in range(int(repeats)):
            arm, times = identify(data, urdf, configs["wls"])
            _, times["wls_s"] = work(data, urdf, configs["wls"])
            physical, times["physical_s"] = work(data, urdf, configs["physical"])
            best = {name: min(value, best.get(name, value)) for name, value in times.items()}
    predictions = {
        f"{name}_{prefix}": predicted_nm(found, prefix)
        for name, found in (("wls", arm), ("physical", physical))
        for prefix in ("identification", "validation")
    }
    np.savez(out, **predictions)
    facts = {
        "version": version("figaroh"),
        "base_parameters": len(arm.phi_base),
        "is_physical": bool(physical.selected is not None and physical.selected.accepted),
        "reason": str(physical.result.get("physical_fit", {}).get("reason", "")),
    }
    print(json.dumps({**facts, **best}))


if __name__ == "__main__":
    main()
