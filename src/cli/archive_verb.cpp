#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "archive/seal.h"
#include "archive/signature.h"
#include "archive/verify.h"
#include "base/build_info.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/documents.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "process/process.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_archive_examples =
    "  tprimat archive                                   seals ./output into tprimat.tar.zst\n"
    "  tprimat archive results/ config.yaml --output run7.tar.zst --hide-hosts\n"
    "  tprimat archive --output - | ssh host 'cat > run7.tar.zst'\n"
    "  tprimat archive verify run7.tar.zst               recomputes every published figure from its samples\n"
    "  tprimat archive output restarts.log               seals a result with its source log\n"
    "  tprimat archive facts                             the facts that verify checks, with their witnesses\n"
    "  tprimat archive --sign ~/.ssh/id_ed25519 && tprimat archive verify tprimat.tar.zst --signed-by "
    "~/.ssh/id_ed25519.pub\n"
    "\nTokens and passwords, the user's name and home folders are redacted in every text file. The printed SHA-256 of "
    "the\n"
    "manifest identifies the archive: publish it with the figures. Exit status of verify: 1 on any mismatch.\n";

struct ArchiveRequest {
  std::vector<std::string> paths, hide;
  std::string output = "tprimat.tar.zst", archive, sign, signed_by;
  bool hide_hosts = false;
};

constexpr size_t k_max_lines = 20;

std::string count(size_t number, const char* singular) {
  return fmt::format("{} {}{}", number, singular, number == 1 ? "" : "s");
}

document::SealedArchive describe_seal(const ArchiveRequest& request, const results::Seal& seal) {
  document::SealedArchive sealed{seal.manifest, request.output, seal.manifest_sha256, {}};
  for (const results::LeftOut& each : seal.left_out) sealed.left_out.push_back({each.path, each.reason});
  return sealed;
}

void print_seal(const Session& session, const ArchiveRequest& request, const results::Seal& seal, size_t bytes) {
  if (session.json) return print_result(print_json(to_json(describe_seal(request, seal))));
  std::string text =
      fmt::format("{}: {}, {}\nmanifest SHA-256 {}\n", names_stdout(request.output) ? "stdout" : request.output,
                  count(seal.manifest.files.size(), "file"), count(bytes, "byte"), seal.manifest_sha256);
  for (const auto& [kind, count] : seal.manifest.redactions)
    text += fmt::format("redacted: {} ({} times)\n", kind, count);
  for (size_t i = 0; i < seal.left_out.size() && i < k_max_lines; ++i)
    text += fmt::format("left out: {} ({})\n", printable(seal.left_out[i].path), seal.left_out[i].reason);
  if (seal.left_out.size() > k_max_lines)
    text += fmt::format("left out: {} more\n", seal.left_out.size() - k_max_lines);
  print_beside_output(text, names_stdout(request.output));
}

ExitStatus seal_archive(const Session& session, const ArchiveRequest& request) {
  require_one_on_stdout({{"--json", session.json}, {"--output -", names_stdout(request.output)}});
  refuse_binary_on_terminal(request.output, "--output", "an archive");
  std::optional<ScratchFolder> scratch;
  if (names_stdout(request.output)) scratch.emplace();
  results::SealRequest seal;
  for (const std::string& path : request.paths) seal.paths.emplace_back(path);
  if (seal.paths.empty()) seal.paths.emplace_back(results_folder(session));
  seal.output = scratch ? scratch->path() / "stdout.tar.zst" : fs::path(request.output);
  seal.redaction = results::local_redaction(request.hide_hosts);
  for (const std::string& text : request.hide)
    if (const std::string why = results::why_not_hidden(text); !why.empty())
      throw Error(Problem{fmt::format("'{}' cannot be hidden: it {}", printable(text), why), "--hide",
                          "leave the files out that hold it, or edit them before"});
  seal.redaction.secrets.insert(seal.redaction.secrets.end(), request.hide.begin(), request.hide.end());
  seal.program = "tprimat " + std::string(build_info().version);
  seal.created = utc_timestamp();
  LocalRunner runner;
  if (!request.sign.empty())
    seal.sign = [&](const std::string& manifest) { return results::sign_text(runner, request.sign, manifest); };
  const results::Seal sealed = results::seal_files(seal);
  if (scratch) copy_to_stdout(seal.output.string());
  print_seal(session, request, sealed, fs::file_size(seal.output));
  return ExitStatus::done;
}

// Without a result nothing was verified.
bool holds(const results::Verification& found) { return found.broken.empty() && found.results > 0; }

document::VerifiedArchive report_verification(const results::Verification& found) {
  document::VerifiedArchive report{.manifest_sha256 = found.manifest_sha256,
                                   .created = found.created,
                                   .program = found.program,
                                   .files = found.files,
                                   .results = found.results,
                                   .numbers = found.numbers,
                                   .facts = found.facts,
                                   .steps = found.steps,
                                   .logs = found.logs,
                                   .is_signed = found.signature.has_value(),
                                   .signed_by = found.signed_by,
                                   .holds = holds(found),
                                   .broken = {},
                                   .notes = found.notes};
  for (const results::Broken& each : found.broken)
    report.broken.push_back({each.file, each.what, each.stated, each.derived, each.witness});
  return report;
}

std::string describe_other_side(const results::Broken& broken) {
  if (broken.witness.empty()) return "derived " + printable(broken.derived);
  return fmt::format("but {} in {}", printable(broken.derived), printable(broken.witness));
}

std::string describe_broken(const results::Broken& each) {
  const std::string values =
      each.stated.empty() ? "" : fmt::format(": stated {}, {}", printable(each.stated), describe_other_side(each));
  return fmt::format("mismatch: {}: {}{}\n", printable(each.file), printable(each.what), values);
}

// Derived figures come last; where something else does not hold, they follow from it.
std::string list_broken(const std::vector<results::Broken>& broken) {
  const auto derived = std::find_if(broken.begin(), broken.end(), results::is_derived_figure);
  const auto others = static_cast<size_t>(derived - broken.begin());
  const size_t listed = others > 0 ? others : broken.size();
  std::string text;
  for (size_t i = 0; i < listed && i < k_max_lines; ++i) text += describe_broken(broken[i]);
  if (listed > k_max_lines) text += fmt::format("mismatch: {} more; --json lists them\n", listed - k_max_lines);
  const size_t rest = broken.size() - listed;
  if (rest > 0)
    text += fmt::format("mismatch: {} as a consequence; --json lists them\n", count(rest, "derived figure"));
  return text;
}

std::string describe_outcome(const results::Verification& found) {
  if (!found.broken.empty())
    return fmt::format("{} mismatch{}", found.broken.size(), found.broken.size() == 1 ? "" : "es");
  return found.results > 0 ? "all checks passed" : "contains no results, so nothing was verified";
}

std::string describe_verification(const ArchiveRequest& request, const results::Verification& found) {
  const auto number = [](int64_t each) { return static_cast<size_t>(each); };
  std::string text = fmt::format("{}: {}\n", request.archive, describe_outcome(found));
  text += fmt::format("manifest SHA-256 {}, sealed {} by {}\n", found.manifest_sha256, printable(found.created),
                      printable(found.program));
  if (!found.signed_by.empty()) text += fmt::format("signed by {}\n", printable(found.signed_by));
  text += fmt::format("checked: {}, {} of {}, {} against their records, {} read again\n",
                      count(number(found.files), "file"), count(number(found.numbers), "figure"),
                      count(number(found.results), "result"), count(number(found.steps), "step"),
                      count(number(found.logs), "log"));
  text += list_broken(found.broken);
  for (size_t i = 0; i < found.notes.size() && i < k_max_lines; ++i)
    text += fmt::format("note: {}\n", printable(found.notes[i]));
  return text;
}

ExitStatus verify(const Session& session, const ArchiveRequest& request) {
  if (!request.signed_by.empty() && !std::filesystem::exists(request.signed_by))
    throw Error(Problem{"no such file", request.signed_by,
                        "give the signer's public key (KEYFILE.pub) or an ssh-keygen file of allowed signers"});
  results::Verification found = results::verify_archive(request.archive);
  LocalRunner runner;
  if (!request.signed_by.empty()) results::check_signature(runner, request.signed_by, found);
  if (request.signed_by.empty() && found.signature)
    found.notes.push_back("the archive is signed; check the signer with --signed-by FILE");
  if (found.results == 0)
    found.notes.push_back("the archive contains no results: seal those of `tprimat run` or `tprimat extract`");
  print_result(session.json ? print_json(to_json(report_verification(found))) : describe_verification(request, found));
  return holds(found) ? ExitStatus::done : ExitStatus::work_failed;
}

ExitStatus print_facts(const Session& session, const ArchiveRequest& request) {
  if (!request.archive.empty())
    throw Error(Problem{"`archive facts` lists the kinds of facts and reads no archive", request.archive,
                        "verify this archive: tprimat archive verify " + request.archive});

  std::vector<document::WitnessedFact> list;
  for (const results::Fact& fact : results::list_facts()) list.push_back({fact.document, fact.name, fact.witnesses});
  print_result(session.json ? print_json(to_json(list)) : results::render_facts(results::list_facts()));
  return ExitStatus::done;
}

}  // namespace

void add_archive_verb(CommandLine& program, Session& session) {
  auto request = std::make_shared<ArchiveRequest>();
  CommandLine* verb = add_verb(program, session, "archive",
                               "Seal results, logs and configuration; verify a sealed archive", k_archive_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->require_subcommand(0, 1);
  verb->add_option("paths", request->paths, "Results, logs, configurations, or folders (default: the results folder)")
      ->type_name("DIR|FILE");
  verb->add_option("--output", request->output, "Archive to write: *.tar.zst, *.tar.gz or *.tgz; -: stdout")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_flag("--hide-hosts", request->hide_hosts, "Also redact the name of this machine");
  verb->add_option("--hide", request->hide,
                   "Additional word to redact everywhere, at least 8 characters; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  verb->add_option("--sign", request->sign, "Sign the manifest with this SSH key")->type_name("KEYFILE");
  CommandLine* part = verb->add_subcommand("verify", "Recompute every figure from the samples in the archive");
  part->add_option("archive", request->archive, "Archive written by `tprimat archive`")->required()->type_name("FILE");
  part->add_option("--signed-by", request->signed_by,
                   "Require a signature by a key in this file of public keys or allowed signers (ssh-keygen)")
      ->type_name("FILE");
  add_json_option(*part, session);
  CommandLine* facts =
      verb->add_subcommand("facts", "List the facts that verify checks, with their witnesses; reads no archive");
  facts->add_option("archive", request->archive)->group("");
  add_json_option(*facts, session);
  verb->callback([&session, request, part, facts] {
    if (facts->parsed())
      session.action = [&session, request] { return print_facts(session, *request); };
    else if (part->parsed())
      session.action = [&session, request] { return verify(session, *request); };
    else
      session.action = [&session, request] { return seal_archive(session, *request); };
  });
}

}  // namespace tprimat::cli
