// How src/core/telemetry declares NVML and AMD SMI, as JSON: sizes and offsets of structs, functions with their
// arguments, constants, texts of status codes, throttle reasons.
//   telemetry_layouts VERSION...       versions of AMD SMI, such as 25.1
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "telemetry/amd_smi_functions.h"
#include "telemetry/nvml_functions.h"
#include "telemetry/sensor.h"

namespace {

using Json = nlohmann::ordered_json;
namespace amd_smi = tprimat::amd_smi;
namespace nvml = tprimat::nvml;

template <class Struct>
constexpr const char* k_struct_name = nullptr;
#define NAME(library, Struct) \
  template <>                 \
  constexpr const char* k_struct_name<library::Struct> = #Struct
NAME(nvml, Memory);
NAME(nvml, Utilization);
NAME(nvml, Process);
NAME(amd_smi, Version);
NAME(amd_smi, Text);
NAME(amd_smi, Activity);
NAME(amd_smi, Clock);
NAME(amd_smi, PowerCap);
NAME(amd_smi, ErrorCount);
NAME(amd_smi, KfdInfo);
NAME(amd_smi, Power);
NAME(amd_smi, Metrics);
#undef NAME

// "handle", "char", "integer32", "real32" or a struct's name, behind "*" for a pointer to it.
template <class Type>
std::string describe_type() {
  if constexpr (std::is_same_v<Type, void*>)
    return "handle";
  else if constexpr (std::is_pointer_v<Type>)
    return "*" + describe_type<std::remove_pointer_t<Type>>();
  else if constexpr (std::is_same_v<Type, char>)
    return "char";
  else if constexpr (std::is_integral_v<Type>)
    return "integer" + std::to_string(8 * sizeof(Type));
  else if constexpr (std::is_floating_point_v<Type>)
    return "real" + std::to_string(8 * sizeof(Type));
  else {
    static_assert(k_struct_name<Type> != nullptr);
    return k_struct_name<Type>;
  }
}

// In place of a library: writes down which functions are looked for, from symbols to the types of result and arguments.
struct FunctionList {
  struct Symbols {
    Json& all;
    std::vector<const char*> names;
    template <class Result, class... Arguments>
    using Function = Result (*)(Arguments...);
    template <class Result, class... Arguments>
    operator Function<Result, Arguments...>() const {
      for (const char* name : names)
        all[name] = std::initializer_list<std::string>{describe_type<Result>(), describe_type<Arguments>()...};
      return nullptr;
    }
  };
  template <class... Names>
  Symbols find(Names... names) const {
    return {all, {names...}};
  }
  Json& all;
};

template <template <class> class Functions>
Json describe_functions() {
  Json all = Json::object();
  const FunctionList list{all};
  [[maybe_unused]] const Functions<FunctionList> functions{list};
  return all;
}

struct Field {
  const char* name;
  size_t offset, size;
};
#define FIELD(Struct, field) \
  { #field, offsetof(Struct, field), sizeof(Struct::field) }

template <class Struct>
void add_struct(Json& all, std::initializer_list<Field> fields) {
  Json& layout = all[k_struct_name<Struct>];
  layout["size"] = sizeof(Struct);
  for (const Field& field : fields) layout["fields"][field.name] = {field.offset, field.size};
}

Json describe_nvml_structs() {
  using namespace nvml;
  Json all;
  add_struct<Memory>(all, {FIELD(Memory, total), FIELD(Memory, free), FIELD(Memory, used)});
  add_struct<Utilization>(all, {FIELD(Utilization, gpu), FIELD(Utilization, memory)});
  add_struct<Process>(all, {FIELD(Process, process), FIELD(Process, memory), FIELD(Process, gpu_instance),
                            FIELD(Process, compute_instance)});
  return all;
}

Json describe_amd_smi_structs() {
  using namespace amd_smi;
  Json all;
  add_struct<Version>(all, {FIELD(Version, first), FIELD(Version, second)});
  add_struct<Text>(all, {FIELD(Text, text)});
  add_struct<Activity>(all, {FIELD(Activity, gfx), FIELD(Activity, memory_controller), FIELD(Activity, multimedia)});
  add_struct<Clock>(all, {FIELD(Clock, now), FIELD(Clock, lowest), FIELD(Clock, highest)});
  add_struct<PowerCap>(all, {FIELD(PowerCap, now)});
  add_struct<ErrorCount>(all, {FIELD(ErrorCount, correctable), FIELD(ErrorCount, uncorrectable)});
  add_struct<KfdInfo>(all, {FIELD(KfdInfo, id)});
  add_struct<Power>(all, {});
  add_struct<Metrics>(all, {FIELD(Metrics, throttle)});
  for (const Field& field : std::initializer_list<Field>{
           FIELD(Residency, cycles), FIELD(Residency, prochot), FIELD(Residency, power), FIELD(Residency, socket_heat),
           FIELD(Residency, regulator_heat), FIELD(Residency, memory_heat)})
    all["Metrics"]["fields"][field.name] = {offsetof(Metrics, residency) + field.offset, field.size};
  return all;
}

Json describe_statuses(std::string_view (*describe)(int)) {
  constexpr int k_end = 1 << 10;
  Json texts;
  for (int status = 1; status < k_end; ++status)
    if (describe(status) != describe(-1)) texts[std::to_string(status)] = describe(status);
  return texts;
}

// From a bit of NVML's mask to the names of the reasons that it becomes.
Json describe_throttle_bits() {
  Json bits;
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const auto& [reason, name] : tprimat::k_throttle_names)
      if ((nvml::to_throttle(1ULL << bit) & reason) != 0) bits[std::to_string(bit)].push_back(name);
  return bits;
}

// Which words of amd_smi::Power are read, the first choice first.
Json describe_power_words(const char* text) {
  amd_smi::Version version;
  std::sscanf(text, "%u.%u", &version.first, &version.second);
  amd_smi::Power power;
  for (uint32_t word = 0; word < std::size(power.words); ++word) power.words[word] = word + 1;
  Json words = Json::array();
  while (const auto watts = amd_smi::power_watts(power, version)) {
    const auto word = static_cast<uint32_t>(*watts) - 1;
    power.words[word] = UINT32_MAX;  // which stands for what a chip does not tell
    words.push_back(word);
  }
  return words;
}

Json describe_nvml() {
  using namespace nvml;
  return {{"structs", describe_nvml_structs()},
          {"functions", describe_functions<Functions>()},
          {"constants",
           {{"insufficient_size", k_insufficient_size},
            {"unknown_memory", k_unknown_memory},
            {"temperature_gpu", k_temperature_gpu},
            {"threshold_slowdown", k_threshold_slowdown},
            {"clock_sm", k_clock_sm},
            {"clock_memory", k_clock_memory},
            {"error_uncorrected", k_error_uncorrected},
            {"counter_volatile", k_counter_volatile}}},
          {"statuses", describe_statuses(describe_status)},
          {"throttle_bits", describe_throttle_bits()}};
}

Json describe_amd_smi() {
  using namespace amd_smi;
  return {{"structs", describe_amd_smi_structs()},
          {"functions", describe_functions<Functions>()},
          {"constants",
           {{"init_gpus", k_init_gpus},
            {"processor_gpu", k_processor_gpu},
            {"memory_vram", k_memory_vram},
            {"temperature_hotspot", k_temperature_hotspot},
            {"temperature_current", k_temperature_current},
            {"clock_gfx", k_clock_gfx},
            {"clock_memory", k_clock_memory}}},
          {"statuses", describe_statuses(describe_status)},
          {"known_versions", {k_oldest_known, k_newest_known}}};
}

}  // namespace

int main(int count, char** arguments) {
  Json all{{"nvml", describe_nvml()}, {"amd_smi", describe_amd_smi()}};
  for (int i = 1; i < count; ++i) all["amd_smi"]["power_words"][arguments[i]] = describe_power_words(arguments[i]);
  std::cout << all.dump(1) << '\n';
}
