#include "program/verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/output.h"
#include "command_line/field_table.h"
#include "command_line/output_target.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "data/encode/encode_dataset.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_encode_examples =
    "  tprimat data encode corpus.jsonl.gz --tokenizer tokenizer.json --output data/corpus --append-eod\n"
    "  tprimat data encode books/*.txt --tokenizer tokenizer.model --output data/books --split-by file\n\n"
    "Document boundaries (--split-by)\n"
    "  jsonl   one JSON object per line, text under --json-key; default for .jsonl, .ndjson and .json\n"
    "  blank   lines up to a blank line; default for all other names\n"
    "  line    one line\n"
    "  file    a whole file\n"
    "Line ends, and blank lines around a document, are not part of it. Input may be gzip or zstd.";

struct EncodeOptions {
  EncodeRequest request;
  std::string tokenizer, form, type, eod;
  bool append_eod = false;
};

// A line on the terminal that is written over; nothing where stderr is a file.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : shown_(!quiet && is_live_terminal(STDERR_FILENO)) {}
  ~ProgressLine() {
    if (printed_at_ > 0) write_stderr("\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const EncodeProgress& progress) {
    constexpr double k_interval = 0.2;  // seconds
    if (!shown_ || progress.seconds < printed_at_ + k_interval || progress.bytes_read == 0) return;
    printed_at_ = progress.seconds;
    const double part = static_cast<double>(progress.bytes_read) / static_cast<double>(progress.bytes_in_all);
    write_stderr(fmt::format("\r\x1b[K{} of the input, {} documents, {} tokens, {}, {} left", format_percent(part),
                             format_count(static_cast<double>(progress.documents)),
                             format_count(static_cast<double>(progress.tokens)),
                             format_si(static_cast<double>(progress.text_bytes) / progress.seconds, "B/s"),
                             format_duration(progress.seconds * (1 / part - 1))));
  }

 private:
  bool shown_;
  double printed_at_ = 0;  // seconds from the start
};

int32_t find_end_of_document(const Tokenizer& tokenizer, const EncodeOptions& options) {
  if (options.eod.empty()) {
    if (const auto end = tokenizer.end_of_document()) return *end;
    throw Error(Problem{"the tokenizer has no end-of-document token", options.tokenizer, "name it with --eod"});
  }
  if (const auto token = tokenizer.find_token(options.eod)) return *token;
  throw Error(Problem{fmt::format("the tokenizer has no token {}", options.eod), "--eod", ""});
}

ExitStatus encode(const Session& session, EncodeOptions options) {
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(options.tokenizer);
  EncodeRequest& request = options.request;
  if (options.append_eod || !options.eod.empty()) request.end_of_document = find_end_of_document(*tokenizer, options);
  if (!options.form.empty()) request.form = parse_enum<DocumentForm>(options.form);
  if (!options.type.empty()) request.type = parse_enum<TokenType>(options.type);
  EncodeSummary summary;
  {
    ProgressLine line(session.quiet);
    summary = encode_dataset(request, *tokenizer, [&](const EncodeProgress& progress) { line.show(progress); });
  }
  print_result(session.json ? print_json(to_json(summary)) : render_text(field_table(summary)));
  return ExitStatus::done;
}

void add_document_options(CommandLine& encode_verb, EncodeOptions& options) {
  encode_verb.add_option("--split-by", options.form, "Document boundaries, see below (default: by file name)")
      ->choose_from(names_of<DocumentForm>());
  encode_verb.add_option("--json-key", options.request.json_key, "Key of the text in a JSON object")
      ->capture_default_str();
  encode_verb.add_flag("--append-eod", options.append_eod, "Append the tokenizer's own end token to every document");
  encode_verb.add_option("--eod", options.eod, "Append this token to every document")->type_name("TOKEN");
}

}  // namespace

void add_data_encode(CommandLine& verb, Session& session) {
  CommandLine* encode_verb = verb.add_subcommand("encode", "Turn text into a Megatron .bin/.idx pair");
  encode_verb->footer(std::string("Examples\n") + k_encode_examples);
  auto options = std::make_shared<EncodeOptions>();
  EncodeRequest& request = options->request;
  encode_verb->add_option("IN", request.inputs, "JSON lines or plain text")->required()->type_name("FILE");
  encode_verb->add_option("--tokenizer", options->tokenizer, "A tokenizer.json, or a SentencePiece .model")
      ->required()
      ->type_name("FILE");
  encode_verb->add_option("--output", request.output, "Path of the pair, without .bin and .idx")
      ->required()
      ->check(folder_output("a pair of files"))
      ->type_name("PREFIX");
  add_document_options(*encode_verb, *options);
  encode_verb->add_option("--dtype", options->type, "Token type (default: uint16 below 65500 tokens, else int32)")
      ->choose_from(names_of<TokenType>());
  encode_verb->add_option("--threads", request.threads, "Threads; 0: all")
      ->capture_default_str()
      ->check(number_from(0, 4096));
  add_json_option(*encode_verb, session);
  encode_verb->fallthrough();
  encode_verb->callback(
      [&session, options] { session.action = [&session, options] { return encode(session, *options); }; });
}

}  // namespace tprimat::engine
