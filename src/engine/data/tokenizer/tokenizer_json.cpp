#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/tokenizer/byte_level_bpe.h"
#include "data/tokenizer/unicode.h"

// simdjson and not the project's own JSON: a vocabulary is an object of 150 000 keys.
namespace tprimat::engine {
namespace {

using Element = simdjson::dom::element;

constexpr int64_t k_max_tokens = int64_t{1} << 24;
constexpr std::string_view k_document_ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>"};

// The characters by which a byte-level vocabulary writes bytes (bytes_to_unicode in GPT-2's encoder.py): printable ones
// of Latin-1 stand for themselves, the others for U+0100 and on in their order.
std::array<int16_t, 324> make_byte_alphabet() {
  std::array<int16_t, 324> byte_of;
  byte_of.fill(-1);
  size_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    byte_of[printable ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
  }
  return byte_of;
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  static const std::array<int16_t, 324> byte_of = make_byte_alphabet();
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const DecodedChar decoded = decode_utf8(token.data() + at);
    if (decoded.code >= byte_of.size() || byte_of[decoded.code] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of[decoded.code]);
    at += decoded.bytes;
  }
  return bytes;
}

class Loader {
 public:
  explicit Loader(std::string name) : name_(std::move(name)) {}

  ByteLevelSpec load(const Element& root) {
    refuse_truncation(root);
    const Element model = member(root, "model");
    check_model(model);
    load_vocabulary(member(model, "vocab"));
    load_merges(member(model, "merges"));
    load_normalizer(root["normalizer"]);
    load_pre_tokenizer(member(root, "pre_tokenizer"));
    load_added(root["added_tokens"]);
    check_bytes(model);
    return std::move(spec_);
  }

 private:
  using Result = simdjson::simdjson_result<Element>;

  [[noreturn]] void refuse(std::string what, std::string hint = "") const {
    throw Error(Problem{std::move(what), name_, std::move(hint)});
  }
  [[noreturn]] void refuse_kind(std::string_view key, std::string_view kind) const {
    refuse(fmt::format("its {} \"{}\" is not supported", key, kind),
           "use byte-level BPE with the word pattern of GPT-2, Llama 3 or Qwen 2; for SentencePiece give the .model "
           "file");
  }

  Element member(const Element& object, const char* key) const {
    Element value;
    if (object[key].get(value) != simdjson::SUCCESS)
      refuse(fmt::format("has no \"{}\"", key), "is it a tokenizer.json?");
    return value;
  }
  static bool is_absent(Result value) {
    Element element;
    return value.get(element) != simdjson::SUCCESS || element.is_null();
  }
  static std::string_view text(Result value) {
    std::string_view string;
    return value.get(string) == simdjson::SUCCESS ? string : std::string_view();
  }
  static bool flag(Result value, bool otherwise) {
    bool is = otherwise;
    return value.get(is) == simdjson::SUCCESS ? is : otherwise;
  }
  simdjson::dom::array list(Result value, std::string_view key) const {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS) refuse(fmt::format("its {} is not a list", key));
    return array;
  }
  int32_t id_of(Result value, std::string_view token) const {
    int64_t id = -1;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id >= k_max_tokens)
      refuse(fmt::format("the id of token \"{}\" is not between 0 and {}", token, k_max_tokens));
    return static_cast<int32_t>(id);
  }

  void refuse_truncation(const Element& root) const {
    if (!is_absent(root["truncation"])) refuse("it truncates texts", "set \"truncation\" to null");
  }

  void check_model(const Element& model) const {
    if (const auto kind = text(model["type"]); kind != "BPE" && !is_absent(model["type"]))
      refuse_kind("model type", kind);
    double dropout = 0;
    if (model["dropout"].get(dropout) == simdjson::SUCCESS && dropout > 0)
      refuse("it drops merges at random (dropout)");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text(model[key]).empty()) refuse_kind(key, text(model[key]));
  }

  void load_vocabulary(const Element& vocabulary) {
    simdjson::dom::object object;
    if (vocabulary.get(object) != simdjson::SUCCESS) refuse("its vocabulary is not an object");
    for (const auto field : object) {
      const int32_t id = id_of(Result(Element(field.value)), field.key);
      spec_.vocab_size = std::max<int64_t>(spec_.vocab_size, id + 1);
      if (auto bytes = bytes_of_token(field.key)) spec_.vocabulary.insert_or_assign(std::move(*bytes), id);
    }
  }

  int32_t known(std::string_view token) const {
    const auto bytes = bytes_of_token(token);
    const auto found = bytes ? spec_.vocabulary.find(*bytes) : spec_.vocabulary.end();
    if (found == spec_.vocabulary.end())
      refuse(fmt::format("a merge names \"{}\", which is not in the vocabulary", token));
    return found->second;
  }

  std::pair<std::string, std::string> parts_of(const Element& merge) const {
    std::string_view line, left, right;
    if (merge.get(line) == simdjson::SUCCESS) {
      const size_t space = line.find(' ');
      if (space != line.npos && line.find(' ', space + 1) == line.npos)
        return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
    } else if (simdjson::dom::array pair; merge.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
                                          pair.at(0).get(left) == simdjson::SUCCESS &&
                                          pair.at(1).get(right) == simdjson::SUCCESS) {
      return {std::string(left), std::string(right)};
    }
    refuse("a merge is not two tokens");
  }

  void load_merges(const Element& merges) {
    const simdjson::dom::array array = list(Result(Element(merges)), "merges");
    spec_.merges = MergeTable(static_cast<size_t>(std::distance(array.begin(), array.end())));
    uint32_t rank = 0;
    for (const Element merge : array) {
      const auto [left, right] = parts_of(merge);
      spec_.merges.insert(known(left), known(right), {rank++, static_cast<uint32_t>(known(left + right))});
    }
  }

  void load_normalizer(Result value) {
    Element normalizer;
    if (is_absent(value) || value.get(normalizer) != simdjson::SUCCESS) return;
    const std::string_view kind = text(normalizer["type"]);
    if (kind == "Sequence") {
      for (const Element each : list(normalizer["normalizers"], "normalizers")) load_normalizer(Result(Element(each)));
    } else if (kind == "NFC") {
      spec_.compose = true;
    } else {
      refuse_kind("normalizer", kind);
    }
  }

  void load_pre_tokenizer(const Element& value) {
    const std::string_view kind = text(value["type"]);
    if (kind == "ByteLevel") return load_byte_level(value, true);
    if (kind != "Sequence") refuse_kind("pre-tokenizer", kind);
    const simdjson::dom::array steps = list(value["pretokenizers"], "pre-tokenizers");
    if (std::distance(steps.begin(), steps.end()) != 2)
      refuse_kind("pre-tokenizer", "Sequence without exactly two steps");
    load_split(*steps.begin());
    load_byte_level(*std::next(steps.begin()), false);
  }

  void load_byte_level(const Element& value, bool cuts_words) {
    if (text(value["type"]) != "ByteLevel") refuse_kind("pre-tokenizer", text(value["type"]));
    if (flag(value["use_regex"], true) != cuts_words)
      refuse_kind("pre-tokenizer", cuts_words ? "ByteLevel without a pattern" : "Sequence that splits words twice");
    spec_.add_prefix_space = flag(value["add_prefix_space"], true);
  }

  void load_split(const Element& value) {
    if (text(value["type"]) != "Split") refuse_kind("pre-tokenizer", text(value["type"]));
    const std::string_view expression = text(value["pattern"]["Regex"]);
    const auto pattern = find_word_pattern(expression);
    if (!pattern) refuse_kind("word pattern", expression);
    const bool isolated = text(value["behavior"]) == "Isolated" && !flag(value["invert"], false);
    const bool kept = text(value["behavior"]) == "Removed" && flag(value["invert"], false);
    if (!isolated && !kept) refuse_kind("behaviour of the word pattern", text(value["behavior"]));
    spec_.pattern = *pattern;
  }

  void load_added(Result value) {
    if (is_absent(value)) return;
    for (const Element token : list(value, "added_tokens")) {
      const std::string content(text(token["content"]));
      if (content.empty()) refuse("an added token has no content");
      if (flag(token["single_word"], false)) refuse_kind("added token", content + " (single_word)");
      const auto in_vocabulary = spec_.vocabulary.find(content);
      const int32_t id = in_vocabulary != spec_.vocabulary.end() ? in_vocabulary->second : id_of(token["id"], content);
      spec_.vocab_size = std::max<int64_t>(spec_.vocab_size, id + 1);
      spec_.added.insert_or_assign(content, id);
      const bool composed = flag(token["normalized"], false);
      (composed ? spec_.composed_added : spec_.raw_added)
          .add({composed && spec_.compose ? compose_text(content) : content, id, flag(token["lstrip"], false),
                flag(token["rstrip"], false)});
    }
    for (const std::string_view end : k_document_ends)
      if (const auto found = spec_.added.find(end); found != spec_.added.end() && !spec_.end_of_document)
        spec_.end_of_document = found->second;
  }

  void check_bytes(const Element& model) {
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = spec_.vocabulary.find(std::string(1, static_cast<char>(byte)));
      const bool there = found != spec_.vocabulary.end();
      spec_.byte_tokens[static_cast<size_t>(byte)] = there ? found->second : -1;
      if (!there && (!text(model["unk_token"]).empty() || flag(model["byte_fallback"], false)))
        refuse(fmt::format("its vocabulary has no token for byte {}, and unknown tokens are not supported", byte));
    }
    spec_.ignore_merges = flag(model["ignore_merges"], false);
  }

  std::string name_;
  ByteLevelSpec spec_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view bytes, const std::string& name) {
  simdjson::dom::parser parser;
  Element root;
  if (const auto failure = parser.parse(bytes.data(), bytes.size(), true).get(root); failure != simdjson::SUCCESS)
    throw Error(Problem{fmt::format("is not JSON: {}", simdjson::error_message(failure)), name, ""});
  return std::make_unique<ByteLevelBpe>(Loader(name).load(root));
}

}  // namespace tprimat::engine
