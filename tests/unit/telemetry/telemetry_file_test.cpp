#include "telemetry/telemetry_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "example_data.h"

namespace tprimat {
namespace {

constexpr double k_mib = 1048576.0;

TelemetryFile read(std::string_view text) { return read_telemetry_text(text, "file"); }

std::string refusal(std::string_view text) {
  try {
    read(text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const SensorTrace& trace(const TelemetryFile& file, std::string_view source) {
  for (const SensorTrace& each : file.traces)
    if (each.source == source) return each;
  ADD_FAILURE() << "no trace " << source;
  static const SensorTrace k_none{"", {Reading{}}};
  return k_none;
}

TEST(NvidiaSmiCsv, SortsInterleavedRowsByDevice) {
  const TelemetryFile file = read(
      "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, "
      "power.draw [W], clocks.current.sm [MHz]\r\n"
      "2025/03/01 00:00:10.500, 0, NVIDIA X, 50 %, 1000 MiB, 2000 MiB, 40, 100.25 W, 1500 MHz\r\n"
      "2025/03/01 00:00:10.500, 1, NVIDIA X, [N/A], [Not Supported], 2000 MiB, 41, [N/A], 1501 MHz\r\n"
      "2025/03/01 00:00:12.500, 1, NVIDIA X, 7 %, 1002 MiB, 2000 MiB, 42, 102.00 W, 1502 MHz\r\n"
      "2025/03/01 00:00:11.500, 1, NVIDIA X, 6 %, 1001 MiB, 2000 MiB, 43, 101.00 W, 1503 MHz\r\n");
  EXPECT_EQ(file.format, "nvidia-smi csv");
  EXPECT_TRUE(file.timed);
  ASSERT_EQ(file.traces.size(), 2u);
  const Reading first = trace(file, "nvidia-smi:0").readings.at(0);
  EXPECT_DOUBLE_EQ(first.unix_time, 1740787210.5);
  EXPECT_DOUBLE_EQ(first.utilisation.value(), 0.5);
  EXPECT_DOUBLE_EQ(first.power_watts.value(), 100.25);
  EXPECT_DOUBLE_EQ(first.memory_used_bytes.value(), 1000 * k_mib);
  EXPECT_DOUBLE_EQ(first.temperature_celsius.value(), 40.0);
  EXPECT_DOUBLE_EQ(first.clock_hz.value(), 1.5e9);
  const auto& second = trace(file, "nvidia-smi:1").readings;
  ASSERT_EQ(second.size(), 3u);
  EXPECT_FALSE(second[0].power_watts.has_value());
  EXPECT_FALSE(second[0].memory_used_bytes.has_value());
  EXPECT_DOUBLE_EQ(second[1].power_watts.value(), 101.0);  // by time, not by place
  EXPECT_EQ(file.devices[1].name, "NVIDIA X");
  EXPECT_DOUBLE_EQ(file.devices[1].memory_total_bytes.value(), 2000 * k_mib);
  ASSERT_EQ(file.notes.size(), 1u);
  EXPECT_NE(file.notes[0].find("read as UTC"), std::string::npos);
}

TEST(NvidiaSmiCsv, TakesUnitsFromTheHeaderAndSkipsLinesThatDoNotFit) {
  const TelemetryFile file = read(
      "index, memory.used [MiB], power.draw [W]\n"
      "0, 10, 55\n"
      "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error\n"
      "10, 20, 57\n"
      "index, memory.used [MiB], power.draw [W]\n"
      "9, 30, 58\n");
  EXPECT_FALSE(file.timed);
  ASSERT_EQ(file.traces.size(), 3u);
  EXPECT_EQ(file.traces[1].source, "nvidia-smi:9");  // 9 before 10
  EXPECT_DOUBLE_EQ(file.traces[2].readings[0].memory_used_bytes.value(), 20 * k_mib);
  ASSERT_EQ(file.notes.size(), 2u);
  EXPECT_NE(file.notes[1].find("the first is line 3"), std::string::npos);
}

TEST(NvidiaSmiCsv, RefusesWhatNamesNoColumnsOrNoDevice) {
  EXPECT_EQ(refusal("0, 297.37, 638, [N/A]\n1, 289.76, 638, [N/A]\n"),
            "file: holds 2 rows of 4 columns without a header, so the meaning of its columns is unknown\n"
            "  keep the header: nvidia-smi --query-gpu=... --format=csv, without noheader");
  EXPECT_NE(refusal("timestamp, power.draw [W]\n2025/03/01 00:00:10.500, 1 W\n2025/03/01 00:00:10.502, 2 W\n")
                .find("no column that names the device"),
            std::string::npos);
  const TelemetryFile one = read("timestamp, power.draw [W]\n2025/03/01 00:00:10.5, 1 W\n2025/03/01 00:00:11.5, 2 W\n");
  EXPECT_EQ(trace(one, "nvidia-smi").readings.size(), 2u);
}

TEST(NvidiaSmiCsv, LeavesOutWhatNoGpuCanBe) {
  const TelemetryFile file = read(
      "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu, power.draw [W]\n"
      "2025/03/01 00:00:10.500, 0, 50 %, 1000 MiB, 2000 MiB, 255, 100.00 W\n"
      "2025/03/01 00:00:11.500, 0, 50 %, 3000 MiB, 2000 MiB, 40, 2147483.00 W\n");
  const SensorTrace& device = trace(file, "nvidia-smi:0");
  EXPECT_FALSE(device.readings[0].temperature_celsius.has_value());
  EXPECT_TRUE(device.readings[0].power_watts.has_value());
  EXPECT_FALSE(device.readings[1].power_watts || device.readings[1].memory_used_bytes);
  ASSERT_EQ(device.notes.size(), 3u);
  EXPECT_EQ(device.notes[0], "temperature: no GPU runs at that, such as 255 C (1 of 2 readings)");
}

TEST(NvidiaSmiDmon, ReadsColumnsByName) {
  const TelemetryFile file = read(
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb \n"
      "# Idx      W      C      C      %      %    MHz    MHz     MB \n"
      "    0    294     81      -     98     57  13365   1897  90538 \n"
      "    1      -     80      -     51      3  13365   1192  48243 \n"
      "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb \n"
      "    0    295     82      -     99     57  13365   1897  90539 \n");
  EXPECT_FALSE(file.timed);
  const auto& readings = trace(file, "nvidia-smi:0").readings;
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].unix_time, 0.0);
  EXPECT_DOUBLE_EQ(readings[1].power_watts.value(), 295.0);
  EXPECT_DOUBLE_EQ(readings[1].utilisation.value(), 0.99);
  EXPECT_DOUBLE_EQ(readings[1].memory_used_bytes.value(), 90539 * k_mib);
  EXPECT_DOUBLE_EQ(readings[1].clock_hz.value(), 1897e6);
  EXPECT_FALSE(trace(file, "nvidia-smi:1").readings[0].power_watts.has_value());
}

TEST(NvidiaSmiDmon, DateAndTimeShiftTheColumns) {
  const TelemetryFile file = read(
      "#Date       Time        gpu    pwr   temp     sm  pviol  tviol     fb\n"
      "#YYYYMMDD   HH:MM:SS    Idx      W      C      %      %   bool     MB\n"
      " 20250301   00:00:10      0      6     38     11      3      1      2\n");
  EXPECT_TRUE(file.timed);
  const Reading reading = trace(file, "nvidia-smi:0").readings.at(0);
  EXPECT_DOUBLE_EQ(reading.unix_time, 1740787210.0);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 6.0);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 38.0);
  EXPECT_DOUBLE_EQ(file.devices[0].peak_power_throttling.value(), 0.03);
  EXPECT_TRUE(file.devices[0].thermal_throttling_seen.value());
}

TEST(NvidiaSmiDmon, TimeOfDayAloneIsNoTime) {
  EXPECT_FALSE(read("#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 00:00:10      0      6\n").timed);
}

TEST(RocmSmiTable, ReadsTwoLinesPerDevice) {
  const TelemetryFile file = read(R"(============ ROCm System Management Interface ============
Device  Node  IDs              Temp    Power  Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Edge)  (Avg)  (Mem, Compute, ID)
==========================================================
0       1     0x744c,   52092  45.0°C  20.0W  N/A, N/A, 0         62Mhz   96Mhz   0%   auto  241.0W  7%     3%
1       2     0x744c,   52093  N/A     N/A    N/A, N/A, 0         None    96Mhz   0%   auto  241.0W  8%     N/A
)");
  EXPECT_EQ(file.format, "rocm-smi table");
  const Reading reading = trace(file, "rocm-smi:0").readings.at(0);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 45.0);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 20.0);  // not the cap
  EXPECT_DOUBLE_EQ(reading.clock_hz.value(), 62e6);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.03);
  EXPECT_DOUBLE_EQ(file.devices[0].peak_memory_fraction.value(), 0.07);
  const Reading blank = trace(file, "rocm-smi:1").readings.at(0);
  EXPECT_FALSE(blank.power_watts.has_value());
  EXPECT_FALSE(blank.clock_hz.has_value());  // not that of the memory
  EXPECT_FALSE(blank.utilisation.has_value());
}

TEST(RocmSmiTable, ReadsTheOldColumnsAndTheNameLine) {
  const TelemetryFile old = read(
      "GPU  Temp   AvgPwr  SCLK     MCLK    Fan     Perf  PwrCap  VRAM%  GPU%\n"
      "1    24.0c  10.0W   1269Mhz  945Mhz  97.65%  auto  220.0W    5%   9%\n");
  EXPECT_DOUBLE_EQ(trace(old, "rocm-smi:1").readings[0].power_watts.value(), 10.0);
  EXPECT_DOUBLE_EQ(trace(old, "rocm-smi:1").readings[0].utilisation.value(), 0.09);
  EXPECT_NE(refusal("GPU  Temp   AvgPwr  VRAM%  GPU%\n1    24.0c  10.0W  5%   9%\n").find("holds no reading"),
            std::string::npos);  // out of line: the 9 % would be the memory's
  const TelemetryFile named = read(
      "Device  [Model : Revision]    Temp        Power     Partitions      SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  "
      "GPU%\n"
      "        Name (20 chars)       (Junction)  (Socket)  (Mem, Compute)\n"
      "====\n"
      "2       [0x74a1 : 0x00]       45.0\u00b0C      173.0W    NPS1, SPX       132Mhz  900Mhz  0%   auto  750.0W   "
      "17%   4%\n"
      "        AMD Instinct Z\n"
      "====\n");
  EXPECT_EQ(named.devices.at(0).name, "AMD Instinct Z");
  EXPECT_DOUBLE_EQ(named.devices[0].peak_memory_fraction.value(), 0.17);
  EXPECT_DOUBLE_EQ(named.traces[0].readings.at(0).power_watts.value(), 173.0);
}

TEST(RocmSmiJson, ReadsNumbersInStrings) {
  const std::string text = R"json(WARNING: AMD GPU device(s) is/are in a low-power state
{"card0": {"Temperature (Sensor edge) (C)": "35.0", "Temperature (Sensor junction) (C)": "36.0", "GPU use (%)": "3",
"Average Graphics Package Power (W)": "19.5", "VRAM Total Used Memory (B)": "4096"},
"card1": {"Current Socket Graphics Package Power (W)": "12.25", "sclk clock speed:": "(132Mhz)"},
"system": {"Driver version": "6.1"}}
)json";
  const TelemetryFile file = read(text + text);
  EXPECT_EQ(file.format, "rocm-smi json");
  ASSERT_EQ(file.traces.size(), 2u);
  ASSERT_EQ(trace(file, "rocm-smi:0").readings.size(), 2u);
  const Reading reading = trace(file, "rocm-smi:0").readings[1];
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 36.0);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 19.5);
  EXPECT_DOUBLE_EQ(reading.memory_used_bytes.value(), 4096.0);
  EXPECT_DOUBLE_EQ(trace(file, "rocm-smi:1").readings[0].clock_hz.value(), 132e6);
}

TEST(RocmSmiCsv, ReadsCards) {
  const TelemetryFile file = read(
      "device,VRAM Total Memory (B),VRAM Total Used Memory (B),Card series\n"
      "card0,17163091968,10854400,\"Vega 20 [Pro, 32GB]\"\n\n");
  EXPECT_DOUBLE_EQ(trace(file, "rocm-smi:0").readings.at(0).memory_used_bytes.value(), 10854400.0);
  EXPECT_EQ(file.devices[0].name, "Vega 20 [Pro, 32GB]");
}

TEST(RocmSmiListing, JoinsSectionsOfOneQuery) {
  const TelemetryFile file = read(
      "GPU[0]\t\t: Average Graphics Package Power (W): 35.0\n"
      "GPU[1]\t\t: Average Graphics Package Power (W): 36.0\n"
      "GPU[0]\t\t: GPU use (%): 12\n"
      "GPU[0]\t\t: Max Graphics Package Power (W): 300.0\n"
      "GPU[0]\t\t: Average Graphics Package Power (W): 37.0\n");
  const auto& readings = trace(file, "rocm-smi:0").readings;
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_DOUBLE_EQ(readings[0].utilisation.value(), 0.12);
  EXPECT_DOUBLE_EQ(readings[1].power_watts.value(), 37.0);
  EXPECT_EQ(trace(file, "rocm-smi:1").readings.size(), 1u);
}

TEST(AmdSmiMonitor, ReadsUnitsApartFromNumbers) {
  const TelemetryFile file = read(
      "GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  VRAM_USED  VRAM_TOTAL   PCIE_BW\n"
      "  0  171 W     32 \u00b0C     33 \u00b0C       9 %    114 MHz     283 MB   196300 MB  N/A Mb/s\n"
      "\n"
      "PROCESS INFO:\n"
      "GPU                  NAME      PID  GTT_MEM  CPU_MEM  VRAM_MEM\n"
      "  0                   rvs  1564865    0.0 B    0.0 B    1.1 GB\n");
  ASSERT_EQ(file.traces.size(), 1u);
  ASSERT_EQ(file.traces[0].readings.size(), 1u);
  const Reading reading = trace(file, "amd-smi:0").readings[0];
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 171.0);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 32.0);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.09);
  EXPECT_DOUBLE_EQ(reading.clock_hz.value(), 114e6);
  EXPECT_DOUBLE_EQ(reading.memory_used_bytes.value(), 283 * k_mib);
}

TEST(AmdSmiMonitor, ReadsTheTableOfNewReleasesWhileWatching) {
  const TelemetryFile file = read(
      "TIMESTAMP  GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%      VRAM_USAGE\n"
      "1740787210   0    0  123 W   49 \u00b0C   48 \u00b0C  1427 MHz   12 %    0 %    0.5/ 192.0 GB\n"
      "1740787210   0    1    N/A     N/A     N/A       N/A    N/A    N/A    0.0/ 192.0 GB\n"
      "TIMESTAMP  GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%      VRAM_USAGE\n"
      "1740787211   0    0  124 W   49 \u00b0C   48 \u00b0C  1427 MHz   12 %    0 %  512.0/8192.0 MB\n"
      "1740787212   0    0  124 W   49 \u00b0C\n");
  EXPECT_TRUE(file.timed);
  const auto& readings = trace(file, "amd-smi:0").readings;
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_DOUBLE_EQ(readings[0].unix_time, 1740787210.0);
  EXPECT_DOUBLE_EQ(readings[0].memory_used_bytes.value(), 512 * k_mib);
  EXPECT_DOUBLE_EQ(readings[1].memory_used_bytes.value(), 512 * k_mib);
  EXPECT_EQ(trace(file, "amd-smi:0.1").readings.size(), 1u);
  EXPECT_NE(file.notes.at(0).find("the first is line 6"), std::string::npos);
}

TEST(AmdSmiMonitor, KeepsThrottling) {
  const TelemetryFile file = read(
      "GPU  PVIOL  TVIOL  TVIOL_ACTIVE  PHOT_TVIOL\n"
      "0  100 %    1 %          True         0 %\n"
      "1   40 %    0 %         False         0 %\n");
  EXPECT_DOUBLE_EQ(file.devices.at(0).peak_power_throttling.value(), 1.0);
  EXPECT_TRUE(file.devices[0].thermal_throttling_seen.value());
  EXPECT_DOUBLE_EQ(file.devices.at(1).peak_power_throttling.value(), 0.4);
  EXPECT_FALSE(file.devices[1].thermal_throttling_seen.value());
  EXPECT_FALSE(file.traces[0].readings.at(0).power_watts.has_value());
}

TEST(AmdSmiCsv, ReadsMonitorAndMetric) {
  const TelemetryFile metric = read(
      "timestamp,gpu,gfx_activity,vcn_activity,socket_power,gfx_voltage,gfx_0_clk,gfx_0_min_clk,edge,hotspot,used_"
      "vram\r\n"
      "1740787210,0,95,\"['N/A', 'N/A']\",1180,850,2100,500,N/A,78,1000\r\n"
      "1740787211,0,96,\"['N/A', 'N/A']\",N/A,850,2100,500,55,N/A,1000\r\n");
  const auto& readings = trace(metric, "amd-smi:0").readings;
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_DOUBLE_EQ(readings[0].power_watts.value(), 1180.0);
  EXPECT_DOUBLE_EQ(readings[0].temperature_celsius.value(), 78.0);
  EXPECT_DOUBLE_EQ(readings[1].temperature_celsius.value(), 55.0);  // edge, where the hotspot is not known
  EXPECT_FALSE(readings[1].power_watts.has_value());
  EXPECT_DOUBLE_EQ(readings[1].clock_hz.value(), 2100e6);
  EXPECT_DOUBLE_EQ(readings[1].memory_used_bytes.value(), 1000 * k_mib);
  const TelemetryFile monitor = read("gpu,xcp,power_usage,hotspot_temperature,gfx_clk,gfx\n0,0,300,60,1900,50\n");
  EXPECT_DOUBLE_EQ(trace(monitor, "amd-smi:0").readings.at(0).utilisation.value(), 0.5);
}

TEST(AmdSmiJson, ReadsValuesWithAndWithoutUnits) {
  const TelemetryFile file = read(
      R"json([{"gpu": 1, "usage": {"gfx_activity": {"value": 73, "unit": "%"}}, "power": {"socket_power": {"value": 142, "unit": "W"}},
          "clock": {"gfx_0": {"clk": {"value": 132, "unit": "MHz"}}}, "temperature": {"edge": 45, "hotspot": "N/A"},
          "energy": {"total_energy_consumption": {"value": 12.5, "unit": "J"}},
          "mem_usage": {"total_vram": {"value": 2000, "unit": "MB"}, "used_vram": 100}}])json");
  const Reading reading = trace(file, "amd-smi:1").readings.at(0);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.73);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 142.0);
  EXPECT_DOUBLE_EQ(reading.energy_joules.value(), 12.5);
  EXPECT_DOUBLE_EQ(reading.clock_hz.value(), 132e6);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 45.0);
  EXPECT_DOUBLE_EQ(reading.memory_used_bytes.value(), 100 * k_mib);
}

TEST(AmdSmiJson, ReadsDocumentsOneAfterAnother) {
  const TelemetryFile file = read(
      R"({"gpu_data": [{"timestamp": 1740787210, "gpu": 0, "power": {"socket_power": 100}}]}
{"gpu_data": [{"timestamp": 1740787211, "gpu": 0, "power": {"socket_power": 101}}]}
{"gpu_data": [{"timestamp": 1740787212, "gpu": 0, "pow)");
  EXPECT_TRUE(file.timed);
  EXPECT_EQ(trace(file, "amd-smi:0").readings.size(), 2u);
  EXPECT_EQ(file.notes.at(0), "the last JSON document is truncated and ignored");
  EXPECT_NE(refusal(R"([{"gpu": 0, "power": )").find("file:1:"), std::string::npos);
}

TEST(TelemetryFileFormats, RefusesEverythingElse) {
  EXPECT_NE(refusal("").find("not a known output of nvidia-smi"), std::string::npos);
  EXPECT_NE(refusal("iteration 1/2 | loss 3").find("not a known output of nvidia-smi"), std::string::npos);
  EXPECT_NE(refusal("index, power.draw [W]\n0, [N/A]\n").find("holds no reading"), std::string::npos);
  EXPECT_NE(refusal("timestamp, index, power.draw [W]\n").find("holds no reading"), std::string::npos);
  for (const std::string_view hostile : {"# gpu", "#gpu pwr\n,,,,\n", "GPU POWER\n0 1e999 W\n", "GPU[", "GPU[0]: :",
                                         "index, power.draw [W]\n0, -5 W\n", "{\"card0\"", "Device Temp Power SCLK\n0"})
    EXPECT_NE(refusal(hostile), "") << hostile;
}

// The samples are not part of the project; where they lie beside it, their facts must come out.
class SampleTelemetry : public testing::Test {
 protected:
  TelemetryFile load(const std::string& name) {
    return load_telemetry_file(std::filesystem::path(TPRIMAT_SHARED_DATA) / "telemetry" / name);
  }
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/telemetry"); }
};

TEST_F(SampleTelemetry, NvidiaSmi) {
  const TelemetryFile csv = load("nvidia_smi_query_csv_2xH100_interleaved.csv");
  ASSERT_EQ(csv.traces.size(), 2u);
  EXPECT_EQ(csv.traces[0].readings.size() + csv.traces[1].readings.size(), 4u);
  EXPECT_DOUBLE_EQ(trace(csv, "nvidia-smi:2").readings[0].power_watts.value(), 154.88);
  EXPECT_EQ(csv.devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_THROW(load("nvidia_smi_query_csv_nounits_rtxpro6000.csv"), Error);
  const TelemetryFile dmon = load("nvidia_smi_dmon_pucm_4gpu.txt");
  EXPECT_EQ(dmon.traces.size(), 4u);
  EXPECT_DOUBLE_EQ(trace(dmon, "nvidia-smi:0").readings.at(0).power_watts.value(), 294.0);
  EXPECT_DOUBLE_EQ(trace(dmon, "nvidia-smi:0").readings[0].utilisation.value(), 0.98);
  EXPECT_DOUBLE_EQ(trace(dmon, "nvidia-smi:0").readings[0].memory_used_bytes.value(), 90538 * k_mib);
  const TelemetryFile dated = load("nvidia_smi_dmon_with_date_time_options_DT.txt");
  EXPECT_TRUE(dated.timed);
  EXPECT_EQ(trace(dated, "nvidia-smi:0").readings.size(), 2u);
}

TEST_F(SampleTelemetry, RocmSmi) {
  const TelemetryFile table = load("rocm_smi_8xMI300X.txt");
  ASSERT_EQ(table.traces.size(), 8u);
  EXPECT_DOUBLE_EQ(table.traces[0].readings.at(0).temperature_celsius.value(), 45.0);
  EXPECT_DOUBLE_EQ(table.traces[0].readings[0].power_watts.value(), 173.0);
  EXPECT_DOUBLE_EQ(table.devices[0].peak_memory_fraction.value(), 0.0);
  EXPECT_DOUBLE_EQ(table.devices[3].peak_memory_fraction.value(), 0.17);
  EXPECT_EQ(load("rocm_smi_mi300a_model_rev.txt").traces.size(), 1u);
  const TelemetryFile json = load("rocm_smi_json_2card_gfx1201_apu.json");
  EXPECT_DOUBLE_EQ(trace(json, "rocm-smi:0").readings.at(0).power_watts.value(), 19.0);
  EXPECT_DOUBLE_EQ(trace(json, "rocm-smi:0").readings[0].memory_used_bytes.value(), 29225381888.0);
  EXPECT_DOUBLE_EQ(trace(json, "rocm-smi:1").readings.at(0).power_watts.value(), 12.134);
}

TEST_F(SampleTelemetry, AmdSmi) {
  const TelemetryFile monitor = load("amd_smi_monitor_ptumv_mi300x_rocm6.0.txt");
  ASSERT_EQ(monitor.traces.size(), 8u);
  EXPECT_DOUBLE_EQ(monitor.traces[0].readings.at(0).power_watts.value(), 171.0);
  EXPECT_DOUBLE_EQ(monitor.traces[0].readings[0].temperature_celsius.value(), 32.0);
  EXPECT_DOUBLE_EQ(monitor.traces[0].readings[0].memory_used_bytes.value(), 283 * k_mib);
  EXPECT_DOUBLE_EQ(monitor.devices[0].memory_total_bytes.value(), 196300 * k_mib);
  EXPECT_EQ(load("amd_smi_monitor_ptv_mi300x.txt").traces.size(), 32u);
  const Reading busy = load("amd_smi_monitor_q_process.txt").traces.at(0).readings.at(0);
  EXPECT_DOUBLE_EQ(busy.power_watts.value(), 199.0);
  EXPECT_DOUBLE_EQ(busy.utilisation.value(), 0.99);
  EXPECT_DOUBLE_EQ(busy.memory_used_bytes.value(), 1235 * k_mib);
  const TelemetryFile throttled = load("amd_smi_monitor_viol_tviol_active_8gpu.txt");
  ASSERT_EQ(throttled.devices.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(throttled.devices[i].peak_power_throttling.value(), 1.0);
    EXPECT_EQ(throttled.devices[i].thermal_throttling_seen.value(), i == 0 || i == 5);
  }
  EXPECT_EQ(load("amd_smi_monitor_violation_rocm6.3.txt").traces.size(), 16u);
  EXPECT_DOUBLE_EQ(load("amd_smi_metric_power_units.json").traces.at(0).readings.at(0).power_watts.value(), 10.0);
}

}  // namespace
}  // namespace tprimat
