#include "data/tokenizer/word_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "data/tokenizer/unicode.h"

namespace tprimat::engine {
namespace {

using Place = const char*;

constexpr std::string_view k_expressions[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr CharClass ascii_class(int code) {
  if ((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) return CharClass::letter;
  if (code >= '0' && code <= '9') return CharClass::number;
  if (code == '\r' || code == '\n') return CharClass::line_end;
  return code == ' ' || (code >= '\t' && code <= '\f') ? CharClass::space : CharClass::other;
}

constexpr auto k_ascii = [] {
  std::array<CharClass, 128> table{};
  for (int code = 0; code < 128; ++code) table[static_cast<size_t>(code)] = ascii_class(code);
  return table;
}();

struct ClassedChar {
  CharClass kind;
  uint32_t bytes;
};

ClassedChar look(Place at) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return {k_ascii[byte], 1};
  const DecodedChar decoded = decode_utf8(at);
  return {UnicodeClasses::get().of(decoded.code), decoded.bytes};
}

Place skip_run(Place at, Place end, CharClass kind) {
  while (at < end) {
    const ClassedChar here = look(at);
    if (here.kind != kind) break;
    at += here.bytes;
  }
  return at;
}

Place skip_line_ends(Place at, Place end) {
  return std::find_if(at, end, [](char c) { return c != '\r' && c != '\n'; });
}

struct SpaceRun {
  Place end;
  Place last;             // its last character
  Place behind_line_end;  // behind its last CR or LF; null without one
};

SpaceRun scan_spaces(Place at, Place end) {
  SpaceRun run{at, at, nullptr};
  while (run.end < end) {
    const ClassedChar here = look(run.end);
    if (!is_space(here.kind)) break;
    run.last = run.end;
    run.end += here.bytes;
    if (here.kind == CharClass::line_end) run.behind_line_end = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : the last character of the run goes to what follows, if anything follows and it is not the only one.
Place end_of_spaces(const SpaceRun& run, Place at, Place end) {
  return run.end == end || run.last == at ? run.end : run.last;
}

// The end of 's 't 're 've 'm 'll 'd; null for none.
Place contraction(Place at, Place end, bool any_case) {
  if (end - at < 2 || *at != '\'') return nullptr;
  const auto letter = [&](int i) { return any_case && at[i] >= 'A' && at[i] <= 'Z' ? at[i] + ('a' - 'A') : at[i]; };
  const int first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return nullptr;
  if (((first == 'r' || first == 'v') && letter(2) == 'e') || (first == 'l' && letter(2) == 'l')) return at + 3;
  const bool long_s = any_case && std::memcmp(at + 1, "\xc5\xbf", 2) == 0;  // U+017F folds to s
  return long_s ? at + 3 : nullptr;
}

Place next_gpt2(Place at, Place end) {
  if (Place behind = contraction(at, end, false)) return behind;
  const Place start = *at == ' ' && at + 1 < end ? at + 1 : at;
  const ClassedChar first = look(start);
  if (!is_space(first.kind)) return skip_run(start + first.bytes, end, first.kind);
  return end_of_spaces(scan_spaces(at, end), at, end);
}

template <int MostDigits>
Place skip_digits(Place at, Place end) {
  for (int count = 0; count < MostDigits && at < end; ++count) {
    const ClassedChar here = look(at);
    if (here.kind != CharClass::number) break;
    at += here.bytes;
  }
  return at;
}

template <int MostDigits>
Place next_llama(Place at, Place end) {
  if (Place behind = contraction(at, end, true)) return behind;
  const ClassedChar first = look(at);
  const Place second = at + first.bytes;
  if (first.kind == CharClass::letter) return skip_run(second, end, CharClass::letter);
  if (first.kind == CharClass::number) return skip_digits<MostDigits>(at, end);
  const ClassedChar next = second < end ? look(second) : ClassedChar{CharClass::space, 0};
  if (first.kind != CharClass::line_end && next.kind == CharClass::letter)
    return skip_run(second + next.bytes, end, CharClass::letter);
  if (first.kind == CharClass::other || (*at == ' ' && next.kind == CharClass::other))
    return skip_line_ends(skip_run(second, end, CharClass::other), end);
  const SpaceRun run = scan_spaces(at, end);
  return run.behind_line_end ? run.behind_line_end : end_of_spaces(run, at, end);
}

}  // namespace

std::string_view expression_of(WordPattern pattern) { return k_expressions[static_cast<size_t>(pattern)]; }

std::optional<WordPattern> find_word_pattern(std::string_view expression) {
  for (const auto& [pattern, name] : EnumNames<WordPattern>::values)
    if (expression_of(pattern) == expression) return pattern;
  return std::nullopt;
}

NextWord scanner_of(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::llama3: return next_llama<3>;
    case WordPattern::qwen2: return next_llama<1>;
    case WordPattern::gpt2: break;
  }
  return next_gpt2;
}

}  // namespace tprimat::engine
