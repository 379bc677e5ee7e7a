#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "archive/archive_format.h"
#include "base/error.h"
#include "config/experiment.h"
#include "result/run_result.h"
#include "telemetry/machine.h"
#include "text/fields.h"
#include "text/json.h"
#include "text/json_members.h"

// What the commands of this folder print as JSON where no module below has a struct for it: JSON and schema follow from
// the field lists.
namespace tprimat::cli::document {

struct DetectedFramework {
  Framework id = Framework::native;
  std::string name;
  std::vector<Platform> platforms;
  bool installed = false;
  std::optional<std::string> version, place, lacking;

  static constexpr auto fields() {
    using D = DetectedFramework;
    return field_list(field("id", &D::id, "framework"), field("name", &D::name, "name for people"),
                      field("platforms", &D::platforms, "platforms that it runs on"),
                      field("installed", &D::installed, "an installation was found"),
                      field("version", &D::version, "version of the installation; absent: not installed"),
                      field("place", &D::place, "folder of the installation; absent: not installed"),
                      field("lacking", &D::lacking, "what keeps it from training here; absent: nothing is known"));
  }
};

// `tprimat detect`
struct DetectedMachine : MachineFacts {
  std::vector<DetectedFramework> frameworks;

  static constexpr auto fields() {
    return extend_fields<MachineFacts>(
        field("frameworks", &DetectedMachine::frameworks, "frameworks that this program can run"));
  }
};

struct LeftOutFile {
  std::string path, reason;

  static constexpr auto fields() {
    using L = LeftOutFile;
    return field_list(field("path", &L::path, "file that is not in the archive"),
                      field("reason", &L::reason, "reason for leaving it out"));
  }
};

// `tprimat archive`
struct SealedArchive : results::Manifest {
  std::string archive, manifest_sha256;
  std::vector<LeftOutFile> left_out;

  static constexpr auto fields() {
    using S = SealedArchive;
    return extend_fields<results::Manifest>(
        field("archive", &S::archive, "file of the archive"),
        field("manifest_sha256", &S::manifest_sha256, "SHA-256 of the manifest, hexadecimal: identifies the archive"),
        field("left_out", &S::left_out, "files that are not in the archive"));
  }
};

struct Mismatch {
  std::string file, what, stated, derived, witness;

  static constexpr auto fields() {
    using M = Mismatch;
    return field_list(field("file", &M::file, "file of the archive"), field("what", &M::what, "figure or fact"),
                      field("stated", &M::stated, "its value in the file; empty: nothing to compare"),
                      field("derived", &M::derived, "value found elsewhere; empty: nothing to compare"),
                      field("witness", &M::witness, "file of that value; empty: it follows from `file` itself"));
  }
};

// `tprimat archive verify`
struct VerifiedArchive {
  std::string manifest_sha256, created, program;
  int64_t files = 0, results = 0, numbers = 0, facts = 0, steps = 0, logs = 0;
  bool is_signed = false;
  std::string signed_by;
  bool holds = false;
  std::vector<Mismatch> broken;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using V = VerifiedArchive;
    return field_list(
        field("manifest_sha256", &V::manifest_sha256, "SHA-256 of the manifest, hexadecimal: identifies the archive"),
        field("created", &V::created, "when it was sealed, UTC"),
        field("program", &V::program, "program that sealed it, and its version"),
        field("files", &V::files, "files checked"), field("results", &V::results, "results checked"),
        field("numbers", &V::numbers, "figures derived again"), field("facts", &V::facts, "facts compared"),
        field("steps", &V::steps, "steps compared with their records"), field("logs", &V::logs, "logs read again"),
        field("is_signed", &V::is_signed, "the archive has a signature"),
        field("signed_by", &V::signed_by, "signer whose signature is valid; empty: none, or not checked"),
        field("holds", &V::holds, "there are results and no mismatch"),
        field("broken", &V::broken, "mismatches, those of derived figures last"),
        field("notes", &V::notes, "what could not be checked, as sentences"));
  }
};

// `tprimat archive facts`
struct WitnessedFact {
  std::string document, fact, witnesses;

  static constexpr auto fields() {
    using W = WitnessedFact;
    return field_list(field("document", &W::document, "kind of file"), field("fact", &W::fact, "key in that file"),
                      field("witnesses", &W::witnesses, "files that it is compared with; empty: none"));
  }
};

// `tprimat extract --list-formats`
struct LogFormat {
  std::string id, title, versions;
  OrderedMap<std::string> fields_of_log;

  static constexpr auto fields() {
    using L = LogFormat;
    return field_list(field("id", &L::id, "name for --format"), field("title", &L::title, "name for people"),
                      field("versions", &L::versions, "versions seen in real logs"),
                      field("fields", &L::fields_of_log, "what the log calls each figure, by the figure's key"));
  }
};

// `tprimat export`
struct Exported {
  int64_t runs = 0;
  OrderedMap<std::vector<std::string>> written;

  static constexpr auto fields() {
    using E = Exported;
    return field_list(field("runs", &E::runs, "number of results exported"),
                      field("written", &E::written, "files and folders written, by format"));
  }
};

struct ResolvedPlatform {
  std::string device_model;
  int64_t num_gpus = 0;
  Framework framework = Framework::native;
  Precision precision = Precision::bf16;
  std::optional<double> usd_per_hour, tdp_watts;
  std::map<Precision, PeakInfo> peaks;

  static constexpr auto fields() {
    using R = ResolvedPlatform;
    return field_list(field("device_model", &R::device_model, "device, as in the hardware catalogue"),
                      field("num_gpus", &R::num_gpus, "devices of a training"),
                      field("framework", &R::framework, "framework that trains"),
                      field("precision", &R::precision, "number format of the matrix products"),
                      field("usd_per_hour", &R::usd_per_hour, "price of one device, USD per hour; absent: not known"),
                      field("tdp_watts", &R::tdp_watts, "power limit of one device, W; absent: not known"),
                      field("peaks", &R::peaks,
                            "dense peak of one device, by number format; formats without a known peak are absent"));
  }
};

struct ResolvedTraining {
  Precision precision = Precision::bf16;
  int64_t num_parameters = 0;
  TrainingConfig training_config;
  ParallelismConfig parallelism_config;

  static constexpr auto fields() {
    using R = ResolvedTraining;
    return field_list(field("precision", &R::precision, "number format of the matrix products"),
                      field("num_parameters", &R::num_parameters, "parameters of the model"),
                      field("training_config", &R::training_config, "training settings, as in a result"),
                      field("parallelism_config", &R::parallelism_config, "layout, as in a result"));
  }
};

struct RunFiles {
  std::string log, result;

  static constexpr auto fields() {
    using R = RunFiles;
    return field_list(field("log", &R::log, "file name of the log"), field("result", &R::result, "that of the result"));
  }
};

template <class T>
using ByPlatform = std::map<Platform, T>;

struct ResolvedConfig {
  ByPlatform<ResolvedPlatform> platforms;
  std::map<std::string, OrderedMap<ByPlatform<ResolvedTraining>>> trainings;
  ByPlatform<OrderedMap<OrderedMap<RunFiles>>> files;
  OrderedMap<std::string> primus_configs;

  static constexpr auto fields() {
    using R = ResolvedConfig;
    return field_list(field("platforms", &R::platforms, "configured platforms"),
                      field("trainings", &R::trainings,
                            "trainings by strategy, model and platform; those that cannot run are absent"),
                      field("files", &R::files, "names of logs and results, by platform, framework and model"),
                      field("primus_configs", &R::primus_configs, "Primus configuration files by model"));
  }
};

// `tprimat config show`
struct ShownConfig {
  std::string origin;
  Json settings = Json::object();
  ResolvedConfig resolved;
  OrderedMap<std::string> origins;
  std::optional<std::vector<std::string>> default_choice;

  static constexpr auto fields() {
    using S = ShownConfig;
    return field_list(
        field("origin", &S::origin, "configuration file, or the built-in default"),
        field("settings", &S::settings, "every setting, as in the configuration: docs/config.md"),
        field("resolved", &S::resolved, "what follows from the settings"),
        field("origins", &S::origins, "origin of each setting, by its key path"),
        field("default_choice", &S::default_choice,
              "what the built-in default chose for this machine's GPUs, and why; absent: a configuration stated it"));
  }
};

struct ConfigProblem {
  std::string where, what, hint;

  static constexpr auto fields() {
    using C = ConfigProblem;
    return field_list(field("where", &C::where, "file, line and key; empty: none"),
                      field("what", &C::what, "the problem"), field("hint", &C::hint, "remedy; empty: none"));
  }
};

// `tprimat config validate`
struct ValidatedConfig {
  bool valid = false;
  std::optional<std::string> origin;
  std::vector<ConfigProblem> errors;
  std::optional<std::vector<ConfigProblem>> warnings;

  static constexpr auto fields() {
    using V = ValidatedConfig;
    return field_list(field("valid", &V::valid, "the configuration has no error"),
                      field("origin", &V::origin, "configuration file, or the built-in default; absent: not valid"),
                      field("errors", &V::errors, "all errors; empty: valid"),
                      field("warnings", &V::warnings, "all warnings; absent: not valid"));
  }
};

}  // namespace tprimat::cli::document
