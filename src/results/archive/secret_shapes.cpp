#include "archive/secret_shapes.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/environment.h"

namespace tprimat::results {
namespace {

using Spans = std::vector<TextSpan>;

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_alnum(c) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_base64(char c) { return is_alnum(c) || c == '+' || c == '/' || c == '='; }
bool is_token(char c) { return is_base64(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

// Number of characters from `begin` on for which the test holds.
template <class Test>
size_t run_of(std::string_view text, size_t begin, Test test) {
  size_t end = begin;
  while (end < text.size() && test(text[end])) ++end;
  return end - begin;
}

template <class Visit>
void visit_all(std::string_view text, std::string_view mark, Visit visit) {
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + mark.size())) visit(at);
}

std::string_view name_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

bool is_plain_word(std::string_view value) {
  constexpr std::array k_words = {"true", "false", "null", "none", "None", "True", "False", "yes", "no"};
  const bool is_number = value.find_first_not_of("0123456789.+-eE") == std::string_view::npos;
  return is_number || std::find(k_words.begin(), k_words.end(), value) != k_words.end();
}

// Trainers print names of special tokens (eos_token=...), so behind *TOKEN only what looks random is a secret.
bool is_secret_value(std::string_view name, std::string_view value) {
  constexpr size_t k_shortest = 4, k_shortest_token = 8;
  if (value.size() < k_shortest || is_plain_word(value) || !names_a_secret(name)) return false;
  if (value.find_first_of("<[$*{") == 0) return false;  // a stand-in, a variable, a special token
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper.find("TOKEN") == std::string::npos) return true;
  const bool has_digit = std::any_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return has_digit && value.size() >= k_shortest_token;
}

// "NAME=value", "NAME='value'", "\"name\": \"value\"", and "name: value" at the start of a line.
void find_named(std::string_view text, size_t separator, Spans& spans) {
  size_t name_end = separator;
  const bool is_quoted = name_end > 0 && (text[name_end - 1] == '"' || text[name_end - 1] == '\'');
  if (is_quoted) --name_end;
  const std::string_view name = name_before(text, name_end);
  if (name.empty()) return;
  if (text[separator] == ':' && !is_quoted) {
    auto start = static_cast<size_t>(name.data() - text.data());
    while (start > 0 && (is_blank(text[start - 1]) || text[start - 1] == '-')) --start;
    if (start > 0 && text[start - 1] != '\n') return;
  }
  size_t begin = separator + 1;
  if (text[separator] == ':') begin += run_of(text, begin, is_blank);
  if (begin < text.size() && text[begin] == '\\') ++begin;
  if (begin < text.size() && (text[begin] == '"' || text[begin] == '\'')) ++begin;
  constexpr std::string_view k_ends = "\"'\\,;&|)}]> \t\r\n";
  const size_t size = run_of(text, begin, [&](char c) { return k_ends.find(c) == std::string_view::npos; });
  if (is_secret_value(name, text.substr(begin, size))) spans.push_back({begin, size});
}

// "https://user:password@host"
void find_password(std::string_view text, size_t scheme, Spans& spans) {
  const size_t begin = scheme + 3;
  const size_t end = text.find_first_of("/ \t\r\n\"'<>", begin);
  const std::string_view address = text.substr(begin, end == std::string_view::npos ? end : end - begin);
  const size_t at = address.rfind('@'), colon = address.find(':');
  if (at == std::string_view::npos || colon >= at || colon + 1 == at) return;
  spans.push_back({begin + colon + 1, at - colon - 1});
}

void find_bearer(std::string_view text, size_t begin, Spans& spans) {
  constexpr size_t k_shortest = 16;
  const size_t size = run_of(text, begin, is_token);
  if (size >= k_shortest) spans.push_back({begin, size});
}

// "eyJhbGciOi.eyJzdWIi.signature"
void find_web_token(std::string_view text, size_t begin, Spans& spans) {
  constexpr size_t k_shortest = 20;
  if (begin > 0 && is_token(text[begin - 1])) return;
  const size_t size = run_of(text, begin, [](char c) { return is_name(c) || c == '-' || c == '.'; });
  const std::string_view token = text.substr(begin, size);
  if (size >= k_shortest && token.find(".eyJ") != std::string_view::npos) spans.push_back({begin, size});
}

// The lines between BEGIN and END, or as long as they are base64.
void find_private_key(std::string_view text, size_t begin, Spans& spans) {
  const size_t line = text.find("-----", begin + 5);
  if (line == std::string_view::npos || text.substr(begin, line - begin).find("PRIVATE KEY") == std::string_view::npos)
    return;
  const size_t end = std::min(text.find("-----END", line + 5), text.size());
  for (size_t at = line + 5; at < end;) {
    const size_t size = run_of(text.substr(0, end), at, is_base64);
    constexpr size_t k_shortest = 3;  // not the n of an escaped line end
    if (size >= k_shortest) spans.push_back({at, size});
    at += std::max<size_t>(1, size);
    if (end == text.size() && at < end && !is_base64(text[at]) && text[at] != '\n' && text[at] != '\r') break;
  }
}

// "AKIA... wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": on the same line or the next, forty characters.
void find_aws_secret(std::string_view text, size_t key, Spans& spans) {
  constexpr size_t k_key = 20, k_secret = 40, k_near = 120;
  if (run_of(text, key, is_alnum) != k_key) return;
  const size_t end = std::min(text.size(), key + k_key + k_near);
  for (size_t at = key + k_key; at < end;) {
    const size_t size = run_of(text, at, is_base64);
    if (size == k_secret) return spans.push_back({at, size});
    at += std::max<size_t>(1, size);
  }
}

Spans without_overlaps(Spans spans) {
  std::sort(spans.begin(), spans.end(), [](const TextSpan& a, const TextSpan& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size > b.size;
  });
  Spans apart;
  for (const TextSpan& each : spans)
    if (apart.empty() || each.begin >= apart.back().begin + apart.back().size) apart.push_back(each);
  return apart;
}

}  // namespace

std::vector<TextSpan> find_stated_secrets(std::string_view text) {
  Spans spans;
  visit_all(text, "=", [&](size_t at) { find_named(text, at, spans); });
  visit_all(text, ":", [&](size_t at) { find_named(text, at, spans); });
  visit_all(text, "://", [&](size_t at) { find_password(text, at, spans); });
  for (const std::string_view mark : {"Bearer ", "bearer ", "Authorization: Basic "})
    visit_all(text, mark, [&](size_t at) { find_bearer(text, at + mark.size(), spans); });
  visit_all(text, "eyJ", [&](size_t at) { find_web_token(text, at, spans); });
  visit_all(text, "-----BEGIN", [&](size_t at) { find_private_key(text, at, spans); });
  for (const std::string_view mark : {"AKIA", "ASIA"})
    visit_all(text, mark, [&](size_t at) { find_aws_secret(text, at, spans); });
  return without_overlaps(std::move(spans));
}

}  // namespace tprimat::results
