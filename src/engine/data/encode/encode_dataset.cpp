#include "data/encode/encode_dataset.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/dataset_writer.h"
#include "data/tokenizer/unicode.h"

namespace tprimat::engine {
namespace {

std::string place_of(const TextBlock& block, int64_t line) { return fmt::format("{}:{}", block.path, line); }

// Calls visit(line, number) for every line, without its line end.
template <class Visitor>
void for_each_line(const TextBlock& block, Visitor&& visit) {
  const std::string_view text = block.text;
  int64_t number = block.first_line;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, number);
    at = end + 1;
  }
}

// Takes blocks as they are ready and writes them in order. When one fails, those before it are still encoded, so that
// the first fault of the input is the one that is told.
class EncodeLine {
 public:
  EncodeLine(const EncodeRequest& request, TokenType type, const std::function<void(const EncodeProgress&)>& report)
      : reader_(request.inputs, request.form), writer_(request.output, type), type_(type), report_(report) {}

  void run(const Tokenizer& tokenizer, const EncodingRules& rules, int64_t threads) {
    most_waiting_ = static_cast<size_t>(4 * threads);
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back([&] { work(tokenizer, rules); });
    work(tokenizer, rules);
    for (std::thread& other : others) other.join();
    if (failure_) std::rethrow_exception(failure_);
    writer_.finish();
  }
  EncodeProgress progress() const { return progress_; }

 private:
  void work(const Tokenizer& tokenizer, const EncodingRules& rules) {
    TextBlock block;
    try {
      DocumentEncoder encoder(tokenizer, rules);
      while (take(block)) put(block.number, encoder.encode(block));
    } catch (...) {
      fail(block.number, std::current_exception());
    }
  }

  bool take(TextBlock& block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < most_waiting_ || failure_; });
    if (failure_) return false;
    block.number = next_to_take_;
    if (!reader_.next(block)) return false;
    ++next_to_take_;
    return true;
  }

  void put(int64_t number, EncodedBlock encoded) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(encoded));
    while (!waiting_.empty() && waiting_.begin()->first == next_to_write_) {
      write(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_to_write_;
    }
    changed_.notify_all();
  }

  void write(const EncodedBlock& encoded) {
    writer_.append_documents(encoded.tokens, encoded.lengths);
    progress_.documents += static_cast<int64_t>(encoded.lengths.size());
    progress_.tokens += static_cast<int64_t>(encoded.tokens.size()) / token_bytes(type_);
    progress_.text_bytes += encoded.text_bytes;
    progress_.bytes_read = reader_.bytes_read();
    progress_.bytes_in_all = reader_.bytes_in_all();
    progress_.seconds = seconds_since(start_);
    report_(progress_);
  }

  void fail(int64_t number, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || number < failed_block_) {
      failure_ = std::move(failure);
      failed_block_ = number;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;  // holds all below
  std::condition_variable changed_;
  TextBlockReader reader_;
  DatasetWriter writer_;
  const TokenType type_;
  const std::function<void(const EncodeProgress&)>& report_;
  std::map<int64_t, EncodedBlock> waiting_;
  size_t most_waiting_ = 0;
  int64_t next_to_take_ = 0, next_to_write_ = 0;
  std::exception_ptr failure_;
  int64_t failed_block_ = 0;
  EncodeProgress progress_;
  const SteadyClock::time_point start_ = SteadyClock::now();
};

TokenType choose_type(const EncodeRequest& request, const Tokenizer& tokenizer) {
  const TokenType type = request.type.value_or(default_token_type(tokenizer.vocab_size()));
  std::vector<std::byte> bytes;
  const auto greatest = static_cast<int32_t>(tokenizer.vocab_size() - 1);
  if (!append_tokens(type, std::array{greatest}, bytes))
    throw Error(Problem{fmt::format("{} cannot hold token {}", enum_name(type), greatest), "--dtype",
                        "omit it, or choose a wider type"});
  return type;
}

}  // namespace

struct JsonLineReader::Parser {
  simdjson::dom::parser parser;
};

JsonLineReader::JsonLineReader(std::string key) : parser_(std::make_unique<Parser>()), key_(std::move(key)) {}
JsonLineReader::~JsonLineReader() = default;

std::string_view JsonLineReader::read(std::string_view line, const std::string& where) {
  simdjson::dom::element root;
  if (const auto failure = parser_->parser.parse(line.data(), line.size(), true).get(root);
      failure != simdjson::SUCCESS)
    throw Error(Problem{fmt::format("the line is not JSON: {}", simdjson::error_message(failure)), where, ""});
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS)
    throw Error(Problem{"the line is not a JSON object", where, "write one object per line"});
  std::optional<simdjson::dom::element> value;
  for (const auto field : object)
    if (field.key == key_) value = field.value;
  std::string_view text;
  if (!value || value->get(text) != simdjson::SUCCESS)
    throw Error(Problem{fmt::format("the line has no text under \"{}\"", key_), where, "name the key with --json-key"});
  return text;
}

DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, EncodingRules rules)
    : rules_(std::move(rules)), encoder_(tokenizer.make_encoder()), json_(rules_.json_key) {}

EncodedBlock DocumentEncoder::encode(const TextBlock& block) {
  EncodedBlock out;
  if (block.form == DocumentForm::blank) {
    encode_paragraphs(block, out);
  } else if (block.form == DocumentForm::file) {
    encode_text(block.text, block, block.first_line, out);
  } else {
    encode_lines(block, out);
  }
  return out;
}

void DocumentEncoder::encode_lines(const TextBlock& block, EncodedBlock& out) {
  for_each_line(block, [&](std::string_view line, int64_t number) {
    if (is_blank_line(line)) return;
    if (block.form == DocumentForm::line) return encode_text(line, block, number, out);
    encode_document(json_.read(line, place_of(block, number)), out);
  });
}

void DocumentEncoder::encode_paragraphs(const TextBlock& block, EncodedBlock& out) {
  const char *begin = nullptr, *end = nullptr;
  int64_t first_line = 0;
  const auto finish = [&] {
    if (begin) encode_text({begin, static_cast<size_t>(end - begin)}, block, first_line, out);
    begin = nullptr;
  };
  for_each_line(block, [&](std::string_view line, int64_t number) {
    if (is_blank_line(line)) return finish();
    if (!begin) {
      begin = line.data();
      first_line = number;
    }
    end = line.data() + line.size();
  });
  finish();
}

void DocumentEncoder::encode_text(std::string_view text, const TextBlock& block, int64_t line, EncodedBlock& out) {
  const size_t valid = valid_utf8_prefix(text);
  if (valid < text.size())
    throw Error(
        Problem{fmt::format("the byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[valid])),
                place_of(block, line + std::count(text.begin(), text.begin() + static_cast<int64_t>(valid), '\n')),
                "convert the file, for instance with iconv"});
  encode_document(text, out);
}

void DocumentEncoder::encode_document(std::string_view text, EncodedBlock& out) {
  tokens_.clear();
  encoder_->encode(text, tokens_);
  if (!tokens_.empty() && rules_.end_of_document) tokens_.push_back(*rules_.end_of_document);
  CHECK(append_tokens(rules_.type, tokens_, out.tokens));
  out.lengths.push_back(static_cast<int32_t>(tokens_.size()));
  out.text_bytes += static_cast<int64_t>(text.size());
}

EncodeSummary encode_dataset(const EncodeRequest& request, const Tokenizer& tokenizer,
                             const std::function<void(const EncodeProgress&)>& report) {
  const int64_t threads =
      request.threads > 0 ? request.threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
  const TokenType type = choose_type(request, tokenizer);
  EncodeLine line(request, type, report);
  line.run(tokenizer, {request.json_key, request.end_of_document, type}, threads);
  const EncodeProgress done = line.progress();
  EncodeSummary summary;
  summary.prefix = request.output;
  summary.tokenizer = tokenizer.describe();
  summary.type = type;
  summary.documents = done.documents;
  summary.tokens = done.tokens;
  summary.text_bytes = done.text_bytes;
  summary.seconds = done.seconds;
  summary.megabytes_per_second = done.seconds > 0 ? static_cast<double>(done.text_bytes) / done.seconds / 1e6 : 0;
  return summary;
}

}  // namespace tprimat::engine
