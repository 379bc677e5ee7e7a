#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "archive/seal.h"
#include "archive/verify.h"
#include "base/build_info.h"
#include "base/clock.h"
#include "cli/verbs.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_archive_examples =
    "  tprimat archive                                   everything in ./output, to tprimat.tar.zst\n"
    "  tprimat archive results/ config.yaml --output run7.tar.zst --hide-hosts\n"
    "  tprimat archive verify run7.tar.zst               does every published figure follow from its samples?\n"
    "\nTokens and passwords, the user's name and home folders are replaced in every text; the SHA-256 of the manifest "
    "that\n"
    "is printed names the archive: publish it beside the figures. Exit status of verify: 1 when something does not "
    "hold.\n";

struct ArchiveRequest {
  std::vector<std::string> paths, hide;
  std::string output = "tprimat.tar.zst", archive;
  bool hide_hosts = false;
};

constexpr size_t k_most_lines = 20;

Json left_out_to_json(const Seal& seal) {
  Json list = Json::array();
  for (const LeftOut& each : seal.left_out) list.push_back({{"path", each.path}, {"reason", each.reason}});
  return list;
}

void print_seal(const Session& session, const ArchiveRequest& request, const Seal& seal) {
  if (session.json) {
    Json json = to_json(seal.manifest);
    json["archive"] = request.output;
    json["manifest_sha256"] = seal.manifest_sha256;
    json["left_out"] = left_out_to_json(seal);
    return print_result(print_json(json));
  }
  std::string text =
      fmt::format("{}: {} files, {} bytes\nmanifest SHA-256 {}\n", request.output, seal.manifest.files.size(),
                  std::filesystem::file_size(request.output), seal.manifest_sha256);
  for (const auto& [kind, count] : seal.manifest.redactions)
    text += fmt::format("hidden: {} ({} times)\n", kind, count);
  for (size_t i = 0; i < seal.left_out.size() && i < k_most_lines; ++i)
    text += fmt::format("left out: {} ({})\n", printable(seal.left_out[i].path), seal.left_out[i].reason);
  if (seal.left_out.size() > k_most_lines)
    text += fmt::format("left out: {} more\n", seal.left_out.size() - k_most_lines);
  print_result(text);
}

ExitStatus seal_archive(const Session& session, const ArchiveRequest& request) {
  SealRequest seal;
  for (const std::string& path : request.paths) seal.paths.emplace_back(path);
  if (seal.paths.empty()) seal.paths.emplace_back("./output");
  seal.output = request.output;
  seal.redaction = local_redaction(request.hide_hosts);
  seal.redaction.secrets.insert(seal.redaction.secrets.end(), request.hide.begin(), request.hide.end());
  seal.program = "tprimat " + std::string(build_info().version);
  seal.created = utc_timestamp();
  print_seal(session, request, seal_files(seal));
  return ExitStatus::done;
}

Json verification_to_json(const Verification& found) {
  Json broken = Json::array();
  for (const Broken& each : found.broken)
    broken.push_back({{"file", each.file}, {"what", each.what}, {"stated", each.stated}, {"derived", each.derived}});
  return {{"manifest_sha256", found.manifest_sha256},
          {"created", found.created},
          {"program", found.program},
          {"files", found.files},
          {"results", found.results},
          {"numbers", found.numbers},
          {"steps", found.steps},
          {"logs", found.logs},
          {"holds", found.broken.empty()},
          {"broken", broken},
          {"notes", found.notes}};
}

std::string describe_verification(const ArchiveRequest& request, const Verification& found) {
  std::string text = fmt::format(
      "{}: {}\n", request.archive,
      found.broken.empty() ? "everything holds" : fmt::format("{} things do not hold", found.broken.size()));
  text += fmt::format("manifest SHA-256 {}, sealed {} by {}\n", found.manifest_sha256, printable(found.created),
                      printable(found.program));
  text +=
      fmt::format("checked: {} files, {} figures of {} results, {} steps against their records, {} logs read again\n",
                  found.files, found.numbers, found.results, found.steps, found.logs);
  for (size_t i = 0; i < found.broken.size() && i < k_most_lines; ++i) {
    const Broken& each = found.broken[i];
    text += fmt::format("does not hold: {}: {}{}\n", printable(each.file), printable(each.what),
                        each.stated.empty()
                            ? ""
                            : fmt::format(": stated {}, derived {}", printable(each.stated), printable(each.derived)));
  }
  if (found.broken.size() > k_most_lines)
    text += fmt::format("does not hold: {} more; --json lists them\n", found.broken.size() - k_most_lines);
  for (size_t i = 0; i < found.notes.size() && i < k_most_lines; ++i)
    text += fmt::format("note: {}\n", printable(found.notes[i]));
  return text;
}

ExitStatus verify(const Session& session, const ArchiveRequest& request) {
  const Verification found = verify_archive(request.archive);
  print_result(session.json ? print_json(verification_to_json(found)) : describe_verification(request, found));
  return found.broken.empty() ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace

void add_archive_verb(CLI::App& program, Session& session) {
  auto request = std::make_shared<ArchiveRequest>();
  CLI::App* verb = add_verb(program, session, "archive", "Seal results, logs and configuration; verify what was sealed",
                            k_archive_examples);
  add_json_option(*verb, session);
  verb->require_subcommand(0, 1);
  verb->add_option("paths", request->paths, "Results, logs, configurations, or folders of them (default: ./output)")
      ->type_name("DIR|FILE");
  verb->add_option("--output", request->output, "The archive to write, *.tar.zst or *.tar.gz")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_flag("--hide-hosts", request->hide_hosts, "Also replace the name of this machine");
  verb->add_option("--hide", request->hide,
                   "A further word to replace everywhere, 8 characters or more; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  CLI::App* part = verb->add_subcommand("verify", "Derive every figure again from the samples in the archive");
  part->add_option("archive", request->archive, "A file that `tprimat archive` wrote")->required()->type_name("FILE");
  add_json_option(*part, session);
  verb->callback([&session, request, part] {
    if (part->parsed())
      session.action = [&session, request] { return verify(session, *request); };
    else
      session.action = [&session, request] { return seal_archive(session, *request); };
  });
}

}  // namespace tprimat
