#!/usr/bin/env python3
"""scripts/gpu_aims.py without a device: what it calls met, which GPU it measures, what compiles.

  test_gpu_aims.py GPU_AIMS [UNITTEST ARGUMENT]...
"""

import contextlib
import ctypes
import ctypes.util
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True


class Nvml:
    """Two cards, of which each has used a number of millijoules."""
    USED = {b"0000:01:00.0": 1000, b"0000:02:00.0": 7000}
    nvmlInit_v2 = staticmethod(lambda: 0)

    def __init__(self):
        self.cards = {i + 1: used for i, used in enumerate(self.USED.values())}

    def nvmlDeviceGetHandleByPciBusId_v2(self, place, device):
        if place not in self.USED:
            return 6
        device._obj.value = 1 + list(self.USED).index(place)
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, device, value):
        value._obj.value = self.cards[device.value]
        return 0


class Cuda:
    """Its first device lies at `place`."""
    cuInit = staticmethod(lambda flags: 0)

    def __init__(self, place):
        self.place = place

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = 40 + ordinal
        return 0

    def cuDeviceGetPCIBusId(self, text, size, device):
        assert device.value == 40 and size > len(self.place)
        text.value = self.place
        return 0


class GpuAims(unittest.TestCase):
    def said(self, rows):
        aims = self.module.Aims(types.SimpleNamespace(folder=None, results=None, small=False))
        aims.rates = lambda: rows
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            aims.cost()
        return [line for line in text.getvalue().splitlines() if line.startswith("AIM")]

    def test_a_rate_of_0_meets_no_aim(self):
        run, between = (f"AIM cost per instruction within 1.3 times ({what}): "
                        for what in ("run", "between"))
        self.assertEqual(self.said([{"run": 12, "between": 12}, {"run": 10, "between": 9}]),
                         [run + "met", between + "missed"])
        for first, last in [(0, 5), (5, 0), (0, 0)]:
            rows = [{"run": 1, "between": first}, {"run": 1, "between": last}]
            self.assertEqual(self.said(rows), [run + "met", between + "missed"])

    def test_the_energy_is_of_the_gpu_that_runs(self):
        for place, used in Nvml.USED.items():
            self.assertEqual(self.module.gpu_meter(Nvml(), Cuda(place))(), used / 1e3)
        self.assertIsNone(self.module.gpu_meter(Nvml(), Cuda(b"0000:09:00.0")))

    def test_what_compiles_is_what_gpusim_finds(self):
        with tempfile.TemporaryDirectory() as folder:
            none = str(pathlib.Path(folder) / "none.so")
            with mock.patch.dict(os.environ, GPUSIM_NVRTC=none, PATH=folder):
                self.assertIsNone(self.module.compiler_of_regions())
                nvcc = pathlib.Path(folder) / "nvcc"
                nvcc.write_text("#!/bin/sh\n")
                nvcc.chmod(0o755)
                self.assertEqual(self.module.compiler_of_regions(), f"nvcc ({nvcc})")
            # Any library that can be loaded.
            library = ctypes.util.find_library("c")
            with mock.patch.dict(os.environ, GPUSIM_NVRTC=library, PATH=folder):
                self.assertEqual(self.module.compiler_of_regions(), f"NVRTC ({library})")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    specification = importlib.util.spec_from_file_location("gpu_aims", sys.argv.pop(1))
    GpuAims.module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(GpuAims.module)
    unittest.main()
