#include "data/encode/document_encoder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "data/token_format.h"
#include "data/tokenizer/unicode_class.h"

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

}  // namespace tprimat::engine
