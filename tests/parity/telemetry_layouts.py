#!/usr/bin/env python3
"""The structs, functions and constants of NVML and AMD SMI that src/core/telemetry declares itself against the vendors' Python bindings.

  telemetry_layouts.py PROGRAM      PROGRAM is the test program telemetry_layouts

TPRIMAT_PYTHON names the Python to use: one that has nvidia-ml-py and, in folders amdsmi-<version> beside its own, the versions of amdsmi
in requirements_amdsmi.txt. Neither a GPU nor a driver is needed. Exit status: 0 all the same, 1 not, 77 a binding is missing.
"""

import copy
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

from chosen_python import use_chosen_python
from vendor_bindings import load_amd_smi, load_nvml

SKIPPED = 77
REQUIREMENTS = pathlib.Path(__file__).with_name("requirements_amdsmi.txt")

# The version of libamd_smi in each release of ROCm, whose number the binding has: AMDSMI_LIB_VERSION_* of its amdsmi.h.
LIBRARY_VERSIONS = {"6.1.2": "24.5", "6.2.4": "24.6", "6.3.1": "24.7", "6.3.3": "25.1", "6.4.4": "25.25", "7.0.2": "26.0"}

# Our struct, the vendor's for which it stands, and which of its fields ours are. Of several tables, the first whose fields there are.
NVML_STRUCTS = {
    "Memory": {"c_nvmlMemory_t": [{"total": "total", "free": "free", "used": "used"}]},
    "Utilization": {"c_nvmlUtilization_t": [{"gpu": "gpu", "memory": "memory"}]},
    "Process": {name: [{"process": "pid", "memory": "usedGpuMemory", "gpu_instance": "gpuInstanceId",
                        "compute_instance": "computeInstanceId"}] for name in ("c_nvmlProcessInfo_v2_t", "c_nvmlProcessInfo_v3_t")},
}
AMD_SMI_STRUCTS = {
    "Version": {"amdsmi_version_t": [{"first": "year", "second": "major"}, {"first": "major", "second": "minor"}]},
    "Text": {"amdsmi_asic_info_t": [{"text": "market_name"}], "amdsmi_driver_info_t": [{"text": "driver_version"}]},
    "Activity": {"amdsmi_engine_usage_t": [{"gfx": "gfx_activity", "memory_controller": "umc_activity", "multimedia": "mm_activity"}]},
    "Clock": {"amdsmi_clk_info_t": [{"now": now, "lowest": "min_clk", "highest": "max_clk"} for now in ("clk", "cur_clk")]},
    "PowerCap": {"amdsmi_power_cap_info_t": [{"now": "power_cap"}]},
    "ErrorCount": {"amdsmi_error_count_t": [{"correctable": "correctable_count", "uncorrectable": "uncorrectable_count"}]},
    "KfdInfo": {"amdsmi_kfd_info_t": [{"id": "kfd_id"}]},
    "Power": {"amdsmi_power_info_t": [{}]},
    "Metrics": {"amdsmi_gpu_metrics_t": [
        {"throttle": "indep_throttle_status", "cycles": "accumulation_counter", "prochot": "prochot_residency_acc",
         "power": "ppt_residency_acc", "socket_heat": "socket_thm_residency_acc", "regulator_heat": "vr_thm_residency_acc",
         "memory_heat": "hbm_thm_residency_acc"},
        {"throttle": "indep_throttle_status"}]},
}
# What a binding need not have: it starts NVML by another function; AMD SMI tells the device of /sys/class/kfd since ROCm 6.3.
ABSENT = {"nvidia-ml-py": {"nvmlInit_v2"}, **{f"amdsmi {version}": {"amdsmi_kfd_info_t", "amdsmi_get_gpu_kfd_info"}
                                              for version in ("6.1.2", "6.2.4")}}

NVML_CONSTANTS = {
    "insufficient_size": ["NVML_ERROR_INSUFFICIENT_SIZE"], "unknown_memory": ["NVML_VALUE_NOT_AVAILABLE_ulonglong"],
    "temperature_gpu": ["NVML_TEMPERATURE_GPU"], "threshold_slowdown": ["NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"],
    "clock_sm": ["NVML_CLOCK_SM"], "clock_memory": ["NVML_CLOCK_MEM"],
    "error_uncorrected": ["NVML_MEMORY_ERROR_TYPE_UNCORRECTED"], "counter_volatile": ["NVML_VOLATILE_ECC"],
}
AMD_SMI_CONSTANTS = {
    "init_gpus": ["AMDSMI_INIT_AMD_GPUS"], "processor_gpu": ["AMDSMI_PROCESSOR_TYPE_AMD_GPU", "AMD_GPU"],
    "memory_vram": ["AMDSMI_MEM_TYPE_VRAM"], "temperature_current": ["AMDSMI_TEMP_CURRENT"],
    "temperature_hotspot": ["AMDSMI_TEMPERATURE_TYPE_HOTSPOT", "TEMPERATURE_TYPE_HOTSPOT"],
    "clock_gfx": ["AMDSMI_CLK_TYPE_GFX", "CLK_TYPE_GFX"], "clock_memory": ["AMDSMI_CLK_TYPE_MEM", "CLK_TYPE_MEM"],
}
NVML_STATUSES = {
    "INVALID_ARGUMENT": "the library rejects the request", "NOT_SUPPORTED": "not supported by this device",
    "NO_PERMISSION": "no permission", "NOT_FOUND": "the device is not found", "DRIVER_NOT_LOADED": "the driver is not loaded",
    "TIMEOUT": "the driver did not answer in time", "LIBRARY_NOT_FOUND": "the library is incomplete", "GPU_IS_LOST": "the GPU is lost",
    "RESET_REQUIRED": "the GPU needs a reset", "OPERATING_SYSTEM": "the operating system blocks the GPU",
    "LIB_RM_VERSION_MISMATCH": "the driver and its library are of different versions", "MEMORY": "not enough memory",
}
AMD_SMI_STATUSES = {
    "INVAL": "the library rejects the request", "NOT_SUPPORTED": "not supported by this device",
    "NOT_YET_IMPLEMENTED": "not supported by this device", "TIMEOUT": "the driver did not answer in time", "NO_PERM": "no permission",
    "IO": "the device cannot be read", "BUSY": "the device is busy", "NOT_FOUND": "the device is not found",
    "NOT_INIT": "the library is not initialised", "DRIVER_NOT_LOADED": "the driver is not loaded", "NO_DATA": "no data",
    "UNEXPECTED_SIZE": "the driver's data are not what the library expects",
    "UNEXPECTED_DATA": "the driver's data are not what the library expects",
}
# Every throttle reason of NVML and ours; an idle GPU is not throttled.
NVML_THROTTLE = {
    "ApplicationsClocksSetting": "clock_set", "UserDefinedClocks": "clock_set", "SyncBoost": "clock_set",
    "DisplayClockSetting": "clock_set", "SwPowerCap": "power", "SwThermalSlowdown": "thermal", "HwThermalSlowdown": "thermal",
    "HwSlowdown": "hardware", "HwPowerBrakeSlowdown": "hardware", "BoardLimit": "hardware", "Reliability": "hardware", "GpuIdle": None,
}


def differ(what, ours, theirs):
    return [] if ours == theirs else [f"{what}: ours is {ours}, the binding's {theirs}"]


def compare_fields(what, ours, theirs, tables):
    table = next((table for table in tables if set(table.values()) <= set(theirs["fields"])), None)
    if table is None:
        return [f"{what}: the binding has none of {tables}"]
    found = []
    for name, [offset, size] in ours.get("fields", {}).items():
        if name in table:
            their_offset, their_size = theirs["fields"][table[name]]
            size = min(size, their_size) if name == "text" else size  # ours fits the longest
            found += differ(f"{what}, {name}", [offset, size], [their_offset, their_size])
        elif offset < theirs["size"]:
            found.append(f"{what}, {name}: it should lie behind what the library writes, which are {theirs['size']} bytes")
    return found


def compare_structs(binding, structs, ours, exact):
    """exact: sizes are the same, for lists of structs; else ours is at least as large."""
    found = []
    for name, counterparts in structs.items():
        for their_name, tables in counterparts.items():
            what, theirs = f"{binding.name}, {name} for {their_name}", binding.struct(their_name)
            if theirs is None:
                found += [] if their_name in ABSENT.get(binding.name, ()) else [f"{what}: the binding lacks it"]
                continue
            size = ours[name]["size"]
            if size < theirs["size"] or (exact and size != theirs["size"]):
                found.append(f"{what}: ours has {size} bytes, the binding's {theirs['size']}")
            found += compare_fields(what, ours[name], theirs, tables)
    return found


def compare_functions(binding, structs, ours):
    counterparts = {f"*{theirs}": f"*{name}" for name in structs for theirs in structs[name]}
    found = []
    for symbol, types in ours.items():
        theirs = binding.function(symbol)
        if (theirs is None) != (symbol in ABSENT.get(binding.name, ())):
            found.append(f"{binding.name}, {symbol}: the binding {'lacks' if theirs is None else 'has'} it")
        elif theirs is not None:
            found += differ(f"{binding.name}, {symbol}", types, [counterparts.get(each, each) for each in theirs])
    return found


def compare_constants(binding, names, ours):
    found = differ(f"{binding.name}, names of constants", sorted(ours), sorted(names))
    for name in sorted(set(ours) & set(names)):
        found += differ(f"{binding.name}, {name}", ours[name], binding.constant(*names[name]))
    return found


def compare_statuses(binding, prefix, texts, ours):
    theirs = {str(binding.constant(prefix + name)): text for name, text in texts.items()}
    found = []
    for code in sorted(ours.keys() | theirs.keys()):
        found += differ(f"{binding.name}, status {code}", ours.get(code), theirs.get(code))
    return found


def compare_throttle(binding, ours):
    theirs = {}
    for prefix in ("nvmlClocksThrottleReason", "nvmlClocksEventReason"):
        for name, mask in binding.constants(prefix).items():
            reason = NVML_THROTTLE.get(name.removeprefix(prefix), "unknown")
            if name not in (prefix + "None", prefix + "All") and reason is not None:
                theirs[str(mask.bit_length() - 1)] = [reason]
    found = []
    for bit in sorted(ours.keys() | theirs.keys()):
        found += differ(f"{binding.name}, bit {bit} of throttle reasons", ours.get(bit), theirs.get(bit))
    return found


def compare_power(binding, version, ours):
    """Which words of amdsmi_power_info_t are read: the present power, else its average."""
    fields = binding.struct("amdsmi_power_info_t")["fields"]
    pair = [fields[name] for name in ("current_socket_power", "average_socket_power")]
    found = differ(f"{binding.name}, size of a power", 4, *{size for _, size in pair})
    found += differ(f"{binding.name}, words of power in version {version}", ours["power_words"][version], [at // 4 for at, _ in pair])
    oldest, newest = ours["known_versions"]
    if not oldest <= int(version.split(".")[0]) <= newest:
        found.append(f"{binding.name}: version {version} is refused")
    return found


def compare_nvml(binding, ours):
    return (compare_structs(binding, NVML_STRUCTS, ours["structs"], exact=True) +
            compare_functions(binding, NVML_STRUCTS, ours["functions"]) +
            compare_constants(binding, NVML_CONSTANTS, ours["constants"]) +
            compare_statuses(binding, "NVML_ERROR_", NVML_STATUSES, ours["statuses"]) +
            compare_throttle(binding, ours["throttle_bits"]))


def compare_amd_smi(binding, version, ours):
    return (compare_structs(binding, AMD_SMI_STRUCTS, ours["structs"], exact=False) +
            compare_functions(binding, AMD_SMI_STRUCTS, ours["functions"]) +
            compare_constants(binding, AMD_SMI_CONSTANTS, ours["constants"]) +
            compare_statuses(binding, "AMDSMI_STATUS_", AMD_SMI_STATUSES, ours["statuses"]) +
            compare_power(binding, version, ours))


def compare_all(nvml, amd_smi, ours):
    found = compare_nvml(nvml, ours["nvml"])
    for version, binding in amd_smi.items():
        found += compare_amd_smi(binding, version, ours["amd_smi"])
    return found


# Mistakes, and the words with which the comparison must report each.
MISTAKES = [
    (["amd_smi", "structs", "Metrics", "fields", "cycles"], [432, 8], "amdsmi 6.3.1, Metrics for amdsmi_gpu_metrics_t, cycles"),
    (["amd_smi", "structs", "Metrics", "fields", "cycles"], [416, 8], "amdsmi 6.2.4, Metrics for amdsmi_gpu_metrics_t, cycles"),
    (["amd_smi", "structs", "Metrics", "size"], 4096, "amdsmi 7.0.2, Metrics for amdsmi_gpu_metrics_t: ours has 4096 bytes"),
    (["amd_smi", "structs", "Text", "fields", "text"], [4, 4096], "amdsmi 6.1.2, Text for amdsmi_asic_info_t, text"),
    (["nvml", "structs", "Process", "size"], 32, "Process for c_nvmlProcessInfo_v3_t: ours has 32 bytes"),
    (["nvml", "structs", "Memory", "fields", "used"], [8, 8], "Memory for c_nvmlMemory_t, used"),
    (["nvml", "functions", "nvmlDeviceGetTemperature"], ["integer32", "handle", "*integer32"], "nvmlDeviceGetTemperature: ours"),
    (["nvml", "functions", "nvmlDeviceGetTemperatures"], ["integer32"], "nvmlDeviceGetTemperatures: the binding lacks it"),
    (["amd_smi", "functions", "amdsmi_get_energy_count"], ["integer32", "handle", "*integer64"], "amdsmi_get_energy_count: ours"),
    (["amd_smi", "functions", "amdsmi_get_energy"], ["integer32"], "amdsmi_get_energy: the binding lacks it"),
    (["nvml", "constants", "clock_memory"], 1, "clock_memory"),
    (["amd_smi", "constants", "temperature_hotspot"], 0, "amdsmi 6.1.2, temperature_hotspot"),
    (["nvml", "statuses", "13"], "the library is incomplete", "status 13"),
    (["amd_smi", "statuses", "34"], "no data", "status 34"),
    (["nvml", "throttle_bits", "9"], None, "bit 9"),
    (["amd_smi", "power_words", "25.1"], [2, 3], "words of power in version 25.1"),
    (["amd_smi", "known_versions"], [24, 25], "version 26.0 is refused"),
]


def find_unnoticed(nvml, amd_smi, ours):
    """The mistakes that the comparison would not report."""
    unnoticed = []
    for path, wrong, words in MISTAKES:
        mistaken = copy.deepcopy(ours)
        place = mistaken
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = wrong
        if not any(words in sentence for sentence in compare_all(nvml, amd_smi, mistaken)):
            unnoticed.append(f"the comparison does not notice {'.'.join(path)} = {wrong}")
    return unnoticed


def find_bindings():
    """Paths of the AMD bindings; none where a binding is missing."""
    pinned = re.findall(r"^amdsmi==(\S+)", REQUIREMENTS.read_text(), re.MULTILINE)
    if sorted(pinned) != sorted(LIBRARY_VERSIONS):
        sys.exit(f"{REQUIREMENTS.name} names {pinned}, and LIBRARY_VERSIONS {sorted(LIBRARY_VERSIONS)}")
    paths = {version: pathlib.Path(sys.prefix, f"amdsmi-{version}/amdsmi/amdsmi_wrapper.py") for version in pinned}
    missing = [f"amdsmi-{version}" for version, path in paths.items() if not path.exists()]
    if importlib.util.find_spec("pynvml") is None:
        missing.insert(0, "nvidia-ml-py")
    if missing:
        print(f"skipped: {sys.executable} lacks {', '.join(missing)}; ./test.sh --all installs them, or into a Python of your own:\n"
              "  python3 -m venv /tmp/smi && /tmp/smi/bin/pip install nvidia-ml-py\n"
              "  for v in " + " ".join(pinned) + "; do /tmp/smi/bin/pip install --no-deps --target /tmp/smi/amdsmi-$v amdsmi==$v; done\n"
              "  TPRIMAT_PYTHON=/tmp/smi/bin/python ctest -L parity")
        return {}
    return paths


def main():
    use_chosen_python()
    paths = find_bindings()
    if not paths:
        return SKIPPED
    nvml = load_nvml()
    amd_smi = {LIBRARY_VERSIONS[version]: load_amd_smi(version, path) for version, path in paths.items()}
    output = subprocess.run([sys.argv[1], *amd_smi], capture_output=True, text=True, check=True).stdout
    ours = json.loads(output)
    found = compare_all(nvml, amd_smi, ours)
    found += [] if found else find_unnoticed(nvml, amd_smi, ours)
    print("\n".join(found) or f"the same in nvidia-ml-py and {len(amd_smi)} versions of amdsmi; {len(MISTAKES)} mistakes are noticed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
